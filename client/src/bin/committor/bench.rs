//! Benchmarks of the library, without a cluster. Each prints figures and a ratio; none passes or fails by the clock.

mod plan;

use crate::{
    args::{Bench, Benchmark, Global},
    exit::{CommandError, Kind},
};

pub fn run(global: &Global, command: &Bench) -> Result<Kind, CommandError> {
    match &command.benchmark {
        Benchmark::Plan(options) => plan::run(global, options),
    }
}
