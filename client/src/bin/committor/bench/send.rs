//! How many connections to send over: what lands per second through a node and through a leader's TPU, by the number of
//! connections, the distance, and what is lost on the way.
//!
//! The validator is a local one, with Solana's QUIC server before it; the distance and the losses are made between here and
//! there. Numbers of connections are interleaved within each repeat.

use std::{
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use committor_client::chain::{Chain, ChainError, RpcChain, RpcSettings, SignedTransaction, TpuSettings};
use committor_faults::{Fault, FaultProxy, Rule, Tpu, TpuSettings as ServerSettings, UdpRelay};
use committor_localnet::Localnet;
use futures::{StreamExt, stream};
use serde::Serialize;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;

use crate::{
    args::{BenchSend, Global, Output, SendVia},
    exit::{CommandError, Kind},
    output,
};

/// What is counted together for the highest rate.
const WINDOW: Duration = Duration::from_millis(500);

/// What became of the transactions of one run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Fate {
    sent: usize,
    landed: usize,
    expired: usize,
    failed: usize,
    pending: usize,
    /// How often one was sent again.
    resent: u64,
    average_tps: f64,
    maximum_tps: f64,
}

#[derive(Serialize)]
struct Row {
    via: &'static str,
    rtt_ms: u64,
    loss_percent: f64,
    connections: usize,
    /// Of all repeats together.
    sent: usize,
    landed: usize,
    expired: usize,
    failed: usize,
    pending: usize,
    /// Sends that were made again, per transaction.
    resent_rate: f64,
    /// What did not land, of what was sent.
    drop_rate: f64,
    /// Median over the repeats.
    average_tps: f64,
    min_tps: f64,
    max_tps: f64,
    /// The highest rate of any half second.
    maximum_tps: f64,
    /// The smallest number of connections that is within the noise of the best one here.
    recommended: bool,
}

struct World {
    localnet: Localnet,
    payer: Arc<Keypair>,
}

pub async fn run(global: &Global, options: &BenchSend) -> Result<Kind, CommandError> {
    let payer = Arc::new(Keypair::new());
    let builder = Localnet::builder()
        .slot_time(Duration::from_millis(options.slot_ms.into()))
        .airdrop(payer.pubkey(), u64::MAX / 4);
    let world = World { localnet: super::super::localnet::start(builder).await?, payer };
    let mut rows = Vec::new();
    for rtt_ms in &options.rtt {
        for loss_percent in &options.loss {
            for via in &options.via {
                let mut fates = vec![Vec::new(); options.connections.len()];
                for _ in 0..options.repeats {
                    for (connections, fates) in options.connections.iter().zip(&mut fates) {
                        let run = world.run(*via, *connections, *rtt_ms, *loss_percent, options);
                        fates.push(run.await?);
                    }
                }
                rows.extend(summary(*via, *rtt_ms, *loss_percent, &options.connections, &fates));
            }
        }
    }
    let lost = rows.iter().any(|row| row.sent != row.landed + row.expired + row.failed + row.pending);
    match global.output {
        Output::Display => output::print(&display(&rows, options))?,
        form => output::json(&serde_json::json!({ "rows": rows }), form)?,
    }
    if lost {
        return Err(CommandError::new(Kind::Other, "transactions were sent that nobody knows of"));
    }
    Ok(Kind::Success)
}

impl World {
    async fn run(
        &self,
        via: SendVia,
        connections: NonZeroUsize,
        rtt_ms: u64,
        loss_percent: f64,
        options: &BenchSend,
    ) -> Result<Fate, CommandError> {
        let other = |error: &dyn std::fmt::Display| CommandError::new(Kind::Other, error.to_string());
        let rtt = Duration::from_millis(rtt_ms);
        let loss = loss_percent / 100.0;
        let (rpc_url, ws_url) = (self.localnet.rpc_url(), self.localnet.ws_url());
        let proxy = FaultProxy::start(rpc_url, ws_url, 1).await.map_err(|error| other(&error))?;
        if loss > 0.0 && via == SendVia::Rpc {
            proxy.add(Rule::new(Fault::DropSend).on("sendTransaction").chance(loss));
        }
        if rtt_ms > 0 {
            proxy.add(Rule::new(Fault::Delay(rtt)));
        }
        let server = ServerSettings { max_connections_per_peer: 64, ..ServerSettings::default() };
        let tpu = Tpu::start(rpc_url, server).map_err(|error| other(&error))?;
        let relay = UdpRelay::start(tpu.address(), rtt, loss, 1).await.map_err(|error| other(&error))?;
        let leaders = TpuSettings { connections, addresses: vec![relay.address()], ..TpuSettings::default() };
        let chain = RpcChain::new(RpcSettings {
            websocket_url: Some(proxy.ws_url().to_owned()),
            connections,
            tpu: (via == SendVia::Tpu).then_some(leaders),
            ..RpcSettings::new(proxy.rpc_url())
        });
        let fate = self.land(&chain, options).await;
        let resent = chain.stats().resent;
        chain.shutdown().await;
        // Its threads end by themselves.
        drop(tpu);
        Ok(Fate { resent, ..fate? })
    }

    async fn land(&self, chain: &RpcChain, options: &BenchSend) -> Result<Fate, CommandError> {
        let cluster = |error: ChainError| CommandError::new(Kind::Cluster, error);
        let recent = chain.recent_blockhash().await.map_err(cluster)?;
        let mut signed = Vec::with_capacity(options.transactions);
        for number in 0..options.transactions {
            let receiver = Keypair::new().pubkey();
            let instruction = transfer(&self.payer.pubkey(), &receiver, 1_000_000 + number as u64);
            let message =
                v0::Message::try_compile(&self.payer.pubkey(), &[instruction], &[], recent.blockhash)
                    .map_err(|error| CommandError::new(Kind::Other, error))?;
            let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), &[&*self.payer])
                .map_err(|error| CommandError::new(Kind::Other, error))?;
            let last_valid_block_height = recent.last_valid_block_height;
            signed.push(SignedTransaction { transaction, last_valid_block_height, preflight: false });
        }
        let started = Instant::now();
        let landing: Vec<_> = signed.into_iter().map(|transaction| chain.land(transaction)).collect();
        let mut outcomes = stream::iter(landing).buffer_unordered(options.in_flight);
        let mut fate = Fate { sent: options.transactions, ..Fate::default() };
        let mut landed_at = Vec::with_capacity(options.transactions);
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(_) => {
                    fate.landed += 1;
                    landed_at.push(started.elapsed());
                }
                Err(ChainError::Expired { .. }) => fate.expired += 1,
                Err(ChainError::Failed { .. } | ChainError::Refused { .. }) => fate.failed += 1,
                Err(_) => fate.pending += 1,
            }
        }
        let last = landed_at.last().copied().unwrap_or_default().as_secs_f64().max(f64::MIN_POSITIVE);
        fate.average_tps = fate.landed as f64 / last;
        fate.maximum_tps = highest(&landed_at).max(fate.average_tps);
        Ok(fate)
    }
}

/// The highest rate of any window, per second.
fn highest(landed_at: &[Duration]) -> f64 {
    let within = |(first, at): (usize, &Duration)| {
        landed_at[first..].iter().take_while(|later| **later - *at < WINDOW).count()
    };
    let most = landed_at.iter().enumerate().map(within).max().unwrap_or(0);
    most as f64 / WINDOW.as_secs_f64()
}

fn summary(
    via: SendVia,
    rtt_ms: u64,
    loss_percent: f64,
    connections: &[NonZeroUsize],
    fates: &[Vec<Fate>],
) -> Vec<Row> {
    let mut rows: Vec<Row> = connections
        .iter()
        .zip(fates)
        .map(|(connections, fates)| {
            let sum = |of: fn(&Fate) -> usize| fates.iter().map(of).sum::<usize>();
            let (sent, landed) = (sum(|fate| fate.sent), sum(|fate| fate.landed));
            let mut rates: Vec<f64> = fates.iter().map(|fate| fate.average_tps).collect();
            rates.sort_by(f64::total_cmp);
            let at = |index: usize| rates.get(index).copied().unwrap_or_default();
            let resent: u64 = fates.iter().map(|fate| fate.resent).sum();
            Row {
                via: via.name(),
                rtt_ms,
                loss_percent,
                connections: connections.get(),
                sent,
                landed,
                expired: sum(|fate| fate.expired),
                failed: sum(|fate| fate.failed),
                pending: sum(|fate| fate.pending),
                resent_rate: resent as f64 / sent.max(1) as f64,
                drop_rate: 1.0 - landed as f64 / sent.max(1) as f64,
                average_tps: at(rates.len() / 2),
                min_tps: at(0),
                max_tps: at(rates.len().saturating_sub(1)),
                maximum_tps: fates.iter().map(|fate| fate.maximum_tps).fold(0.0, f64::max),
                recommended: false,
            }
        })
        .collect();
    // The best one's own spread is the noise: whoever reaches into it is no worse.
    let best = rows.iter().max_by(|one, other| one.average_tps.total_cmp(&other.average_tps));
    let noise = best.map_or(0.0, |best| best.min_tps);
    let smallest = rows.iter_mut().filter(|row| row.average_tps >= noise).min_by_key(|row| row.connections);
    if let Some(row) = smallest {
        row.recommended = true;
    }
    rows
}

fn display(rows: &[Row], options: &BenchSend) -> String {
    let mut table = output::table([
        "via",
        "rtt",
        "loss",
        "connections",
        "tps",
        "min",
        "max",
        "peak",
        "landed",
        "expired",
        "failed",
        "pending",
        "dropped",
        "resent",
        "",
    ]);
    for row in rows {
        table.add_row([
            row.via.to_owned(),
            format!("{} ms", row.rtt_ms),
            format!("{} %", row.loss_percent),
            row.connections.to_string(),
            format!("{:.0}", row.average_tps),
            format!("{:.0}", row.min_tps),
            format!("{:.0}", row.max_tps),
            format!("{:.0}", row.maximum_tps),
            row.landed.to_string(),
            row.expired.to_string(),
            row.failed.to_string(),
            row.pending.to_string(),
            format!("{:.1} %", row.drop_rate * 100.0),
            format!("{:.2}", row.resent_rate),
            if row.recommended { "recommended" } else { "" }.to_owned(),
        ]);
    }
    output::align_right(&mut table, 1..14);
    format!(
        "{table}\n{} repeats of {} transfers, {} on their way at a time. Rates are what landed per second, medians over the repeats;\n\
         recommended is the smallest number of connections whose median is within the spread of the best one.\n",
        options.repeats, options.transactions, options.in_flight
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(rates: &[f64]) -> Vec<Fate> {
        rates.iter().map(|rate| Fate { average_tps: *rate, ..Fate::default() }).collect()
    }

    #[test]
    fn the_smallest_number_within_the_noise_is_recommended() {
        let connections: Vec<NonZeroUsize> =
            [1, 2, 4].map(|count| NonZeroUsize::new(count).unwrap()).to_vec();
        let recommended = |all: [&[f64]; 3]| {
            let rows = summary(SendVia::Rpc, 0, 0.0, &connections, &all.map(fates));
            rows.iter().filter(|row| row.recommended).map(|row| row.connections).collect::<Vec<_>>()
        };
        assert_eq!(recommended([&[10.0, 11.0, 12.0], &[19.0, 20.0, 21.0], &[18.0, 21.0, 22.0]]), [2]);
        assert_eq!(recommended([&[18.0, 18.5, 19.0], &[19.0, 20.0, 21.0], &[18.0, 21.0, 22.0]]), [1]);
        assert_eq!(recommended([&[1.0, 1.0, 1.0], &[2.0, 2.0, 2.0], &[3.0, 3.0, 3.0]]), [4]);
    }

    #[test]
    fn the_highest_rate_is_that_of_half_a_second() {
        let at: Vec<Duration> = [0, 100, 900, 1_000, 1_100, 1_399].map(Duration::from_millis).to_vec();
        assert_eq!(highest(&at), 8.0);
        assert_eq!(highest(&[]), 0.0);
    }
}
