//! How long it takes from sending a transfer until it is known to be confirmed.

use std::time::{Duration, Instant};

use committor_client::chain::{Chain, RpcChain, RpcSettings, SignedTransaction};
use futures::StreamExt;
use serde::Serialize;
use solana_keypair::Keypair;
use solana_pubsub_client::nonblocking::pubsub_client::PubsubClient;
// What the chain layer is compared with can't go through it.
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::config::{RpcSendTransactionConfig, RpcSignatureSubscribeConfig};
use solana_signer::Signer;

use super::{
    super::statistics::{Ratios, Statistics},
    Confirm,
    transfers::{cluster, signed},
};
use crate::exit::CommandError;

const ARMS: [&str; 3] = ["bare websocket", "bare websocket again", "this layer"];

#[derive(Serialize)]
pub struct Row {
    pub arm: &'static str,
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Medians of this arm over those of the first one, by round.
    #[serde(flatten)]
    pub ratios: Ratios,
}

/// Measures every arm in each repeat, beginning with another one each time.
pub async fn measure(
    rpc: &RpcSettings,
    payer: &Keypair,
    options: &Confirm,
) -> Result<Vec<Row>, CommandError> {
    let chain = RpcChain::new(rpc.clone());
    let client = RpcClient::new_with_commitment(rpc.url.clone(), rpc.commitment);
    // One that is not counted each: connections are made, and programs are loaded.
    for (number, arm) in (0..).zip(ARMS) {
        time(arm, &chain, &client, rpc, transfer(&chain, payer, number).await?).await?;
    }
    let mut number = ARMS.len() as u64;
    let mut rounds: Vec<Vec<Vec<Duration>>> = Vec::new();
    for _ in 0..options.rounds {
        let mut times = vec![Vec::new(); ARMS.len()];
        for repeat in 0..options.repeats as usize {
            for turn in 0..ARMS.len() {
                let arm = (repeat + turn) % ARMS.len();
                let transaction = transfer(&chain, payer, number).await?;
                number += 1;
                times[arm].push(time(ARMS[arm], &chain, &client, rpc, transaction).await?);
            }
        }
        rounds.push(times);
    }
    chain.shutdown().await;
    let median = |times: &Vec<Duration>| {
        let mut times = times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    let row = |(index, arm): (usize, &'static str)| Row {
        arm,
        statistics: Statistics::of(rounds.iter().flat_map(|times| times[index].iter().copied())),
        ratios: Ratios::of(rounds.iter().map(|times| (median(&times[index]), median(&times[0])))),
    };
    Ok(ARMS.into_iter().enumerate().map(row).collect())
}

/// One to a new account, signed before the clock starts.
async fn transfer(chain: &RpcChain, payer: &Keypair, number: u64) -> Result<SignedTransaction, CommandError> {
    let recent = chain.recent_blockhash().await.map_err(cluster)?;
    signed(payer, &Keypair::new().pubkey(), number, recent)
}

async fn time(
    arm: &str,
    chain: &RpcChain,
    client: &RpcClient,
    rpc: &RpcSettings,
    transaction: SignedTransaction,
) -> Result<Duration, CommandError> {
    if arm == ARMS[2] {
        let started = Instant::now();
        chain.land(transaction).await.map_err(cluster)?;
        return Ok(started.elapsed());
    }
    let url = rpc.websocket_url.as_deref().unwrap_or_default();
    let websocket = PubsubClient::new(url).await.map_err(cluster)?;
    let config = RpcSignatureSubscribeConfig {
        commitment: Some(rpc.commitment),
        enable_received_notification: Some(false),
    };
    let signature = transaction.signature();
    let subscribed = websocket.signature_subscribe(&signature, Some(config)).await;
    let (mut notifications, unsubscribe) = subscribed.map_err(cluster)?;
    let config = RpcSendTransactionConfig {
        preflight_commitment: Some(rpc.commitment.commitment),
        ..RpcSendTransactionConfig::default()
    };
    let started = Instant::now();
    client.send_transaction_with_config(&transaction.transaction, config).await.map_err(cluster)?;
    notifications.next().await;
    let elapsed = started.elapsed();
    unsubscribe().await;
    drop(notifications);
    Ok(elapsed)
}
