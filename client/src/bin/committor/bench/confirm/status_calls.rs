//! How often statuses are asked for while many transactions are in flight.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use committor_client::chain::{Chain, RpcChain, RpcSettings};
use committor_faults::{Fault, FaultProxy, Rule};
use committor_localnet::Localnet;
use serde::Serialize;
use solana_keypair::Keypair;
use solana_signer::Signer;
use tokio::task::JoinSet;

use super::{
    Confirm,
    transfers::{cluster, signed},
};
use crate::exit::{CommandError, Kind};

const METHOD: &str = "getSignatureStatuses";
/// How often it is looked whether all are in flight.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Serialize)]
pub struct Figures {
    pub in_flight: u32,
    pub seconds: f64,
    pub calls: u64,
    pub calls_per_second: f64,
}

/// Without a websocket, and behind a proxy that drops what is sent: everything has to be asked for, again and again.
pub async fn measure(localnet: &Localnet, options: &Confirm) -> Result<Figures, CommandError> {
    let proxy = FaultProxy::start(localnet.rpc_url(), localnet.ws_url(), 1)
        .await
        .map_err(|error| CommandError::new(Kind::Other, error))?;
    proxy.add(Rule::new(Fault::DropSend).on("sendTransaction"));
    let settings = RpcSettings { websocket_url: None, ..RpcSettings::new(proxy.rpc_url()) };
    let chain = Arc::new(RpcChain::new(settings));
    let mut recent = chain.recent_blockhash().await.map_err(cluster)?;
    // None is to expire meanwhile.
    recent.last_valid_block_height = u64::MAX;
    let receiver = Keypair::new().pubkey();
    let mut landings = JoinSet::new();
    for number in 0..options.in_flight {
        let transaction = signed(localnet.payer(), &receiver, number.into(), recent)?;
        let chain = chain.clone();
        landings.spawn(async move { chain.land(transaction).await });
    }
    while chain.stats().requests_of("sendTransaction") < u64::from(options.in_flight) {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    let (started, before) = (Instant::now(), chain.stats().requests_of(METHOD));
    tokio::time::sleep(Duration::from_secs(options.seconds.into())).await;
    let (elapsed, calls) = (started.elapsed().as_secs_f64(), chain.stats().requests_of(METHOD) - before);
    chain.shutdown().await;
    // They are told that nobody waits for them any more.
    landings.join_all().await;
    Ok(Figures {
        in_flight: options.in_flight,
        seconds: elapsed,
        calls,
        calls_per_second: calls as f64 / elapsed,
    })
}
