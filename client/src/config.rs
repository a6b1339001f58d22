//! From what people write to settings: clusters by name, Solana's own configuration file, keypair files.

#[cfg(feature = "hardware-wallets")]
mod hardware;
mod keypair;
mod settings;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use solana_commitment_config::CommitmentConfig;
use thiserror::Error;

use crate::types::BudgetError;

pub use keypair::KeypairSource;
pub use settings::{BudgetOptions, EngineOptions, Simulation, StageOption, TableOptions};

/// Why a setting could not be read.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Neither a moniker nor a URL.
    #[error("`{0}` is no cluster")]
    Cluster(String),
    /// Solana's configuration file can't be read.
    #[error("could not read the Solana configuration file {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The settings file can't be read.
    #[error("could not read the settings file {}", .path.display())]
    SettingsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The settings file makes no sense.
    #[error("the settings file {} makes no sense: {reason}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Which key, and what was expected.
        reason: String,
    },
    /// No compute-unit limit or priority fee.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// An option for a stage that does not exist.
    #[error("`{0}` is no stage: expected prepare, commit, finalize or cleanup")]
    Stage(String),
    /// More websockets than endpoints.
    #[error("{given} websockets are given for {endpoints} of the cluster's endpoints")]
    Websockets {
        /// How many there are.
        given: usize,
        /// How many there can be.
        endpoints: usize,
    },
    /// No commitment that anything can be relied on at.
    #[error("`{0}` is no commitment: expected confirmed or finalized")]
    Commitment(String),
    /// No length of time.
    #[error("`{0}` is no length of time: give a whole number and s, m, h or d, such as 30d")]
    Age(String),
    /// The keypair file can't be read.
    #[error("could not read a keypair from {source_name}: {reason}")]
    Keypair {
        /// The file, or what else it was to come from.
        source_name: String,
        /// Why; never any of its content.
        reason: &'static str,
    },
    /// The hardware wallet did not take part.
    #[cfg(feature = "hardware-wallets")]
    #[error("could not use the hardware wallet {name}")]
    Wallet {
        /// What was asked for.
        name: String,
        /// Why.
        #[source]
        source: Box<solana_remote_wallet::remote_wallet::RemoteWalletError>,
    },
}

impl ConfigError {
    /// Whether trying again can help. Never: what was written has to change.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Cluster(_)
            | Self::File { .. }
            | Self::SettingsFile { .. }
            | Self::Settings { .. }
            | Self::Budget(_)
            | Self::Stage(_)
            | Self::Age(_)
            | Self::Commitment(_)
            | Self::Websockets { .. }
            | Self::Keypair { .. } => false,
            #[cfg(feature = "hardware-wallets")]
            Self::Wallet { .. } => false,
        }
    }

    /// What the user can do.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Cluster(_) => Some(
                "give a URL (http:// or https://), or mainnet, testnet, devnet, localhost or a first letter of these",
            ),
            Self::Websockets { .. } => {
                Some("`--ws` names them in the order of `--url`, one for each at most")
            }
            Self::File { .. } => Some("`--config FILE` names another one"),
            Self::SettingsFile { .. } => Some("`--settings FILE` names another one"),
            Self::Settings { .. } => Some("docs/settings.md has every key and what it takes"),
            Self::Keypair { .. } => Some(
                "`--keypair` takes a file, `-` for stdin, and `prompt://` or `ASK` on a terminal; `committor localnet` makes a file where there is none",
            ),
            #[cfg(feature = "hardware-wallets")]
            Self::Wallet { .. } => Some("plug it in, unlock it, and open its Solana app"),
            // The error itself says what was expected.
            Self::Budget(_) | Self::Stage(_) | Self::Age(_) | Self::Commitment(_) => None,
        }
    }
}

/// The URL of a cluster given by URL or moniker.
///
/// ```
/// use committor_client::config::cluster_url;
///
/// assert_eq!(cluster_url("l")?, "http://localhost:8899");
/// assert_eq!(cluster_url("https://rpc.example")?, "https://rpc.example");
/// # Ok::<(), committor_client::config::ConfigError>(())
/// ```
///
/// # Errors
/// [`ConfigError::Cluster`] if it is neither.
pub fn cluster_url(name: &str) -> Result<String, ConfigError> {
    let url = match name {
        "m" | "mainnet" | "mainnet-beta" => "https://api.mainnet-beta.solana.com",
        "t" | "testnet" => "https://api.testnet.solana.com",
        "d" | "devnet" => "https://api.devnet.solana.com",
        "l" | "localhost" => "http://localhost:8899",
        url if url.starts_with("http://") || url.starts_with("https://") => url,
        other => return Err(ConfigError::Cluster(other.to_owned())),
    };
    Ok(url.to_owned())
}

/// When a transaction counts as landed: `confirmed` or `finalized`.
///
/// # Errors
/// [`ConfigError::Commitment`] if it is neither. What is merely `processed` may be dropped again.
pub fn parse_commitment(text: &str) -> Result<CommitmentConfig, ConfigError> {
    match text {
        "confirmed" => Ok(CommitmentConfig::confirmed()),
        "finalized" => Ok(CommitmentConfig::finalized()),
        other => Err(ConfigError::Commitment(other.to_owned())),
    }
}

/// A length of time: a whole number of seconds (`90s`), minutes, hours or days (`30d`).
///
/// # Errors
/// [`ConfigError::Age`] if it is none.
pub fn parse_age(text: &str) -> Result<Duration, ConfigError> {
    let fail = || ConfigError::Age(text.to_owned());
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let (unit, seconds) = units.into_iter().find(|(unit, _)| text.ends_with(*unit)).ok_or_else(fail)?;
    let number = text.trim_end_matches(unit);
    // `u64` itself would take a sign.
    if number.is_empty()
        || !number.bytes().all(|byte| byte.is_ascii_digit())
        || number.len() + 1 != text.len()
    {
        return Err(fail());
    }
    let number: u64 = number.parse().map_err(|_| fail())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(fail)
}

/// What Solana's command-line tools are configured with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SolanaConfig {
    /// URL of the cluster.
    pub url: Option<String>,
    /// Where the keypair comes from.
    pub keypair: Option<KeypairSource>,
    /// When a transaction counts as landed.
    pub commitment: Option<CommitmentConfig>,
}

impl SolanaConfig {
    /// Where the file is by default: `~/.config/solana/cli/config.yml`.
    pub fn default_path() -> Option<PathBuf> {
        Some(home()?.join(".config/solana/cli/config.yml"))
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`ConfigError::File`] if it can't be read.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
        Ok(Self::parse(&text))
    }

    /// The keys that matter here are plain scalars on lines of their own, which is all of YAML that the file uses.
    fn parse(text: &str) -> Self {
        let value = |key: &str| {
            text.lines().find_map(|line| {
                let value = line.strip_prefix(key)?.strip_prefix(':')?.trim();
                let value = value.trim_matches(|quote| quote == '"' || quote == '\'');
                (!value.is_empty()).then(|| value.to_owned())
            })
        };
        let Ok(keypair) = value("keypair_path").map(|source| source.parse()).transpose();
        // What is merely processed can still be dropped; whoever looks for that is served with what can't.
        let commitment = value("commitment").and_then(|level| parse_commitment(&level).ok());
        Self { url: value("json_rpc_url"), keypair, commitment }
    }
}

/// Where the settings file of this tool is by default: `~/.config/committor/settings.toml`.
pub fn default_settings_path() -> Option<PathBuf> {
    Some(home()?.join(".config/committor/settings.toml"))
}

/// Where the keypair is by default: `~/.config/solana/id.json`.
pub fn default_keypair_path() -> Option<PathBuf> {
    Some(home()?.join(".config/solana/id.json"))
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_number_and_a_unit() {
        assert_eq!(parse_age("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_age("30d").unwrap(), Duration::from_secs(30 * 86_400));
        for wrong in [
            "",
            "d",
            "30",
            "-1d",
            "+1d",
            "1.5h",
            "1dd",
            "30 d",
            "99999999999999999999s",
            "9999999999999999999d",
        ] {
            assert!(matches!(parse_age(wrong), Err(ConfigError::Age(text)) if text == wrong), "{wrong}");
        }
    }

    #[test]
    fn clusters_by_moniker_letter_and_url() {
        for name in ["m", "mainnet", "mainnet-beta"] {
            assert_eq!(cluster_url(name).unwrap(), "https://api.mainnet-beta.solana.com");
        }
        assert_eq!(cluster_url("l").unwrap(), "http://localhost:8899");
        assert_eq!(cluster_url("http://10.0.0.1:1234").unwrap(), "http://10.0.0.1:1234");
        assert!(matches!(cluster_url("mainet"), Err(ConfigError::Cluster(name)) if name == "mainet"));
        assert!(cluster_url("").is_err() && cluster_url("ws://x").is_err());
    }

    #[test]
    fn the_solana_configuration_file_is_understood() {
        let text = "---\njson_rpc_url: https://api.devnet.solana.com\nwebsocket_url: ''\n\
                    keypair_path: /home/a b/id.json\ncommitment: finalized\naddress_labels:\n  json_rpc_url: no\n";
        let config = SolanaConfig::parse(text);
        assert_eq!(config.url.as_deref(), Some("https://api.devnet.solana.com"));
        assert_eq!(config.keypair, Some(KeypairSource::File("/home/a b/id.json".into())));
        assert_eq!(config.commitment, Some(CommitmentConfig::finalized()));
        assert_eq!(SolanaConfig::parse("commitment: processed").commitment, None);
        assert_eq!(
            SolanaConfig::parse("keypair_path: ASK").keypair,
            Some(KeypairSource::Phrase { path: None })
        );
        assert_eq!(SolanaConfig::parse("json_rpc_url: ''"), SolanaConfig::default());
    }
}
