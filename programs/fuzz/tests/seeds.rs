//! The checked-in seeds, without a fuzzer and on any toolchain.
#![cfg(feature = "delegation")]

use std::collections::BTreeSet;
use std::path::Path;

use programs_fuzz::seeds;

#[test]
fn every_seed_is_accepted() {
    for seed in seeds::all() {
        let outcome = seed.check();
        assert!(
            outcome.accepted(),
            "{}/{}: error {}, refused: {}",
            seed.target,
            seed.name,
            outcome.code,
            outcome.refused
        );
    }
}

#[test]
fn the_checked_in_seeds_are_the_generated_ones() {
    let mut expected = BTreeSet::new();
    for seed in seeds::all() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(seed.target).join(seed.name);
        let bytes = std::fs::read(&path);
        assert!(
            bytes.is_ok_and(|bytes| bytes == seed.bytes),
            "{} is not what `--bin seeds` writes",
            path.display()
        );
        assert!(expected.insert(path), "two seeds of one name");
    }
}
