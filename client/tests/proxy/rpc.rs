//! The proxy before a node over JSON-RPC, and the engine that uses it.

use std::{sync::Arc, time::Duration};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Committor, EngineSettings, Signers, Store,
    chain::{AnsweredBy, Chain, RpcChain, RpcSettings, Simulation},
    proxy::{ProxySettings, ProxyStats},
    types::{Budgets, BundleStatus, ComputeLimit, PriorityFee, StageBudget},
};
use committor_localnet::Localnet;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;

fn account(byte: u8) -> Address {
    Address::new_from_array([byte; 32])
}

fn settings(localnet: &Localnet, proxy: bool) -> RpcSettings {
    RpcSettings {
        websocket_url: Some(localnet.ws_url().to_owned()),
        proxy: proxy.then(ProxySettings::default),
        ..RpcSettings::new(localnet.rpc_url())
    }
}

async fn localnet(authority: &Keypair) -> Localnet {
    let mut builder = Localnet::builder().airdrop(authority.pubkey(), LAMPORTS);
    for byte in 1..=4 {
        builder = builder.delegated(account(byte), authority.pubkey(), vec![0; 100]);
    }
    builder.start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_who_gave_it_and_both_say_the_same() {
    let authority = Keypair::new();
    let localnet = localnet(&authority).await;
    let (node, proxy) = (RpcChain::new(settings(&localnet, false)), RpcChain::new(settings(&localnet, true)));
    let payer = authority.pubkey();
    for lamports in [10_000_000, u64::MAX] {
        let transfer = transfer(&payer, &account(9), lamports);
        let message = v0::Message::try_compile(&payer, &[transfer], &[], Default::default()).unwrap();
        let transaction =
            VersionedTransaction::try_new(VersionedMessage::V0(message), &[&authority]).unwrap();
        let there = node.simulate(&transaction).await.unwrap();
        assert_eq!(there.answered_by, AnsweredBy::Node { because: None });
        let here = proxy.simulate(&transaction).await.unwrap();
        assert!(matches!(here.answered_by, AnsweredBy::Proxy { .. }), "{here:?}");
        assert_eq!(here.outcome.is_ok(), lamports < u64::MAX);
        // The embedded validator counts programs' code otherwise.
        let compared = |simulation: Simulation| Simulation {
            answered_by: AnsweredBy::Node { because: None },
            loaded_data: None,
            ..simulation
        };
        assert_eq!(compared(here), compared(there));
    }
    let nonce = solana_system_interface::instruction::advance_nonce_account(&account(9), &payer);
    let message = v0::Message::try_compile(&payer, &[nonce], &[], Default::default()).unwrap();
    let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), &[&authority]).unwrap();
    let answer = proxy.simulate(&transaction).await.unwrap().answered_by;
    assert_eq!(answer, AnsweredBy::Node { because: Some("it advances a durable nonce".to_owned()) });
    node.shutdown().await;
    proxy.shutdown().await;
}

/// Lamports of the payer at the start.
const LAMPORTS: u64 = 1_000_000_000_000;

/// What became of a changeset.
struct Outcome {
    bundles: Vec<(BundleStatus, Option<String>)>,
    /// What the payer has afterwards.
    lamports: u64,
    stats: ProxyStats,
}

async fn commit(proxy: bool, changeset: impl Fn(&Keypair) -> Changeset) -> Outcome {
    let authority = Arc::new(Keypair::new());
    let localnet = localnet(&authority).await;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store.db")).unwrap();
    let budget = StageBudget { compute: ComputeLimit::Simulate, priority_fee: PriorityFee::default() };
    let engine = EngineSettings { budgets: Budgets::all(budget), ..EngineSettings::default() };
    let signers = Signers { payer: authority.clone(), authority: authority.clone() };
    let committor = Committor::with_chain(RpcChain::new(settings(&localnet, proxy)), store, signers, engine);
    let committor = committor.await.unwrap();
    let report = committor.commit(changeset(&authority)).await.unwrap().finished().await.unwrap();
    committor.shutdown(Duration::ZERO).await.unwrap();
    let chain = committor.chain();
    let lamports = chain.headers(&[authority.pubkey()]).await.unwrap()[0].unwrap().lamports;
    let bundles = report.bundles.iter().map(|bundle| (bundle.status, bundle.error.clone())).collect();
    let stats = chain.proxy().map(|proxy| proxy.stats()).unwrap_or_default();
    chain.shutdown().await;
    Outcome { bundles, lamports, stats }
}

fn bundle(byte: u8, len: usize) -> CommitBundle {
    let state: Vec<u8> = (0..len).map(|index| index as u8).collect();
    CommitBundle::new(
        BundleId(byte.into()),
        vec![AccountCommit { account: account(byte), state: state.into() }],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_land_as_they_do_without_a_proxy_and_every_transaction_was_rehearsed() {
    let changeset = |_: &Keypair| Changeset { bundles: vec![bundle(1, 60), bundle(2, 9_000), bundle(3, 40)] };
    let Outcome { bundles, stats, .. } = commit(true, changeset).await;
    assert!(bundles.iter().all(|(status, _)| *status == BundleStatus::Landed), "{bundles:?}");
    assert!(stats.simulated > 3 && stats.fallbacks == 0, "{stats:?}");
    assert_eq!(commit(false, changeset).await.bundles, bundles);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_is_doomed_at_its_last_transaction_costs_nothing() {
    // It goes through a buffer, which is paid for before its last transaction can fail.
    let changeset = |payer: &Keypair| Changeset {
        bundles: vec![bundle(1, 9_000).action(transfer(&payer.pubkey(), &account(9), u64::MAX))],
    };
    let (here, there) = (commit(true, changeset).await, commit(false, changeset).await);
    for outcome in [&here, &there] {
        assert_eq!(outcome.bundles[0].0, BundleStatus::Failed);
    }
    assert_eq!(here.lamports, LAMPORTS);
    assert!(there.lamports < LAMPORTS);
}
