//! The command line.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Parser, Subcommand, ValueEnum};
use committor_client::{
    CommitMode, EngineSettings, SharedSigner, Signers,
    chain::{Endpoint, RpcSettings, TpuSettings},
    config::{self, ConfigError, EngineOptions, KeypairSource, Simulation, SolanaConfig, StageOption},
    proxy::ProxySettings,
    types::{BundleStatus, ComputeLimit, PriorityFee, Stage, TransactionVersion},
};
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;

use crate::{
    exit::{CommandError, Kind},
    keys::Keys,
};

/// Exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  everything landed
  1  an error that fits none of the others
  2  the command line, a file or a setting is wrong; nothing was done
  3  nothing of the changeset, or not all of the file, landed
  4  some bundles landed, others did not; `committor status` shows which
  5  landed, but what was read back is not what was sent; or `verify` found a difference
  6  the cluster can't be reached or does not answer
  7  the store can't be used
  8  interrupted; `committor resume`, or the same upload or deploy again, goes on with what is left";

/// Bring account state that an off-chain engine changed back to Solana
#[derive(Debug, Parser)]
#[command(name = "committor", version, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Cluster: a URL, or mainnet, testnet, devnet, localhost or a first letter of these; with commas several, the best first
    #[arg(short, long, global = true, value_name = "URL_OR_MONIKER", value_delimiter = ',')]
    pub url: Vec<String>,
    /// Websockets, in the order of the URLs [default: beside each, on the next port]
    #[arg(long, global = true, value_name = "URL", value_delimiter = ',')]
    pub ws: Vec<String>,
    /// Configuration file of Solana's command-line tools [default: ~/.config/solana/cli/config.yml]
    #[arg(short = 'C', long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keypair of the authority: a file, `-` for stdin, `prompt://` or `ASK` for a seed phrase [default: the configured one]
    #[arg(short, long, global = true, value_name = "KEYPAIR")]
    pub keypair: Option<KeypairSource>,
    /// Keypair that pays fees and rent, in the same forms [default: the authority's]
    #[arg(long, global = true, value_name = "KEYPAIR")]
    pub fee_payer: Option<KeypairSource>,
    /// When a transaction counts as landed: confirmed or finalized [default: the configured one, or confirmed]
    #[arg(long, global = true, value_name = "COMMITMENT", value_parser = config::parse_commitment)]
    pub commitment: Option<CommitmentConfig>,
    /// Database of changesets and their outcomes [default: committor.db; of `demo`, a new one]
    #[arg(long, global = true, value_name = "FILE", env = "COMMITTOR_STORE")]
    pub store: Option<PathBuf>,
    /// Settings file of this tool (TOML) [default: ~/.config/committor/settings.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE", env = "COMMITTOR_SETTINGS")]
    pub settings: Option<PathBuf>,
    /// Form of the output
    #[arg(long, global = true, value_name = "FORM", default_value = "display")]
    pub output: Output,
    /// Keypairs that have been read.
    #[arg(skip)]
    pub keys: Keys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Display,
    Json,
    JsonCompact,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Commit(Commit),
    Finalize(Finalize),
    Status(Status),
    Resume(Resume),
    Retry(crate::retry::Retry),
    Abandon(crate::abandon::Abandon),
    Audit(crate::audit::Audit),
    Upload(crate::upload::Upload),
    Deploy(Box<crate::deploy::Deploy>),
    Download(crate::download::Download),
    Verify(crate::verify::Verify),
    List(crate::list::List),
    Show(crate::show::Show),
    Close(crate::close::Close),
    SetAuthority(crate::set_authority::SetAuthority),
    Tables(crate::tables::Tables),
    Prune(Prune),
    Localnet(Localnet),
    Demo(Demo),
    Bench(Bench),
    Completions(crate::completions::Completions),
    Man(crate::man::Man),
}

/// Commit account states from files
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A FILE is a dump of `solana account PUBKEY --output json`, a folder of such dumps, or a changeset:
  {\"bundles\": [{\"id\": 1, \"accounts\": [{\"pubkey\": \"…\", \"data\": [\"…\", \"base64\"]}]}]}
`data` takes the encodings base64 and base64+zstd. Each dump is a bundle of its own unless --atomic is given. A bundle of
a changeset can have a `mode` and `actions` of its own: docs/changeset.md.")]
pub struct Commit {
    /// Dumps, folders of dumps, or changeset files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Put all dumps into one bundle: all of them land, or none
    #[arg(long)]
    pub atomic: bool,
    /// Commit to this account instead of the one that the dump names (one dump only)
    #[arg(long, value_name = "PUBKEY")]
    pub account: Option<String>,
    /// How far bundles go that do not say so themselves
    #[arg(long, value_name = "MODE", default_value = "finalize")]
    pub mode: Mode,
    /// Print what it would take, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub engine: Engine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The states become the accounts' states at once
    Finalize,
    /// The states can be inspected first; `committor finalize` applies them
    Stage,
    /// The accounts go back to their owner programs with the states
    Undelegate,
}

impl From<Mode> for CommitMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Finalize => Self::Finalize,
            Mode::Stage => Self::Stage,
            Mode::Undelegate => Self::Undelegate,
        }
    }
}

/// How transactions get to the chain.
#[derive(Debug, Default, clap::Args)]
pub struct Route {
    /// How transactions are sent: by the node, or straight to the leaders over QUIC
    #[arg(long, value_name = "WAY", default_value = "rpc")]
    pub send_via: SendVia,
    /// Connections that transactions are sent over: to the node [default: 32], or to each leader [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub connections: Option<NonZeroUsize>,
}

impl Route {
    /// The cluster's settings with these options.
    pub fn apply(&self, settings: RpcSettings) -> RpcSettings {
        match self.send_via {
            SendVia::Rpc => {
                RpcSettings { connections: self.connections.unwrap_or(settings.connections), ..settings }
            }
            SendVia::Tpu => {
                let defaults = TpuSettings::default();
                let connections = self.connections.unwrap_or(defaults.connections);
                RpcSettings { tpu: Some(TpuSettings { connections, ..defaults }), ..settings }
            }
        }
    }
}

/// How the engine works: these options go before the settings file.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Engine options")]
pub struct Engine {
    /// Transaction format [default: v1 where the cluster has it]
    #[arg(long, value_name = "VERSION")]
    pub transaction_version: Option<Version>,
    /// Compute-unit limits: `table`, `simulate` or a number; for one stage as `STAGE=VALUE` [default: table]
    #[arg(long, value_name = "[STAGE=]LIMIT")]
    pub compute: Vec<StageOption<ComputeLimit>>,
    /// Priority fees: micro-lamports per compute unit, or `pN:CAP` for the Nth percentile of recent ones [default: 0]
    #[arg(long, value_name = "[STAGE=]FEE")]
    pub priority_fee: Vec<StageOption<PriorityFee>>,
    /// Where transactions are simulated; `proxy` rehearses every bundle here before it costs anything [default: node]
    #[arg(long, value_name = "WHERE")]
    pub simulation: Option<SimulatedBy>,
    #[command(flatten)]
    pub route: Route,
    /// Let a bundle that waits give way to a newer one of its accounts
    #[arg(long)]
    pub coalesce: bool,
    /// Bundles that are worked on at a time [default: 128]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub bundles_in_flight: Option<u16>,
    /// Transactions of a bundle that are on their way at a time [default: 64]
    #[arg(long, visible_alias = "in-flight", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub transactions_in_flight: Option<u16>,
    /// How long an interrupted command waits for what is on its way, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub shutdown_timeout: u16,
}

/// How transactions are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SendVia {
    /// By the node
    #[default]
    Rpc,
    /// To the leaders, over QUIC
    Tpu,
}

impl SendVia {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::Tpu => "tpu",
        }
    }
}

/// Where transactions are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimulatedBy {
    /// By the node
    Node,
    /// In this process, on accounts fetched from the node
    Proxy,
}

impl Engine {
    /// How transactions are simulated in this process, if they are.
    pub fn proxy(&self, global: &Global) -> Result<Option<ProxySettings>, ConfigError> {
        let simulation = match self.simulation {
            Some(SimulatedBy::Node) => Simulation::Node,
            Some(SimulatedBy::Proxy) => Simulation::Proxy,
            None => global.options()?.simulation.unwrap_or_default(),
        };
        Ok((simulation == Simulation::Proxy).then(ProxySettings::default))
    }

    /// The engine's settings: defaults, then the settings file, then these options.
    pub fn settings(&self, global: &Global) -> Result<EngineSettings, ConfigError> {
        let mut settings = global.engine_settings()?;
        if let Some(version) = self.transaction_version {
            settings.version = version.forced();
        }
        for option in &self.compute {
            stages(option.stage).for_each(|stage| settings.budgets.of_mut(stage).compute = option.value);
        }
        for option in &self.priority_fee {
            stages(option.stage).for_each(|stage| settings.budgets.of_mut(stage).priority_fee = option.value);
        }
        settings.coalesce |= self.coalesce;
        settings.bundles_in_flight = self.bundles_in_flight.map_or(settings.bundles_in_flight, usize::from);
        settings.transactions_in_flight =
            self.transactions_in_flight.map_or(settings.transactions_in_flight, usize::from);
        Ok(settings)
    }

    pub fn shutdown_timeout(&self) -> Duration {
        Duration::from_secs(self.shutdown_timeout.into())
    }
}

fn stages(named: Option<Stage>) -> impl Iterator<Item = Stage> {
    Stage::ALL.into_iter().filter(move |stage| named.is_none_or(|named| named == *stage))
}

/// Apply what is staged
#[derive(Debug, clap::Args)]
pub struct Finalize {
    /// Only bundles of this changeset [default: of all]
    #[arg(long, value_name = "ID")]
    pub changeset: Option<u64>,
    /// Only the bundle with this id
    #[arg(long, value_name = "ID")]
    pub bundle: Option<u64>,
    #[command(flatten)]
    pub engine: Engine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Version {
    /// v1 where the cluster has it
    Auto,
    V0,
    V1,
}

impl Version {
    pub fn forced(self) -> Option<TransactionVersion> {
        match self {
            Self::Auto => None,
            Self::V0 => Some(TransactionVersion::V0),
            Self::V1 => Some(TransactionVersion::V1),
        }
    }
}

/// Show what became of changesets
#[derive(Debug, clap::Args)]
pub struct Status {
    /// The changeset's number [default: the newest]
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub changeset: Option<u64>,
    /// List all changesets
    #[arg(long)]
    pub all: bool,
    /// Bundles that commit to this account, the newest first
    #[arg(long, value_name = "PUBKEY", conflicts_with_all = ["all", "changeset"])]
    pub account: Option<Address>,
    /// Bundles that their callers gave this id, in any changeset
    #[arg(long, value_name = "ID", conflicts_with_all = ["all", "changeset"])]
    pub bundle: Option<u64>,
    /// Bundles that stand there: accepted, preparing, committing, staged, finalizing, landed, failed, superseded or abandoned
    #[arg(long, value_name = "STATUS", conflicts_with_all = ["all", "changeset"])]
    pub status: Option<BundleStatus>,
    /// Bundles that have not moved for so long, as 90s, 15m, 12h or 30d
    #[arg(long, value_name = "AGE", value_parser = config::parse_age, conflicts_with_all = ["all", "changeset"])]
    pub older_than: Option<Duration>,
    /// Sums over all that the store holds
    #[arg(long, conflicts_with_all = ["all", "changeset", "account", "bundle", "status", "older_than"])]
    pub totals: bool,
    /// Bundles or changesets that are listed at most [default: 100 bundles, 1000 changesets]
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["changeset", "totals"])]
    pub limit: Option<u32>,
}

/// Finish what an interrupted command left
#[derive(Debug, clap::Args)]
pub struct Resume {
    #[command(flatten)]
    pub engine: Engine,
}

/// Remove what has ended long ago from the store
#[derive(Debug, clap::Args)]
pub struct Prune {
    /// Changesets that ended at least so long ago, as 90s, 15m, 12h or 30d
    #[arg(long, value_name = "AGE", value_parser = config::parse_age)]
    pub older_than: Duration,
}

/// Run a local validator with the programs loaded, until Ctrl-C
#[derive(Debug, clap::Args)]
pub struct Localnet {
    /// Port of the JSON-RPC service; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8899)]
    pub rpc_port: u16,
    /// Port of the websocket service; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8900)]
    pub ws_port: u16,
    /// Start with these accounts (dumps, or folders of dumps) delegated to the keypair, empty
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub delegate: Vec<PathBuf>,
}

/// Commit real account states to a local validator and read them back
#[derive(Debug, clap::Args)]
pub struct Demo {
    #[command(flatten)]
    pub engine: Engine,
}

/// Measure parts of this program on this machine
#[derive(Debug, clap::Args)]
pub struct Bench {
    #[command(subcommand)]
    pub benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
pub enum Benchmark {
    Commit(BenchCommit),
    Confirm(crate::bench::confirm::Confirm),
    Crypto(BenchCrypto),
    Plan(BenchPlan),
    InFlight(BenchInFlight),
    Proxy(BenchProxy),
    Send(BenchSend),
    Faults(BenchFaults),
    Upload(crate::bench::upload::BenchUpload),
}

/// Land changesets through random faults, and ask the chain what became of every commit
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A seed says what is committed, which faults a proxy before a local validator makes, and whether the engine is stopped
halfway and gone on with. The exit code is 1 if a commit was lost, landed twice, or broke another promise.")]
pub struct BenchFaults {
    /// How many seeds
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: u64,
    /// The first seed; the others follow it
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub first_seed: u64,
    /// Seeds that run at a time
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub in_flight: u16,
}

/// Measure how long commits at a fixed rate take to be accepted and to land
#[derive(Debug, clap::Args)]
pub struct BenchCommit {
    /// Accounts that are committed to in turn
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub accounts: usize,
    /// Accounts of a bundle; each number is a run of its own
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,8")]
    pub accounts_per_bundle: Vec<usize>,
    /// Length of a state; all of it changes every time
    #[arg(long, value_name = "BYTES", default_value_t = 512)]
    pub bytes: usize,
    /// Commits per second, each account of a bundle counted
    #[arg(long, value_name = "COUNT", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: u32,
    /// Commits of a run
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    pub commits: usize,
    /// Time between two blocks of the local validator
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub slot_ms: u16,
}

/// Measure signing and verifying: one by one, each as a job of its own, and in ordered chunks
#[derive(Debug, clap::Args)]
pub struct BenchCrypto {
    /// How often each size is measured
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Numbers of transactions
    #[arg(
        long,
        value_name = "COUNT",
        value_delimiter = ',',
        default_value = "1,4,16,64,256,1000,10000,100000"
    )]
    pub sizes: Vec<usize>,
    /// Threads of the ordered chunks; 0 for as many as there are cores
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub threads: usize,
}

/// Measure what lands per second, by the number of bundles that are worked on at a time
#[derive(Debug, clap::Args)]
pub struct BenchInFlight {
    /// How often each number is measured; the median is shown
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Bundles that each run lands
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub bundles: u32,
    /// Numbers of bundles at a time
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,4,16,64,128,256,512")]
    pub in_flight: Vec<usize>,
}

/// Measure what lands per second through a node and through a leader, by connections, distance and losses
#[derive(Debug, clap::Args)]
pub struct BenchSend {
    /// How often each number is measured; medians are shown
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Ways to send
    #[arg(long, value_name = "WAY", value_delimiter = ',', default_value = "rpc,tpu")]
    pub via: Vec<SendVia>,
    /// Numbers of connections
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,2,4,8,16,32")]
    pub connections: Vec<NonZeroUsize>,
    /// Round trips
    #[arg(long, value_name = "MILLISECONDS", value_delimiter = ',', default_value = "0,20,100")]
    pub rtt: Vec<u64>,
    /// What is lost on the way: sends through a node, datagrams to a leader
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "0,1", value_parser = percent)]
    pub loss: Vec<f64>,
    /// Transfers of a run
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    pub transactions: usize,
    /// Transfers that are on their way at a time
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    pub in_flight: usize,
    /// Time between two blocks of the local validator
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub slot_ms: u16,
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a percentage".to_owned())?;
    if (0.0..100.0).contains(&value) { Ok(value) } else { Err("expected 0 to less than 100".to_owned()) }
}

/// Measure simulating here against having the node simulate
#[derive(Debug, clap::Args)]
pub struct BenchProxy {
    /// How often each number is measured; medians are shown
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Numbers of transactions that are simulated on one view
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,4,16,64")]
    pub simulations: Vec<usize>,
    /// What the node's answers take longer than those of a local one
    #[arg(long, value_name = "MILLISECONDS", value_delimiter = ',', default_value = "0,5,50")]
    pub latency: Vec<u64>,
}

/// Measure planning per account, for changesets of 1 to 10,000 accounts
#[derive(Debug, clap::Args)]
pub struct BenchPlan {
    /// How often each size is measured; the median is shown
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// The largest changeset: 100, 1,000 or 10,000 accounts; the others have a tenth, a hundredth and so on
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    pub accounts: u32,
}

impl Global {
    /// Refuses options that the command has no use for, rather than ignore them.
    pub fn refuse(&self, command: &str, options: &[&str]) -> Result<(), CommandError> {
        let given = [
            ("--url", !self.url.is_empty()),
            ("--ws", !self.ws.is_empty()),
            ("--config", self.config.is_some()),
            ("--keypair", self.keypair.is_some()),
            ("--fee-payer", self.fee_payer.is_some()),
            ("--commitment", self.commitment.is_some()),
        ];
        match given.into_iter().find(|(option, given)| *given && options.contains(option)) {
            None => Ok(()),
            Some((option, _)) => {
                let message = format!(
                    "{option} has no effect on `committor {command}`, which starts its own validator"
                );
                Err(CommandError::new(Kind::Usage, message))
            }
        }
    }

    /// The store.
    pub fn store(&self) -> &Path {
        self.store.as_deref().unwrap_or(Path::new("committor.db"))
    }

    fn solana(&self) -> Result<SolanaConfig, ConfigError> {
        match &self.config {
            Some(path) => SolanaConfig::load(path),
            // Only a file that was asked for has to be there.
            None => match SolanaConfig::default_path() {
                Some(path) if path.exists() => SolanaConfig::load(&path),
                _ => Ok(SolanaConfig::default()),
            },
        }
    }

    /// What the settings file says.
    fn options(&self) -> Result<EngineOptions, ConfigError> {
        let default = || config::default_settings_path().filter(|path| path.exists());
        self.settings
            .clone()
            .or_else(default)
            .map_or_else(|| Ok(EngineOptions::default()), |path| EngineOptions::load(&path))
    }

    /// The engine's settings: defaults, then the settings file.
    pub fn engine_settings(&self) -> Result<EngineSettings, ConfigError> {
        let mut settings = EngineSettings::default();
        self.options()?.apply(&mut settings)?;
        Ok(settings)
    }

    /// The cluster: its endpoints by `--url`, by the settings file, or by Solana's configuration file.
    pub fn cluster(&self) -> Result<RpcSettings, ConfigError> {
        let named =
            if self.url.is_empty() { self.options()?.urls.unwrap_or_default() } else { self.url.clone() };
        let solana = match self.commitment {
            Some(_) if !named.is_empty() => SolanaConfig::default(),
            _ => self.solana()?,
        };
        let first = named.first().cloned().or(solana.url).unwrap_or_else(|| "localhost".to_owned());
        let endpoint = |name: &String| Ok(Endpoint::new(config::cluster_url(name)?));
        let mut settings = RpcSettings::of(
            endpoint(&first)?,
            named.iter().skip(1).map(endpoint).collect::<Result<_, ConfigError>>()?,
        );
        let websockets = std::iter::once(&mut settings.websocket_url)
            .chain(settings.fallbacks.iter_mut().map(|endpoint| &mut endpoint.websocket_url));
        for (websocket, given) in websockets.zip(&self.ws) {
            *websocket = Some(given.clone());
        }
        if self.ws.len() > settings.endpoints().len() {
            return Err(ConfigError::Websockets {
                given: self.ws.len(),
                endpoints: settings.endpoints().len(),
            });
        }
        settings.commitment = self.commitment.or(solana.commitment).unwrap_or(settings.commitment);
        Ok(settings)
    }

    /// Where the authority's keypair comes from.
    pub fn keypair_source(&self) -> Result<KeypairSource, ConfigError> {
        if let Some(source) = &self.keypair {
            return Ok(source.clone());
        }
        let default = || config::default_keypair_path().unwrap_or_else(|| PathBuf::from("id.json"));
        Ok(self.solana()?.keypair.unwrap_or_else(|| KeypairSource::File(default())))
    }

    /// The authority.
    pub fn authority(&self) -> Result<SharedSigner, ConfigError> {
        self.keys.get(&self.keypair_source()?)
    }

    /// Who signs.
    pub fn signers(&self) -> Result<Signers, ConfigError> {
        let authority = self.authority()?;
        Ok(Signers { payer: self.payer()?.unwrap_or_else(|| authority.clone()), authority })
    }

    /// Who pays, if it is not the authority.
    pub fn payer(&self) -> Result<Option<SharedSigner>, ConfigError> {
        self.fee_payer.as_ref().map(|source| self.keys.get(source)).transpose()
    }
}
