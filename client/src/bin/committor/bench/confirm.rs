//! What the chain layer costs: the confirmation of one transfer beside a bare websocket's, the status calls that many
//! transactions in flight take, and the memory that many transactions leave behind.

mod latency;
mod memory;
mod status_calls;
mod transfers;

use std::time::Duration;

use committor_client::chain::RpcSettings;
use committor_localnet::Localnet;
use serde::Serialize;

use crate::{
    args::{Global, Output},
    exit::{CommandError, Kind},
    output,
};

/// Measure what the chain layer adds to a transfer's confirmation, what it asks for, and what it keeps
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The bare websocket subscribes to a signature on a connection of its own before it sends the transaction, and does nothing else.
It runs twice: how far the two are apart is the noise.")]
pub struct Confirm {
    /// Rounds; a ratio is of the medians of one round
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Transfers of each arm in a round
    #[arg(long, value_name = "COUNT", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: u32,
    /// Transactions in flight while status calls are counted
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub in_flight: u32,
    /// For how long status calls are counted
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub seconds: u16,
    /// Transactions through one chain while its memory is looked at
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10..))]
    pub transactions: u64,
    /// Time between two blocks of the local validators
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    pub slot_ms: u16,
}

#[derive(Serialize)]
struct Figures {
    slot_ms: u16,
    latency: Vec<latency::Row>,
    status_calls: status_calls::Figures,
    memory: memory::Figures,
}

pub async fn run(global: &Global, options: &Confirm) -> Result<Kind, CommandError> {
    global.refuse(
        "bench confirm",
        &["--url", "--ws", "--config", "--keypair", "--fee-payer", "--commitment"],
    )?;
    let slot_time = Duration::from_millis(options.slot_ms.into());
    let localnet = super::super::localnet::start(Localnet::builder().slot_time(slot_time)).await?;
    let rpc = RpcSettings {
        websocket_url: Some(localnet.ws_url().to_owned()),
        ..RpcSettings::new(localnet.rpc_url())
    };
    let latency = latency::measure(&rpc, localnet.payer(), options).await?;
    let status_calls = status_calls::measure(&localnet, options).await?;
    drop(localnet);
    let memory = memory::measure(options).await?;
    let figures = Figures { slot_ms: options.slot_ms, latency, status_calls, memory };
    match global.output {
        Output::Display => output::print(&display(&figures))?,
        form => output::json(&figures, form)?,
    }
    Ok(Kind::Success)
}

fn display(figures: &Figures) -> String {
    let mut latency = output::table([
        "microseconds",
        "n",
        "median",
        "min",
        "max",
        "average",
        "95th",
        "99th",
        "deviation",
        "ratio",
        "least",
        "most",
    ]);
    for row in &figures.latency {
        let ratios = [row.ratios.median_ratio, row.ratios.min_ratio, row.ratios.max_ratio];
        let ratios = ratios.map(|ratio| format!("{ratio:.2}"));
        latency.add_row(row.statistics.row(row.arm).into_iter().chain(ratios));
    }
    output::align_right(&mut latency, 1..12);
    let mut memory = output::table(["transactions", "resident bytes"]);
    for sample in &figures.memory.samples {
        let resident = sample.resident_bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
        memory.add_row([sample.transactions.to_string(), resident]);
    }
    output::align_right(&mut memory, 0..2);
    let calls = &figures.status_calls;
    format!(
        "Slots of {} ms; ratios of medians to the first row, by round.\n{latency}\n\
         {} transactions in flight, none of which lands: {:.2} status calls per second without a websocket.\n{memory}\n\
         {:.0} transactions per second; {} signed anew.\n",
        figures.slot_ms,
        calls.in_flight,
        calls.calls_per_second,
        figures.memory.per_second,
        figures.memory.expired
    )
}
