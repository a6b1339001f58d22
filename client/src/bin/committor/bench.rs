//! Benchmarks of the library, on a validator of their own. Each prints figures and a ratio; none passes or fails by the clock.

mod commit;
pub mod confirm;
mod crypto;
mod faults;
mod in_flight;
mod plan;
mod proxy;
mod send;
mod statistics;
pub mod upload;

use crate::{
    args::{Bench, Benchmark, Global},
    exit::{CommandError, Kind},
};

pub async fn run(global: &Global, command: &Bench) -> Result<Kind, CommandError> {
    match &command.benchmark {
        Benchmark::Commit(options) => commit::run(global, options).await,
        Benchmark::Confirm(options) => confirm::run(global, options).await,
        Benchmark::Crypto(options) => crypto::run(global, options),
        Benchmark::Faults(options) => faults::run(global, options).await,
        Benchmark::InFlight(options) => in_flight::run(global, options).await,
        Benchmark::Plan(options) => plan::run(global, options),
        Benchmark::Send(options) => send::run(global, options).await,
        Benchmark::Proxy(options) => proxy::run(global, options).await,
        Benchmark::Upload(options) => upload::run(global, options).await,
    }
}
