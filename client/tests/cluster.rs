//! The whole path over JSON-RPC and websocket: an owner program creates and delegates accounts, the committor commits to
//! them, and everything is read back.
//!
//! Runs on the embedded validator and on Agave's, or on the one that `anchor test` has started: its URL and wallet are in
//! `ANCHOR_PROVIDER_URL` and `ANCHOR_WALLET`.

use std::{sync::Arc, time::Duration};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Committor,
    chain::{Chain, RpcChain, RpcSettings, SignedTransaction},
    config,
    types::BundleStatus,
};
use committor_localnet::{Localnet, LocalnetBuilder, Validator, on_agave, on_each_validator, owner_program};
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

/// A cluster with the three programs, and who pays there.
struct Cluster {
    rpc: RpcSettings,
    payer: Arc<Keypair>,
    /// Keeps the validator running.
    _localnet: Option<Arc<Localnet>>,
}

/// What there is already does.
fn prepare(builder: LocalnetBuilder, _: u8) -> LocalnetBuilder {
    builder
}

impl Cluster {
    async fn new(validator: Validator) -> Self {
        if let Ok(url) = std::env::var("ANCHOR_PROVIDER_URL") {
            let wallet = std::env::var("ANCHOR_WALLET").expect("ANCHOR_WALLET beside ANCHOR_PROVIDER_URL");
            let payer = Arc::new(config::KeypairSource::File(wallet.into()).read().unwrap());
            return Self { rpc: RpcSettings::new(url), payer, _localnet: None };
        }
        let (localnet, _) = validator.start(prepare).await.unwrap();
        let rpc = RpcSettings {
            websocket_url: Some(localnet.ws_url().to_owned()),
            ..RpcSettings::new(localnet.rpc_url())
        };
        let payer = Arc::new(localnet.payer().insecure_clone());
        Self { rpc, payer, _localnet: Some(localnet) }
    }

    async fn send(&self, chain: &RpcChain, instructions: &[Instruction]) {
        let recent = chain.recent_blockhash().await.unwrap();
        let message =
            v0::Message::try_compile(&self.payer.pubkey(), instructions, &[], recent.blockhash).unwrap();
        let transaction =
            VersionedTransaction::try_new(VersionedMessage::V0(message), &[&*self.payer]).unwrap();
        let last_valid_block_height = recent.last_valid_block_height;
        let signed = SignedTransaction { transaction, last_valid_block_height, preflight: true };
        chain.land(signed).await.unwrap();
    }
}

async fn accounts_of_an_owner_program_are_delegated_committed_to_and_read_back(validator: Validator) {
    let cluster = Cluster::new(validator).await;
    let payer = cluster.payer.pubkey();
    let chain = RpcChain::new(cluster.rpc.clone());
    // Numbers that no earlier run on the same validator has used.
    let numbers: [u64; 4] = rand::random();
    let lens = [82usize, 1_000, 10_240, 40_000];
    for (number, len) in numbers.iter().zip(lens) {
        let len = len.min(9_000) as u32;
        cluster.send(&chain, &[owner_program::create(&payer, *number, len)]).await;
        cluster.send(&chain, &[owner_program::delegate(&payer, *number, &payer)]).await;
    }

    let folder = tempfile::tempdir().unwrap();
    let committor = Committor::builder()
        .rpc(cluster.rpc.clone())
        .authority(cluster.payer.clone())
        .store(folder.path().join("committor.db"))
        .start()
        .await
        .unwrap();
    let commit = |index: usize, byte: u8| AccountCommit {
        account: owner_program::account(&payer, numbers[index]),
        state: vec![byte; lens[index]].into(),
    };
    let changeset = Changeset {
        bundles: vec![
            CommitBundle::new(BundleId(1), (0..4).map(|index| commit(index, 1)).collect()),
            CommitBundle::new(BundleId(2), vec![commit(0, 2), commit(2, 2)]),
        ],
    };
    let report = committor.commit(changeset).await.unwrap().finished().await.unwrap();
    for bundle in &report.bundles {
        assert_eq!(bundle.status, BundleStatus::Landed, "{:?}", bundle.error);
    }
    let verification = committor.verify(report.changeset).await.unwrap();
    assert_eq!((verification.equal.len(), verification.mismatches), (4, vec![]));
    committor.shutdown(Duration::ZERO).await.unwrap();
    chain.shutdown().await;
}

on_each_validator!(accounts_of_an_owner_program_are_delegated_committed_to_and_read_back);
on_agave!(prepare; scenarios);
