//! Everything at once: hundreds of transactions through a proxy that does all it can.

use std::{collections::HashSet, time::Duration};

use committor_client::chain::{Chain, RpcChain, RpcSettings, SignedTransaction};
use committor_faults::{Fault, FaultProxy, Rule, WEBSOCKET};
use committor_localnet::{Validator, on_each_validator};
use futures::{StreamExt, stream};
use solana_keypair::Keypair;
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;

use crate::world::World;

const TRANSACTIONS: u64 = 200;
/// What is asked over HTTP.
const METHODS: [&str; 6] = [
    "getEpochInfo",
    "getLatestBlockhash",
    "getMultipleAccounts",
    "getSignatureStatuses",
    "getSlot",
    "sendTransaction",
];

pub(crate) fn rules(proxy: &FaultProxy) {
    let retry_after_seconds = Some(0);
    let anywhere = [
        Fault::TooManyRequests { retry_after_seconds: None },
        Fault::TooManyRequests { retry_after_seconds },
        Fault::Status(500),
        Fault::Status(502),
        Fault::Html,
        Fault::Garbage,
        Fault::Reset,
        Fault::LoseAnswer,
        Fault::unhealthy(),
        Fault::Delay(Duration::from_millis(30)),
    ];
    for method in METHODS {
        for fault in &anywhere {
            proxy.add(Rule::new(fault.clone()).on(method).chance(0.02));
        }
    }
    let sends = [
        Fault::DropSend,
        Fault::DuplicateSend,
        Fault::DelaySend(Duration::from_millis(300)),
        Fault::ReorderSend,
        Fault::blockhash_not_found(),
    ];
    for fault in sends {
        proxy.add(Rule::new(fault).on("sendTransaction").chance(0.06));
    }
    for fault in [Fault::NullStatuses, Fault::ForgottenStatuses, Fault::ProcessedErrors] {
        proxy.add(Rule::new(fault).on("getSignatureStatuses").chance(0.1));
    }
    for method in ["getMultipleAccounts", "getLatestBlockhash"] {
        for checks_min_context_slot in [true, false] {
            let stale = Fault::Stale { slots: 10, checks_min_context_slot };
            proxy.add(Rule::new(stale).on(method).chance(0.1));
        }
    }
    proxy.add(Rule::new(Fault::Reset).on(WEBSOCKET).chance(0.3));
    proxy.add(Rule::new(Fault::Reset).on("signatureSubscribe").chance(0.01));
    proxy.add(Rule::new(Fault::Hang).on("signatureNotification").chance(0.1));
    proxy.add(Rule::new(Fault::Reset).on("signatureNotification").chance(0.01));
}

async fn whatever_goes_wrong_every_transaction_lands_once(validator: Validator) {
    for seed in [1, 2, 3] {
        let world = World::seeded(validator.clone(), seed).await;
        let request_timeout = Duration::from_secs(2);
        let chain = RpcChain::new(RpcSettings { request_timeout, ..world.settings() });
        rules(&world.proxy);
        let receiver = Keypair::new().pubkey();
        world.localnet.airdrop(receiver, 1_000_000).await.unwrap();
        let payer = world.payer().pubkey();
        let (world, chain) = (&world, &chain);
        let land = |lamports: u64| async move {
            let mut signatures = Vec::new();
            // As the engine does: an expired one is signed anew, and nothing else is.
            loop {
                let recent = chain.recent_blockhash().await.unwrap();
                let transaction = world.sign(&[transfer(&payer, &receiver, lamports)], recent.blockhash, &[]);
                let last_valid_block_height = recent.last_valid_block_height;
                let signed = SignedTransaction {
                    transaction,
                    last_valid_block_height,
                    preflight: lamports.is_multiple_of(2),
                };
                signatures.push(signed.signature());
                match chain.land(signed).await {
                    Ok(_) => return signatures,
                    Err(error) => assert!(error.is_transient(), "seed {seed}: {error:?}"),
                }
            }
        };
        // Different amounts make different transactions, and the sum tells whether any landed twice or not at all.
        let signatures: Vec<_> =
            stream::iter(1..=TRANSACTIONS).map(land).buffer_unordered(64).collect().await;
        let expected = 1_000_000 + TRANSACTIONS * (TRANSACTIONS + 1) / 2;
        let found = chain.headers(&[receiver]).await.unwrap()[0].unwrap().lamports;
        assert_eq!(found, expected, "seed {seed}");
        let different: HashSet<_> = signatures.iter().flatten().collect();
        let (stats, faults) = (chain.stats(), world.proxy.counts().all_faults());
        eprintln!(
            "seed {seed}: {faults} faults, {} signed, {} sent again, {} told, {} found, {} expired",
            different.len(),
            stats.resent,
            stats.notified,
            stats.polled,
            stats.expired
        );
        assert!(faults > TRANSACTIONS / 4, "seed {seed}");
    }
}

on_each_validator!(whatever_goes_wrong_every_transaction_lands_once);
