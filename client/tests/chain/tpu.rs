//! Sending to a leader over QUIC: Solana's own server before the validator, or the validator's own.

use std::num::NonZeroUsize;

use committor_client::chain::{Chain, ChainError, RpcChain, RpcSettings, SignedTransaction, TpuSettings};
use committor_faults::{Tpu, TpuSettings as ServerSettings};
use committor_localnet::Validator;
use futures::{StreamExt, stream};

use crate::world::{LAMPORTS, World};

/// Transactions of a scenario.
const TRANSACTIONS: u64 = 200;

/// A chain layer that sends to a server, from a world on the embedded validator, which has none of its own.
async fn chain(connections: usize, server: ServerSettings) -> (World, Tpu, RpcChain) {
    let world = World::new(Validator::Embedded).await;
    let tpu = Tpu::start(world.localnet.rpc_url(), server).unwrap();
    let settings = TpuSettings {
        connections: NonZeroUsize::new(connections).unwrap(),
        addresses: vec![tpu.address()],
        ..TpuSettings::default()
    };
    let chain = RpcChain::new(RpcSettings { tpu: Some(settings), ..world.settings() });
    (world, tpu, chain)
}

/// Transfers to accounts that have nothing yet, which no node has to look at before.
async fn transfers(world: &World) -> Vec<SignedTransaction> {
    let mut transfers = Vec::new();
    for number in 0..TRANSACTIONS {
        let transfer = world.transfer(world.address(number)).await;
        transfers.push(SignedTransaction { preflight: false, ..transfer });
    }
    transfers
}

/// Lands all of them, and sees to it that each has landed once.
async fn land(world: &World, chain: &RpcChain, transfers: Vec<SignedTransaction>) {
    let landing: Vec<_> = transfers.into_iter().map(|transfer| chain.land(transfer)).collect();
    let landed: Vec<_> = stream::iter(landing).buffer_unordered(64).collect().await;
    for landed in landed {
        landed.unwrap();
    }
    for number in 0..TRANSACTIONS {
        assert_eq!(world.balance(world.address(number)).await, LAMPORTS, "{number}");
    }
}

/// The embedded validator has no leaders, so there it is a server; elsewhere it is whoever the schedule names.
async fn transactions_land_by_way_of_the_leaders(validator: Validator) {
    let is_embedded = matches!(validator, Validator::Embedded);
    let world = World::new(validator).await;
    let server =
        is_embedded.then(|| Tpu::start(world.localnet.rpc_url(), ServerSettings::default()).unwrap());
    let addresses = server.iter().map(Tpu::address).collect();
    let settings = TpuSettings { addresses, ..TpuSettings::default() };
    let chain = RpcChain::new(RpcSettings { tpu: Some(settings), ..world.settings() });
    land(&world, &chain, transfers(&world).await).await;
    assert_eq!(chain.stats().requests_of("sendTransaction"), 0);
    chain.shutdown().await;
    drop(server);
}

committor_localnet::on_each_validator!(transactions_land_by_way_of_the_leaders);

#[tokio::test(flavor = "multi_thread")]
async fn transactions_go_to_the_leader_over_as_many_connections_as_were_asked_for() {
    for connections in [1, 3] {
        let (world, tpu, chain) = chain(connections, ServerSettings::default()).await;
        land(&world, &chain, transfers(&world).await).await;
        assert_eq!(tpu.connections(), connections);
        assert!(tpu.taken() >= TRANSACTIONS);
        let stats = chain.stats();
        assert_eq!((stats.requests_of("sendTransaction"), stats.sent), (0, TRANSACTIONS));
        assert!(stats.sent_to_leaders >= TRANSACTIONS);
        chain.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leader_takes_and_loses_is_sent_again_until_it_lands() {
    let (world, tpu, chain) = chain(2, ServerSettings { loss: 0.1, ..ServerSettings::default() }).await;
    land(&world, &chain, transfers(&world).await).await;
    assert!(tpu.lost() > 0);
    assert!(chain.stats().resent >= tpu.lost().min(1));
    chain.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_restarts_loses_nothing() {
    let (world, tpu, chain) = chain(2, ServerSettings::default()).await;
    let transfers = transfers(&world).await;
    let port = tpu.address().port();
    let restart = async {
        // Nobody is there for the first ones.
        tokio::task::spawn_blocking(|| tpu.stop()).await.unwrap();
        world.proxy.until(|counts| counts.calls_of("signatureSubscribe") > 50).await;
        Tpu::start(world.localnet.rpc_url(), ServerSettings { port, ..ServerSettings::default() }).unwrap()
    };
    let ((), tpu) = tokio::join!(land(&world, &chain, transfers), restart);
    assert!(tpu.taken() > 0);
    chain.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_to_be_looked_at_first_goes_through_the_node() {
    let (world, tpu, chain) = chain(1, ServerSettings::default()).await;
    let payer = solana_signer::Signer::pubkey(world.payer());
    let doomed = solana_system_interface::instruction::transfer(&payer, &world.address(1), u64::MAX);
    let refused = chain.land(world.signed(&[doomed]).await).await;
    assert!(matches!(refused, Err(ChainError::Refused { .. })), "{refused:?}");
    assert_eq!(tpu.taken(), 0);
    chain.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_leader_a_transaction_expires() {
    let (world, tpu, chain) = chain(1, ServerSettings::default()).await;
    let transfer = SignedTransaction { preflight: false, ..world.transfer(world.address(1)).await };
    tokio::task::spawn_blocking(|| tpu.stop()).await.unwrap();
    // It ends when its blockhash does, and not before.
    let ended = chain.land(transfer).await;
    assert!(matches!(ended, Err(ChainError::Expired { .. })), "{ended:?}");
    assert_eq!(world.balance(world.address(1)).await, 0);
    chain.shutdown().await;
}
