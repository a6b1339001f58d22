//! Writes the checked-in seeds: `cargo run --features delegation --bin seeds`.

use std::fs;
use std::path::Path;

fn main() {
    for seed in programs_fuzz::seeds::all() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(seed.target);
        fs::create_dir_all(&folder).expect("the corpus can be written to");
        fs::write(folder.join(seed.name), seed.bytes).expect("the corpus can be written to");
    }
}
