//! Property tests of sequences of instructions.

use std::{
    env,
    hash::{BuildHasher, Hasher, RandomState},
};

use proptest::{prelude::ProptestConfig, test_runner::RngSeed};

/// Sequences that are tried, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 1_000;

/// The configuration of a property test that sends many transactions per case.
///
/// Prints the seed, which a failing test shows beside the shrunk sequence; `PROPTEST_RNG_SEED` gives one.
pub fn proptest_config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if env::var_os("PROPTEST_CASES").is_some() { default.cases } else { CASES };
    let seed = env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases}");
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..default }
}
