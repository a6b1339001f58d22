//! Landing: told by the websocket or found by asking, whatever is lost on the way, and never believed too early.

use std::time::{Duration, Instant};

use committor_client::chain::{
    Chain, ChainError, Endpoint, FaultKind, RpcChain, RpcSettings, STATUS_CALLS_PER_SECOND, SignedTransaction,
};
use committor_faults::{Fault, FaultProxy, Rule, WEBSOCKET};
use committor_localnet::{Validator, on_each_validator};
use committor_sdk::{ProgramError, chunk_buffer};
use futures::future::join_all;
use serde_json::json;
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction_error::TransactionError;

use crate::world::{LAMPORTS, World};

const SEND: &str = "sendTransaction";
const STATUSES: &str = "getSignatureStatuses";
const SUBSCRIBE: &str = "signatureSubscribe";
const NOTIFICATION: &str = "signatureNotification";

/// A transfer of more than the payer has: refused by a simulation, an error in a block.
async fn overdraft(world: &World) -> SignedTransaction {
    world.signed(&[transfer(&world.payer().pubkey(), &world.address(1), u64::MAX / 2)]).await
}

async fn the_websocket_tells_before_anybody_asks(validator: Validator) {
    let world = World::new(validator).await;
    // Nobody asks before this, and it is long.
    let resend_interval = Duration::from_secs(60);
    let chain = RpcChain::new(RpcSettings { resend_interval, ..world.settings() });
    let landed = chain.land(world.transfer(world.address(1)).await).await.unwrap();
    assert!(landed.slot > 0);
    let stats = chain.stats();
    assert_eq!((stats.sent, stats.notified, stats.polled, stats.resent), (1, 1, 0, 0));
    assert_eq!(stats.requests_of(STATUSES), 0);
    assert_eq!(world.balance(world.address(1)).await, LAMPORTS);
}

async fn asking_finishes_what_the_websocket_does_not(validator: Validator) {
    let world = World::new(validator).await;
    let faults = [
        Rule::new(Fault::Reset).on(WEBSOCKET),
        Rule::new(Fault::Reset).on(SUBSCRIBE),
        Rule::new(Fault::Hang).on(SUBSCRIBE),
        Rule::new(Fault::Reset).on(NOTIFICATION),
        Rule::new(Fault::Hang).on(NOTIFICATION),
    ];
    for (fault, byte) in faults.into_iter().zip(1..) {
        let chain = world.chain();
        world.proxy.add(fault.clone());
        chain.land(world.transfer(world.address(byte)).await).await.unwrap();
        assert_eq!(chain.stats().polled, 1, "{fault:?}");
        assert!(world.proxy.counts().all_faults() >= byte, "{fault:?}");
        world.proxy.clear();
    }
    let chain = world.polling();
    chain.land(world.transfer(world.address(6)).await).await.unwrap();
    assert_eq!(chain.stats().polled, 1);
}

async fn a_subscription_after_the_transaction_landed_is_told_all_the_same(validator: Validator) {
    let world = World::new(validator).await;
    let resend_interval = Duration::from_secs(60);
    let chain = RpcChain::new(RpcSettings { resend_interval, ..world.settings() });
    let transaction = world.transfer(world.address(1)).await;
    world.direct().land(transaction.clone()).await.unwrap();
    chain.land(transaction).await.unwrap();
}

async fn a_websocket_that_broke_is_made_again_at_another_endpoint(validator: Validator) {
    let world = World::new(validator).await;
    let spare = FaultProxy::start(world.localnet.rpc_url(), world.localnet.ws_url(), 2).await.unwrap();
    let websocket_url = Some(spare.ws_url().to_owned());
    let fallbacks = vec![Endpoint { url: spare.rpc_url().to_owned(), websocket_url }];
    let resend_interval = Duration::from_secs(60);
    let chain = RpcChain::new(RpcSettings { fallbacks, resend_interval, ..world.settings() });
    world.proxy.add(Rule::new(Fault::Reset).on(WEBSOCKET));
    chain.land(world.transfer(world.address(1)).await).await.unwrap();
    assert_eq!((chain.stats().notified, chain.stats().polled), (1, 0));
}

async fn a_transaction_that_landed_already_is_a_success_when_it_is_sent_again(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    // The answer to the first try is lost, and so are the statuses: the node's "already processed" is all there is.
    world.proxy.add(Rule::new(Fault::LoseAnswer).on(SEND).times(1));
    world.proxy.add(Rule::new(Fault::NullStatuses).on(STATUSES).times(6));
    chain.land(world.transfer(world.address(1)).await).await.unwrap();
    assert!(chain.stats().resent > 0);
    // Sent twice, and landed long ago.
    world.proxy.add(Rule::new(Fault::DuplicateSend).on(SEND));
    let transaction = world.transfer(world.address(2)).await;
    chain.land(transaction.clone()).await.unwrap();
    chain.land(transaction).await.unwrap();
    assert_eq!(
        (world.balance(world.address(1)).await, world.balance(world.address(2)).await),
        (LAMPORTS, LAMPORTS)
    );
}

async fn what_is_lost_is_sent_again_until_it_lands(validator: Validator) {
    let world = World::new(validator).await;
    for (fault, byte) in [
        (Fault::DropSend, 1),
        (Fault::Status(502), 2),
        (Fault::Reset, 3),
        (Fault::Html, 4),
        (Fault::TooManyRequests { retry_after_seconds: None }, 5),
        (Fault::unhealthy(), 6),
    ] {
        let chain = world.chain();
        // More often than one request is tried.
        world.proxy.add(Rule::new(fault.clone()).on(SEND).times(10));
        chain.land(world.transfer(world.address(byte)).await).await.unwrap();
        assert!(chain.stats().resent > 0, "{fault:?}");
        assert_eq!(world.balance(world.address(byte)).await, LAMPORTS, "{fault:?}");
    }
}

async fn a_send_that_is_never_answered_holds_nothing_up(validator: Validator) {
    let world = World::new(validator).await;
    let request_timeout = Duration::from_secs(60);
    let chain = RpcChain::new(RpcSettings { request_timeout, websocket_url: None, ..world.settings() });
    // It gets there, and no answer comes back for a minute.
    let transaction = world.transfer(world.address(1)).await;
    world.direct().land(transaction.clone()).await.unwrap();
    world.proxy.add(Rule::new(Fault::Hang).on(SEND));
    let start = Instant::now();
    chain.land(transaction).await.unwrap();
    assert!(start.elapsed() < request_timeout / 2);
}

async fn a_node_that_does_not_answer_keeps_no_transaction_from_the_next_one(validator: Validator) {
    let world = World::new(validator).await;
    let spare = FaultProxy::start(world.localnet.rpc_url(), world.localnet.ws_url(), 2).await.unwrap();
    let fallbacks = vec![Endpoint { url: spare.rpc_url().to_owned(), websocket_url: None }];
    let chain = RpcChain::new(RpcSettings { fallbacks, ..world.settings() });
    world.proxy.add(Rule::new(Fault::Hang).on(SEND));
    for byte in 1..=3 {
        chain.land(world.transfer(world.address(byte)).await).await.unwrap();
        assert_eq!(world.balance(world.address(byte)).await, LAMPORTS);
    }
    assert!(chain.stats().faults_of(FaultKind::Timeout) > 0);
}

async fn an_error_at_processed_is_not_believed(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    world.proxy.add(Rule::new(Fault::ProcessedErrors).on(STATUSES).times(5));
    chain.land(world.transfer(world.address(1)).await).await.unwrap();
    assert_eq!(world.proxy.counts().faults_of(STATUSES), 5);
}

async fn an_error_at_the_commitment_asked_for_is_told_with_logs_and_in_the_programs_words(
    validator: Validator,
) {
    let world = World::new(validator).await;
    let payer = world.payer().pubkey();
    let close = chunk_buffer::Close { authority: payer, buffer: world.address(9), receiver: payer };
    world.localnet.airdrop(world.address(9), LAMPORTS).await.unwrap();
    for chain in [world.chain(), world.polling()] {
        let mut transaction = world.signed(&[close.instruction()]).await;
        transaction.preflight = false;
        let signature = transaction.signature();
        let error = chain.land(transaction).await.unwrap_err();
        let ChainError::Failed { failure, signature: of } = &error else { panic!("{error}") };
        assert_eq!(*of, signature);
        assert!(failure.logs.iter().any(|line| line.contains(&chunk_buffer::ID.to_string())), "{failure:?}");
        assert!(!error.is_transient() && !error.is_outage(), "{error}");
        let found = chain.find(signature).await.unwrap().unwrap().unwrap_err();
        assert_eq!(&found, failure.as_ref());
        let program = matches!(failure.program_error, Some(ProgramError::ChunkBuffer(_)));
        let runtime = failure.program_error.is_none() && !format!("{}", failure.error).contains("custom");
        assert!(program || runtime, "{failure:?}");
    }
}

async fn a_refusal_before_anything_was_sent_is_a_verdict(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.chain();
    let error = chain.land(overdraft(&world).await).await.unwrap_err();
    let ChainError::Refused { failure, .. } = &error else { panic!("{error}") };
    assert!(!failure.logs.is_empty(), "{failure:?}");
    assert_eq!(world.proxy.counts().calls_of(SEND), 1);
}

async fn a_refusal_after_a_try_that_may_have_worked_is_none(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    let data = json!({ "err": "InsufficientFundsForFee", "logs": [], "accounts": null, "unitsConsumed": 0,
        "returnData": null, "innerInstructions": null, "replacementBlockhash": null });
    let refusal = Fault::Error { code: -32002, message: "no".to_owned(), data };
    // The first try arrived, though its answer did not; it lands, whatever is said about the next ones.
    world.proxy.add(Rule::new(Fault::LoseAnswer).on(SEND).times(1));
    world.proxy.add(Rule::new(refusal.clone()).on(SEND));
    world.proxy.add(Rule::new(Fault::NullStatuses).on(STATUSES).times(6));
    chain.land(world.transfer(world.address(1)).await).await.unwrap();
    assert!(world.proxy.counts().faults_of(SEND) >= 2);
    // Without that first try it is one.
    world.proxy.clear();
    world.proxy.add(Rule::new(refusal).on(SEND));
    let error = chain.land(world.transfer(world.address(2)).await).await.unwrap_err();
    let ChainError::Refused { failure, .. } = &error else { panic!("{error}") };
    assert_eq!(failure.error, TransactionError::InsufficientFundsForFee);
    assert!(error.hint().contains("fund"), "{}", error.hint());
}

async fn a_blockhash_that_a_lagging_node_does_not_know_is_no_verdict(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.chain();
    world.proxy.add(Rule::new(Fault::blockhash_not_found()).on(SEND).times(4));
    world.proxy.add(Rule::new(Fault::min_context_slot_not_reached()).on(SEND).times(2));
    chain.land(world.transfer(world.address(1)).await).await.unwrap();
    assert_eq!(chain.stats().retries_of(FaultKind::Lagging), 2);
    assert_eq!(world.balance(world.address(1)).await, LAMPORTS);
}

async fn a_confirmation_that_timed_out_is_found_by_its_signature(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    world.proxy.add(Rule::new(Fault::LoseAnswer).on(SEND));
    world.proxy.add(Rule::new(Fault::NullStatuses).on(STATUSES));
    let transaction = world.transfer(world.address(1)).await;
    let signature = transaction.signature();
    tokio::select! {
        landed = chain.land(transaction) => panic!("{landed:?}"),
        () = world.proxy.until(|counts| counts.calls_of(STATUSES) > 2) => (),
    }
    chain.shutdown().await;
    world.proxy.clear();
    // Another life of the process.
    let chain = world.polling();
    assert!(chain.find(signature).await.unwrap().unwrap().is_ok());
    assert_eq!(chain.find(Default::default()).await.unwrap(), None);
    let cost = chain.cost(signature).await.unwrap().unwrap();
    assert!(cost.fee_lamports > 0 && cost.compute_units > 0, "{cost:?}");
    assert_eq!(chain.cost(Default::default()).await.unwrap(), None);
}

async fn a_node_that_goes_on_failing_is_told_with_the_transaction_that_may_have_landed(validator: Validator) {
    let world = World::new(validator).await;
    let patience = Duration::from_millis(200);
    let chain = RpcChain::new(RpcSettings { patience, websocket_url: None, ..world.settings() });
    world.proxy.add(Rule::new(Fault::Status(500)).on(STATUSES));
    let transaction = world.transfer(world.address(1)).await;
    let signature = transaction.signature();
    let error = chain.land(transaction).await.unwrap_err();
    assert!(matches!(error, ChainError::GaveUp { .. }) && error.is_outage(), "{error}");
    assert_eq!(error.signature(), Some(signature));
}

async fn a_stop_answers_everybody_who_waits(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    world.proxy.add(Rule::new(Fault::DropSend).on(SEND));
    let transaction = world.transfer(world.address(1)).await;
    let stop = async {
        world.proxy.until(|counts| counts.calls_of(SEND) > 0).await;
        chain.shutdown().await;
    };
    let (landed, ()) = tokio::join!(chain.land(transaction.clone()), stop);
    assert!(matches!(landed, Err(ChainError::Stopped { .. })), "{landed:?}");
    assert!(matches!(chain.land(transaction).await, Err(ChainError::Stopped { .. })), "afterwards, too");
}

async fn one_transaction_that_two_wait_for_lands_for_both(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    let transaction = world.transfer(world.address(1)).await;
    let (first, second) = tokio::join!(chain.land(transaction.clone()), chain.land(transaction));
    assert_eq!(first.unwrap(), second.unwrap());
}

async fn a_thousand_transactions_on_their_way_take_a_bounded_number_of_status_calls(validator: Validator) {
    const ROUNDS: u64 = 6;
    let world = World::new(validator).await;
    let resend_interval = Duration::from_millis(500);
    let chain = RpcChain::new(RpcSettings { resend_interval, websocket_url: None, ..world.settings() });
    world.proxy.add(Rule::new(Fault::DropSend).on(SEND));
    let recent = chain.recent_blockhash().await.unwrap();
    let transactions = (1..=1_000).map(|lamports| {
        let pay = transfer(&world.payer().pubkey(), &world.address(1), lamports);
        let transaction = world.sign(&[pay], recent.blockhash, &[]);
        let last_valid_block_height = u64::MAX;
        SignedTransaction { transaction, last_valid_block_height, preflight: false }
    });
    let landing = join_all(transactions.map(|transaction| chain.land(transaction)));
    let watch = async {
        world.proxy.until(|counts| counts.calls_of(SEND) >= 1_000).await;
        let (start, before) = (Instant::now(), world.proxy.counts().calls_of(STATUSES));
        // Four calls ask for a thousand statuses.
        world.proxy.until(|counts| counts.calls_of(STATUSES) >= before + 4 * ROUNDS).await;
        (start.elapsed(), world.proxy.counts().calls_of(STATUSES) - before)
    };
    let (elapsed, calls) = tokio::select! {
        landed = landing => panic!("{} landed", landed.len()),
        watched = watch => watched,
    };
    let per_second = calls as f64 / elapsed.as_secs_f64();
    eprintln!("{calls} status calls in {elapsed:?}: {per_second:.1} per second");
    // The first round's calls come at once.
    assert!(calls.saturating_sub(4) as f64 / elapsed.as_secs_f64() <= f64::from(STATUS_CALLS_PER_SECOND));
}

on_each_validator!(
    the_websocket_tells_before_anybody_asks,
    asking_finishes_what_the_websocket_does_not,
    a_subscription_after_the_transaction_landed_is_told_all_the_same,
    a_websocket_that_broke_is_made_again_at_another_endpoint,
    a_transaction_that_landed_already_is_a_success_when_it_is_sent_again,
    what_is_lost_is_sent_again_until_it_lands,
    a_send_that_is_never_answered_holds_nothing_up,
    a_node_that_does_not_answer_keeps_no_transaction_from_the_next_one,
    an_error_at_processed_is_not_believed,
    an_error_at_the_commitment_asked_for_is_told_with_logs_and_in_the_programs_words,
    a_refusal_before_anything_was_sent_is_a_verdict,
    a_refusal_after_a_try_that_may_have_worked_is_none,
    a_blockhash_that_a_lagging_node_does_not_know_is_no_verdict,
    a_confirmation_that_timed_out_is_found_by_its_signature,
    a_node_that_goes_on_failing_is_told_with_the_transaction_that_may_have_landed,
    a_stop_answers_everybody_who_waits,
    one_transaction_that_two_wait_for_lands_for_both,
    a_thousand_transactions_on_their_way_take_a_bounded_number_of_status_calls,
);
