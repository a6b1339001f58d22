//! What the commands that put files and programs on chain have in common: options, the price first, progress, Ctrl-C.

mod links;
mod progress;
mod prompt;

use std::sync::Arc;

use committor_client::{
    Lamports,
    chain::{Chain, RpcChain, RpcSettings},
    deploy::{Buffers, DeployError, DeploySettings, Deployer, Quote, Watch},
    types::PriorityFee,
};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub use links::explorer;
pub use progress::Transfer;
pub use prompt::confirm;

use crate::{
    args::{Global, Output, Route, Version},
    exit::{CommandError, Kind},
    output,
};

/// How transactions are sent and paid for
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sending options")]
pub struct Sending {
    /// Transaction format [default: v1 where the cluster has it]
    #[arg(long, value_name = "VERSION")]
    pub transaction_version: Option<Version>,
    /// Priority fee: micro-lamports per compute unit, `auto`, or `pN:CAP` for the Nth percentile of recent ones
    #[arg(long, value_name = "FEE", default_value = "0")]
    pub priority_fee: PriorityFee,
    /// Transactions that are on their way at a time
    #[arg(long, visible_alias = "in-flight", value_name = "COUNT", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..))]
    pub transactions_in_flight: u16,
    #[command(flatten)]
    pub route: Route,
    /// Do nothing if it takes more than this, fees and rent together
    #[arg(long, value_name = "LAMPORTS")]
    pub max_lamports: Option<u64>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

impl Sending {
    fn settings(&self) -> DeploySettings {
        DeploySettings {
            transactions_in_flight: self.transactions_in_flight.into(),
            priority_fee: self.priority_fee,
            version: self.transaction_version.and_then(Version::forced),
            ..DeploySettings::default()
        }
    }
}

/// The cluster, if it can be reached.
pub async fn chain(global: &Global) -> Result<Arc<RpcChain>, CommandError> {
    reached(crate::cluster::settings(global).await?).await
}

async fn reached(settings: RpcSettings) -> Result<Arc<RpcChain>, CommandError> {
    let chain = Arc::new(RpcChain::new(settings));
    match chain.slot().await {
        Ok(_) => Ok(chain),
        Err(error) => {
            chain.shutdown().await;
            let hint = "`--url` names another cluster; nothing was done";
            Err(CommandError::new(Kind::Cluster, error).hint(hint))
        }
    }
}

/// A deployer as the command line describes it, on a cluster that can be reached.
pub async fn deployer(global: &Global, sending: &Sending) -> Result<(Deployer, Arc<RpcChain>), CommandError> {
    let signers = global.signers()?;
    let chain = reached(sending.route.apply(crate::cluster::settings(global).await?)).await?;
    Ok((Deployer::new(chain.clone(), signers, sending.settings()), chain))
}

/// Buffers on a cluster that can be reached.
pub async fn buffers(global: &Global) -> Result<(Buffers, Arc<RpcChain>), CommandError> {
    let chain = chain(global).await?;
    Ok((Buffers::new(chain.clone()), chain))
}

/// When rent comes back that does.
#[derive(Clone, Copy, Debug)]
pub enum ComesBack {
    /// When the user closes what was made.
    WhenClosed,
    /// By the end of the command.
    ByTheEnd,
    /// When somebody upgrades a program with the buffer that was made, or closes that.
    WithUpgrade,
}

/// Says what it takes, and goes on only if the payer has it, it is below the limit, and the user agrees.
pub fn agree(
    quote: &Quote,
    what: &str,
    comes_back: ComesBack,
    sending: &Sending,
) -> Result<(), CommandError> {
    if quote.price.transactions == 0 {
        return Ok(());
    }
    eprint!("{what}\n{}", describe(quote, comes_back));
    quote.check()?;
    let total = quote.price.fee_lamports + quote.price.rent_locked_lamports;
    if let Some(limit) = sending.max_lamports
        && total > Lamports(limit)
    {
        let message = format!("--max-lamports allows {limit}, and it takes {total}");
        return Err(CommandError::new(Kind::Usage, message).hint("nothing was spent"));
    }
    confirm("Go on?", sending.yes)
}

/// What it takes, line by line.
fn describe(quote: &Quote, comes_back: ComesBack) -> String {
    let price = &quote.price;
    let (transactions, rounds, fees) = (price.transactions, price.rounds, price.fee_lamports);
    let (locked, back) = (price.rent_locked_lamports, price.rent_returned_lamports);
    let (payer, needed, balance) = (quote.payer, quote.needed, quote.balance);
    let rent = match comes_back {
        ComesBack::WhenClosed => format!("{locked} lamports, of which {back} come back when it is closed"),
        ComesBack::ByTheEnd => format!("{locked} lamports at most at a time, {back} come back by the end"),
        ComesBack::WithUpgrade => {
            format!(
                "{locked} lamports, of which {back} come back with the upgrade, or when the buffer is closed"
            )
        }
    };
    format!(
        "  transactions  {transactions}, in {rounds} rounds
  fees          {fees} lamports
  rent          {rent}
  fee payer     {payer} needs {needed} lamports and has {balance}\n"
    )
}

/// Prints what it would take, and nothing else.
pub fn dry_run<T: Serialize>(
    subject: &T,
    quote: &Quote,
    what: &str,
    comes_back: ComesBack,
    form: Output,
) -> Result<Kind, CommandError> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        #[serde(flatten)]
        subject: &'a T,
        #[serde(flatten)]
        quote: &'a Quote,
    }
    match form {
        Output::Display => {
            output::print(&format!("{what}\n{}Nothing was sent.\n", describe(quote, comes_back)))?
        }
        form => output::json(&Document { subject, quote }, form)?,
    }
    quote.check()?;
    Ok(Kind::Success)
}

/// A watch that Ctrl-C and SIGTERM stop once: what is on its way is waited for. Told again, the process ends at once.
pub fn stoppable() -> Result<Watch, CommandError> {
    let stop = CancellationToken::new();
    let signals = |kind| signal(kind).map_err(|error| CommandError::new(Kind::Other, error));
    let (mut interrupt, mut terminate) =
        (signals(SignalKind::interrupt())?, signals(SignalKind::terminate())?);
    let stopped = stop.clone();
    tokio::spawn(async move {
        let mut told = async || tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () };
        told().await;
        eprintln!("stopping; what is on its way is waited for (again to stop at once)");
        stopped.cancel();
        told().await;
        std::process::exit(Kind::Interrupted.code().into());
    });
    Ok(Watch { progress: None, stop })
}

impl From<DeployError> for CommandError {
    fn from(error: DeployError) -> Self {
        let kind = match &error {
            DeployError::Chain(error) if error.is_outage() => Kind::Cluster,
            DeployError::Chain(_) | DeployError::Restless { .. } => Kind::Failed,
            DeployError::NotEqual => Kind::NotVerified,
            DeployError::Stopped { .. } => Kind::Interrupted,
            DeployError::Balance { .. }
            | DeployError::TooLong { .. }
            | DeployError::NoAccount(_)
            | DeployError::NotABuffer { .. }
            | DeployError::Unreadable { .. }
            | DeployError::WrongAuthority { .. } => Kind::Usage,
            DeployError::Plan(_) | DeployError::Compile(_) | DeployError::Sign(_) => Kind::Other,
        };
        let hint = error.hint();
        Self::new(kind, error).hints(hint)
    }
}
