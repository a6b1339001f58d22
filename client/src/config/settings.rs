//! How the engine is told to work: by a settings file, and by options that go before it.

use std::{path::Path, str::FromStr, time::Duration};

use serde::Deserialize;

use super::{ConfigError, cluster_url, parse_age};
use crate::{
    engine::{EngineSettings, tables::TableSettings},
    types::{ComputeLimit, PriorityFee, Stage, TransactionVersion},
};

/// What a settings file holds, or the options of a command line. What is absent is left as it is.
///
/// The file is TOML; every key can be left out:
///
/// ```toml
/// urls = ["mainnet"]               # endpoints of one cluster, the best first
/// transaction_version = "v1"       # or "v0"; by default v1 where the cluster has it
/// bundles_in_flight = 128          # bundles that are worked on at a time
/// simulation = "node"              # or "proxy": bundles are rehearsed in this process before they cost anything
/// transactions_in_flight = 64      # transactions of one bundle that are on their way at a time
/// attempts = 5                     # tries of a bundle in all, as long as its errors may pass
/// first_retry_delay_ms = 250       # the wait before the second one, which doubles each time
/// max_retry_delay_ms = 10000       # up to this
/// retry_for = "1h"                 # how long after its submission a bundle is tried again; by default as long as it has tries
/// coalesce = false                 # whether a bundle that waits gives way to a newer one of its accounts
/// share_transactions = true        # whether small bundles of a changeset share transactions
/// keep = "30d"                     # how long changesets that have ended are kept; by default for ever
///
/// [commit]                         # likewise [prepare], [finalize] and [cleanup]
/// compute = "table"                # or "simulate", or a number of compute units, in quotes
/// priority_fee = "p75:100000"      # the 75th percentile of recent fees, at most 100,000; or a price, in quotes
///
/// [tables]                         # lookup tables, which only v0 transactions use
/// idle_time = "1h"                 # how long nobody must have needed one before it is closed
/// slot_poll_interval_ms = 100      # how often the slot is asked for while one is waited for
/// slot_patience = "60s"            # for how long the cluster may make no slot
/// attempts = 5                     # tries to get addresses into tables
/// upkeep_interval = "60s"          # time between two rounds of upkeep
/// priority_fee = "0"               # of the transactions that make, fill and close tables
/// ```
///
/// Prices are in micro-lamports per compute unit. `docs/settings.md` describes every key.
///
/// ```
/// use committor_client::{EngineSettings, config::EngineOptions, types::{ComputeLimit, PriorityFee}};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("settings.toml");
/// std::fs::write(&path, "attempts = 9\n[commit]\ncompute = \"simulate\"\npriority_fee = \"p75:100000\"\n")?;
/// let mut settings = EngineSettings::default();
/// EngineOptions::load(&path)?.apply(&mut settings)?;
/// assert_eq!(settings.attempts, 9);
/// assert_eq!(settings.budgets.commit.compute, ComputeLimit::Simulate);
/// assert_eq!(settings.budgets.commit.priority_fee, PriorityFee::Percentile { percentile: 75, cap: 100_000 });
/// // What the file does not name is left as it is.
/// assert_eq!(settings.budgets.prepare.compute, ComputeLimit::Table);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineOptions {
    /// Endpoints of the cluster, by URL or moniker, the best first. Not the engine's: see [`RpcSettings::of`](crate::chain::RpcSettings::of).
    pub urls: Option<Vec<String>>,
    /// Where transactions are simulated. Not the engine's: see `RpcSettings::proxy`.
    pub simulation: Option<Simulation>,
    /// The transaction format: `v0` or `v1`.
    pub transaction_version: Option<TransactionVersion>,
    /// See [`EngineSettings::bundles_in_flight`].
    pub bundles_in_flight: Option<usize>,
    /// See [`EngineSettings::transactions_in_flight`].
    pub transactions_in_flight: Option<usize>,
    /// See [`EngineSettings::attempts`].
    pub attempts: Option<u32>,
    /// See [`EngineSettings::first_retry_delay`].
    pub first_retry_delay_ms: Option<u32>,
    /// See [`EngineSettings::max_retry_delay`].
    pub max_retry_delay_ms: Option<u32>,
    /// See [`EngineSettings::retry_for`].
    pub retry_for: Option<String>,
    /// See [`EngineSettings::coalesce`].
    pub coalesce: Option<bool>,
    /// See [`EngineSettings::share_transactions`].
    pub share_transactions: Option<bool>,
    /// See [`EngineSettings::keep`].
    pub keep: Option<String>,
    /// Limits and fees of what creates, writes and seals buffers.
    #[serde(default)]
    pub prepare: BudgetOptions,
    /// Those of what applies or stages bundles.
    #[serde(default)]
    pub commit: BudgetOptions,
    /// Those of what applies staged bundles.
    #[serde(default)]
    pub finalize: BudgetOptions,
    /// Those of what closes buffers.
    #[serde(default)]
    pub cleanup: BudgetOptions,
    /// How lookup tables are managed.
    #[serde(default)]
    pub tables: TableOptions,
}

/// How lookup tables are managed: [`TableSettings`](crate::engine::tables::TableSettings).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableOptions {
    /// How long nobody must have needed a table before it is closed, as `1h`.
    pub idle_time: Option<String>,
    /// How often the slot is asked for while one is waited for, in milliseconds.
    pub slot_poll_interval_ms: Option<u32>,
    /// For how long the cluster may make no slot, as `60s`.
    pub slot_patience: Option<String>,
    /// How often a reservation tries to get its addresses into tables.
    pub attempts: Option<u32>,
    /// Time between two rounds of upkeep, as `60s`.
    pub upkeep_interval: Option<String>,
    /// A price in micro-lamports per compute unit, or `pN:CAP`.
    pub priority_fee: Option<String>,
}

impl TableOptions {
    /// Lengths of time, by key.
    fn times(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("idle_time", &self.idle_time),
            ("slot_patience", &self.slot_patience),
            ("upkeep_interval", &self.upkeep_interval),
        ]
    }

    /// Names the key that is wrong, and why.
    fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, text) in self.times() {
            if let Some(text) = text {
                parse_age(text).map_err(|error| (key, error.to_string()))?;
            }
        }
        if let Some(text) = &self.priority_fee {
            text.parse::<PriorityFee>().map_err(|error| ("priority_fee", error.to_string()))?;
        }
        let zero = "expected at least 1".to_owned();
        match (self.attempts, self.slot_poll_interval_ms) {
            (Some(0), _) => Err(("attempts", zero)),
            (_, Some(0)) => Err(("slot_poll_interval_ms", zero)),
            _ => Ok(()),
        }
    }

    fn apply(&self, settings: &mut TableSettings) -> Result<(), ConfigError> {
        let fields = [&mut settings.idle_time, &mut settings.slot_patience, &mut settings.upkeep_interval];
        for ((_, text), field) in self.times().into_iter().zip(fields) {
            if let Some(text) = text {
                *field = parse_age(text)?;
            }
        }
        if let Some(interval) = self.slot_poll_interval_ms {
            settings.slot_poll_interval = Duration::from_millis(interval.into());
        }
        settings.attempts = self.attempts.unwrap_or(settings.attempts);
        if let Some(text) = &self.priority_fee {
            settings.priority_fee = text.parse()?;
        }
        Ok(())
    }
}

/// Where transactions are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Simulation {
    /// By the node.
    #[default]
    Node,
    /// In this process, on accounts fetched from the node.
    Proxy,
}

/// Limits and fees of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetOptions {
    /// `table`, `simulate` or a number of compute units.
    pub compute: Option<String>,
    /// A price in micro-lamports per compute unit, or `pN:CAP`.
    pub priority_fee: Option<String>,
}

/// A value for one stage (`commit=simulate`) or for all of them (`simulate`).
///
/// ```
/// use committor_client::{config::StageOption, types::{ComputeLimit, Stage}};
///
/// let option: StageOption<ComputeLimit> = "commit=20000".parse()?;
/// assert_eq!(option, StageOption { stage: Some(Stage::Commit), value: ComputeLimit::Fixed(20_000) });
/// let error = "comit=20000".parse::<StageOption<ComputeLimit>>().unwrap_err();
/// assert_eq!(error.to_string(), "`comit` is no stage: expected prepare, commit, finalize or cleanup");
/// # Ok::<(), committor_client::config::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageOption<T> {
    /// The stage; `None` for all.
    pub stage: Option<Stage>,
    /// The value.
    pub value: T,
}

impl<T: FromStr> FromStr for StageOption<T>
where
    ConfigError: From<T::Err>,
{
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let Some((stage, value)) = text.split_once('=') else {
            return Ok(Self { stage: None, value: text.parse()? });
        };
        let found = Stage::ALL.into_iter().find(|found| found.as_str() == stage);
        Ok(Self {
            stage: Some(found.ok_or_else(|| ConfigError::Stage(stage.to_owned()))?),
            value: value.parse()?,
        })
    }
}

/// An error about an unknown key, with the known one that is most like it.
fn with_nearest(error: &str) -> String {
    let error = error.trim_end();
    let nearest = || {
        let mut words = error.rsplit_once("unknown field `")?.1.split('`').step_by(2);
        let unknown = words.next()?;
        let likeness = |known: &&str| strsim::normalized_damerau_levenshtein(unknown, known);
        words
            .filter(|known| likeness(known) > 0.5)
            .max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
    };
    nearest().map_or_else(|| error.to_owned(), |known| format!("{error}\ndid you mean `{known}`?"))
}

impl EngineOptions {
    /// Reads a settings file.
    ///
    /// # Errors
    /// [`ConfigError::SettingsFile`] if it can't be read, [`ConfigError::Settings`] names the key that is wrong.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| ConfigError::SettingsFile { path: path.to_owned(), source })?;
        let refuse = |reason: String| ConfigError::Settings { path: path.to_owned(), reason };
        let options: Self =
            toml::from_str(&text).map_err(|error| refuse(with_nearest(&error.to_string())))?;
        for (key, text) in [("keep", &options.keep), ("retry_for", &options.retry_for)] {
            if let Some(text) = text {
                parse_age(text).map_err(|error| refuse(format!("`{key}`: {error}")))?;
            }
        }
        let zero = [
            ("bundles_in_flight", options.bundles_in_flight == Some(0)),
            ("transactions_in_flight", options.transactions_in_flight == Some(0)),
            ("attempts", options.attempts == Some(0)),
            ("first_retry_delay_ms", options.first_retry_delay_ms == Some(0)),
            ("max_retry_delay_ms", options.max_retry_delay_ms == Some(0)),
        ];
        if let Some((key, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(refuse(format!("`{key}` is 0, expected at least 1")));
        }
        if options.urls.as_ref().is_some_and(Vec::is_empty) {
            return Err(refuse("`urls` is empty, expected at least one URL or moniker".to_owned()));
        }
        for url in options.urls.iter().flatten() {
            cluster_url(url).map_err(|error| refuse(format!("`urls`: {error}")))?;
        }
        options.tables.check().map_err(|(key, reason)| refuse(format!("`{key}` of [tables]: {reason}")))?;
        for stage in Stage::ALL {
            let budget = options.budget(stage);
            let at = |key: &str, error: &dyn std::fmt::Display| {
                refuse(format!("`{key}` of [{}]: {error}", stage.as_str()))
            };
            if let Some(text) = &budget.compute {
                text.parse::<ComputeLimit>().map_err(|error| at("compute", &error))?;
            }
            if let Some(text) = &budget.priority_fee {
                text.parse::<PriorityFee>().map_err(|error| at("priority_fee", &error))?;
            }
        }
        Ok(options)
    }

    const fn budget(&self, stage: Stage) -> &BudgetOptions {
        match stage {
            Stage::Prepare => &self.prepare,
            Stage::Commit => &self.commit,
            Stage::Finalize => &self.finalize,
            Stage::Cleanup => &self.cleanup,
        }
    }

    /// Puts what is there into `settings`.
    ///
    /// # Errors
    /// [`ConfigError::Budget`] if a limit or a fee is none, [`ConfigError::Age`] if a length of time is none.
    pub fn apply(&self, settings: &mut EngineSettings) -> Result<(), ConfigError> {
        settings.version = self.transaction_version.or(settings.version);
        let numbers = [
            (self.bundles_in_flight, &mut settings.bundles_in_flight),
            (self.transactions_in_flight, &mut settings.transactions_in_flight),
        ];
        for (option, setting) in numbers {
            *setting = option.unwrap_or(*setting);
        }
        settings.attempts = self.attempts.unwrap_or(settings.attempts);
        let delays = [
            (self.first_retry_delay_ms, &mut settings.first_retry_delay),
            (self.max_retry_delay_ms, &mut settings.max_retry_delay),
        ];
        for (option, setting) in delays {
            *setting = option.map_or(*setting, |delay| Duration::from_millis(delay.into()));
        }
        if let Some(text) = &self.retry_for {
            settings.retry_for = Some(parse_age(text)?);
        }
        settings.coalesce = self.coalesce.unwrap_or(settings.coalesce);
        settings.share_transactions = self.share_transactions.unwrap_or(settings.share_transactions);
        if let Some(text) = &self.keep {
            settings.keep = Some(parse_age(text)?);
        }
        for stage in Stage::ALL {
            let (option, budget) = (self.budget(stage), settings.budgets.of_mut(stage));
            if let Some(text) = &option.compute {
                budget.compute = text.parse()?;
            }
            if let Some(text) = &option.priority_fee {
                budget.priority_fee = text.parse()?;
            }
        }
        self.tables.apply(&mut settings.tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<EngineOptions, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, text).unwrap();
        EngineOptions::load(&path)
    }

    #[test]
    fn a_settings_file_changes_what_it_names_and_nothing_else() {
        let text = "transaction_version = \"v0\"\ncoalesce = true\n[commit]\ncompute = \"simulate\"\n\
                    priority_fee = \"p50:7\"\n[prepare]\ncompute = \"5000\"\n";
        let mut settings = EngineSettings::default();
        load(text).unwrap().apply(&mut settings).unwrap();
        assert_eq!((settings.version, settings.coalesce), (Some(TransactionVersion::V0), true));
        assert_eq!(settings.budgets.commit.compute, ComputeLimit::Simulate);
        let fee = PriorityFee::Percentile { percentile: 50, cap: 7 };
        assert_eq!(settings.budgets.commit.priority_fee, fee);
        assert_eq!(settings.budgets.prepare.compute, ComputeLimit::Fixed(5_000));
        assert_eq!(settings.budgets.cleanup, Default::default());
        assert_eq!(settings.attempts, EngineSettings::default().attempts);
    }

    #[test]
    fn the_file_in_the_documentation_is_the_defaults() {
        let page = include_str!("../../../docs/settings.md");
        let (_, file) = page.split_once("```toml\n").unwrap();
        let (file, _) = file.split_once("```").unwrap();
        let mut settings = EngineSettings::default();
        load(file).unwrap().apply(&mut settings).unwrap();
        let defaults = EngineSettings { version: Some(TransactionVersion::V1), ..EngineSettings::default() };
        assert_eq!(format!("{settings:?}"), format!("{defaults:?}"));
        let file = toml::from_str::<toml::Table>(file).unwrap();
        for key in file.keys().chain(file["tables"].as_table().unwrap().keys()) {
            assert!(page.matches(&format!("`{key}`")).count() > 0, "{key} is described");
        }
    }

    #[test]
    fn what_is_wrong_in_a_settings_file_is_named() {
        let cases = [
            ("colaesce = true", "unknown field `colaesce`"),
            ("[comit]", "unknown field `comit`"),
            ("[commit]\ncompute = \"much\"", "`compute` of [commit]: `much` is no compute-unit limit"),
            (
                "[cleanup]\npriority_fee = \"p101:1\"",
                "`priority_fee` of [cleanup]: `p101:1` is no priority fee",
            ),
            ("keep = \"a month\"", "`keep`: `a month` is no length of time"),
            ("transaction_version = \"v2\"", "unknown variant `v2`"),
            ("attempts = -1", "invalid value"),
            ("bundles_in_flight = 0", "`bundles_in_flight` is 0"),
            ("transactions_in_flight = 0", "`transactions_in_flight` is 0"),
            ("attempts = 0", "`attempts` is 0"),
            ("first_retry_delay_ms = 0", "`first_retry_delay_ms` is 0"),
            ("max_retry_delay_ms = 0", "`max_retry_delay_ms` is 0"),
            ("max_retry_delay_ms = 1.5", "invalid type"),
            ("retry_for = \"an hour\"", "`retry_for`: `an hour` is no length of time"),
            ("urls = []", "`urls` is empty"),
            ("urls = [\"d\", \"mainet\"]", "`urls`: `mainet` is no cluster"),
            ("[tables]\nidle_time = \"long\"", "`idle_time` of [tables]: `long` is no length of time"),
            ("[tables]\npriority_fee = \"much\"", "`priority_fee` of [tables]: `much` is no priority fee"),
            ("[tables]\nattempts = 0", "`attempts` of [tables]: expected at least 1"),
            (
                "[tables]\nslot_poll_interval_ms = 0",
                "`slot_poll_interval_ms` of [tables]: expected at least 1",
            ),
            ("[tables]\nidle = \"1h\"", "unknown field `idle`"),
        ];
        for (text, expected) in cases {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(matches!(EngineOptions::load(Path::new("/none")), Err(ConfigError::SettingsFile { .. })));
    }

    #[test]
    fn an_option_is_for_one_stage_or_for_all() {
        let parse = |text: &str| text.parse::<StageOption<ComputeLimit>>();
        assert_eq!(parse("simulate").unwrap(), StageOption { stage: None, value: ComputeLimit::Simulate });
        let commit = StageOption { stage: Some(Stage::Commit), value: ComputeLimit::Fixed(9) };
        assert_eq!(parse("commit=9").unwrap(), commit);
        assert!(matches!(parse("comit=9"), Err(ConfigError::Stage(stage)) if stage == "comit"));
        assert!(matches!(parse("commit="), Err(ConfigError::Budget(_))));
    }
}
