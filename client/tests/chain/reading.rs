//! Reads: in order, never from a time before what was seen, and an absent account is never an unknown one.

use std::time::Duration;

use committor_client::chain::{Chain, ChainError, Endpoint, FaultKind, RpcChain, RpcSettings};
use committor_faults::{Fault, FaultProxy, Rule};
use committor_localnet::{Validator, on_each_validator};
use solana_address::Address;
use solana_signer::Signer;

use crate::world::{LAMPORTS, World};

const METHOD: &str = "getMultipleAccounts";

async fn more_accounts_than_one_call_takes_come_in_the_order_asked(validator: Validator) {
    let world = World::new(validator).await;
    let mut addresses: Vec<Address> = (0..250).map(|number| world.address(number)).collect();
    for (number, at) in [(1, 7), (2, 99), (3, 100), (4, 249)] {
        world.localnet.airdrop(addresses[at], number * LAMPORTS).await.unwrap();
    }
    addresses.push(world.payer().pubkey());
    let chain = world.chain();
    let found = chain.accounts(&addresses).await.unwrap();
    let there: Vec<(usize, u64)> = found
        .iter()
        .enumerate()
        .filter_map(|(at, account)| Some((at, account.as_ref()?.lamports / LAMPORTS)))
        .take(4)
        .collect();
    assert_eq!(there, [(7, 1), (99, 2), (100, 3), (249, 4)]);
    assert!(found.len() == 251 && found[250].is_some());
    assert_eq!(chain.stats().requests_of(METHOD), 3);
    let headers = chain.headers(&addresses).await.unwrap();
    let lamports =
        |header: &Option<_>| header.as_ref().map(|h: &committor_client::chain::AccountHeader| h.lamports);
    assert!(
        headers
            .iter()
            .zip(&found)
            .all(|(header, found)| lamports(header) == found.as_ref().map(|f| f.lamports))
    );
    assert_eq!(chain.accounts(&[]).await.unwrap(), []);
}

async fn an_absent_account_is_none_and_an_unknown_one_an_error(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.chain();
    assert_eq!(chain.accounts(&[world.address(1)]).await.unwrap(), [None]);
    world.proxy.add(Rule::new(Fault::Status(500)).on(METHOD));
    assert!(chain.accounts(&[world.address(1)]).await.is_err());
}

async fn what_landed_is_never_read_as_absent_from_a_node_that_lags(validator: Validator) {
    let world = World::new(validator).await;
    // One says that it lags, the other one does not know what it is asked.
    for (number, checks_min_context_slot) in [(1, true), (2, false)] {
        let chain = world.chain();
        assert_eq!(chain.accounts(&[world.address(number)]).await.unwrap(), [None]);
        chain.land(world.transfer(world.address(number)).await).await.unwrap();
        let lagging = Fault::Stale { slots: 1_000, checks_min_context_slot };
        world.proxy.add(Rule::new(lagging).on(METHOD).times(3));
        let found = chain.accounts(&[world.address(number)]).await.unwrap();
        assert_eq!(found[0].as_ref().map(|account| account.lamports), Some(LAMPORTS));
        assert_eq!(chain.stats().retries_of(FaultKind::Lagging), 3);
        world.proxy.clear();
    }
}

async fn a_node_that_goes_on_lagging_is_an_error_and_not_an_answer(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.chain();
    assert_eq!(chain.accounts(&[world.address(1)]).await.unwrap(), [None]);
    chain.land(world.transfer(world.address(1)).await).await.unwrap();
    world.proxy.add(Rule::new(Fault::Stale { slots: 1_000, checks_min_context_slot: false }).on(METHOD));
    let error = chain.accounts(&[world.address(1)]).await.unwrap_err();
    assert!(matches!(error, ChainError::Rpc { fault: FaultKind::Lagging, .. }), "{error}");
}

async fn an_endpoint_that_lags_is_passed_over(validator: Validator) {
    let world = World::new(validator).await;
    let spare = FaultProxy::start(world.localnet.rpc_url(), world.localnet.ws_url(), 2).await.unwrap();
    let fallbacks = vec![Endpoint::new(spare.rpc_url())];
    let chain = RpcChain::new(RpcSettings { fallbacks, ..world.settings() });
    assert_eq!(chain.accounts(&[world.address(1)]).await.unwrap(), [None]);
    let landed = chain.land(world.transfer(world.address(1)).await).await.unwrap();
    world.proxy.add(Rule::new(Fault::Stale { slots: 1_000, checks_min_context_slot: false }).on(METHOD));
    for _ in 0..3 {
        let found = chain.accounts(&[world.address(1)]).await.unwrap();
        assert!(found[0].is_some());
    }
    assert!(chain.stats().failovers > 0);
    assert!(chain.slot().await.unwrap() >= landed.slot);
}

async fn a_cluster_without_fees_to_tell_has_none(validator: Validator) {
    let world = World::new(validator).await;
    let fees = world.chain().priority_fees(&[world.payer().pubkey()]).await.unwrap();
    assert_eq!(fees.into_iter().max().unwrap_or_default(), 0);
}

async fn a_slot_is_waited_for(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.chain();
    let slot = chain.slot().await.unwrap() + 5;
    assert!(chain.wait_for_slot(slot, Duration::from_secs(20)).await.unwrap() >= slot);
    let error = chain.wait_for_slot(u64::MAX, Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, ChainError::Nonsense { method: "getSlot", .. }), "{error}");
}

async fn a_blockhash_and_a_position_are_kept_no_longer_than_they_may_be(validator: Validator) {
    let world = World::new(validator).await;
    let keep = Duration::from_secs(3_600);
    for (max_age, requests) in [(keep, 1), (Duration::ZERO, 20)] {
        let settings =
            RpcSettings { blockhash_max_age: max_age, position_max_age: max_age, ..world.settings() };
        let chain = RpcChain::new(settings);
        let ask = |_| async {
            chain.recent_blockhash().await.unwrap();
            chain.block_height().await.unwrap();
        };
        futures::future::join_all((0..20).map(ask)).await;
        let stats = chain.stats();
        assert_eq!(stats.requests_of("getLatestBlockhash"), requests);
        // What has been seen meanwhile makes a position too old, whatever its age.
        assert!((requests..=requests + 1).contains(&stats.requests_of("getEpochInfo")), "{stats:?}");
    }
}

async fn the_position_does_not_run_ahead_of_the_commitment(validator: Validator) {
    let world = World::new(validator).await;
    let (chain, node) = (world.direct(), world.direct());
    for _ in 0..20 {
        let height = chain.block_height().await.unwrap();
        let after = node.client().get_block_height().await.unwrap();
        assert!(height <= after, "{height} {after}");
        assert!(after - height < 50, "{height} {after}");
    }
}

on_each_validator!(
    more_accounts_than_one_call_takes_come_in_the_order_asked,
    an_absent_account_is_none_and_an_unknown_one_an_error,
    what_landed_is_never_read_as_absent_from_a_node_that_lags,
    a_node_that_goes_on_lagging_is_an_error_and_not_an_answer,
    an_endpoint_that_lags_is_passed_over,
    a_cluster_without_fees_to_tell_has_none,
    a_slot_is_waited_for,
    a_blockhash_and_a_position_are_kept_no_longer_than_they_may_be,
    the_position_does_not_run_ahead_of_the_commitment,
);
