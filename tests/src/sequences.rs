//! Property tests of sequences of instructions.

use std::env;

use proptest::prelude::ProptestConfig;

/// Sequences that are tried, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 64;

/// The configuration of a property test that sends many transactions per case.
pub fn proptest_config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if env::var_os("PROPTEST_CASES").is_some() { default.cases } else { CASES };
    ProptestConfig { cases, failure_persistence: None, ..default }
}
