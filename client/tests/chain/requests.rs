//! Requests that fail: tried again as far as that makes sense, counted, and told as typed errors.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use committor_client::chain::{
    Chain, ChainError, Endpoint, FaultKind, RateLimit, RetrySettings, RpcChain, RpcSettings,
};
use committor_faults::{Fault, FaultProxy, Rule};
use committor_localnet::Validator;
use serde_json::Value;
use solana_address::Address;

use crate::world::World;

const METHOD: &str = "getMultipleAccounts";

/// Every fault that may pass, and what it is taken for.
fn passing() -> Vec<(Fault, FaultKind)> {
    vec![
        (Fault::TooManyRequests { retry_after_seconds: None }, FaultKind::RateLimited),
        (Fault::TooManyRequests { retry_after_seconds: Some(0) }, FaultKind::RateLimited),
        (Fault::Status(500), FaultKind::ServerError),
        (Fault::Status(502), FaultKind::ServerError),
        (Fault::Status(503), FaultKind::ServerError),
        (Fault::Html, FaultKind::Garbage),
        (Fault::Garbage, FaultKind::Garbage),
        (Fault::Reset, FaultKind::Reset),
        (Fault::LoseAnswer, FaultKind::Reset),
        (Fault::unhealthy(), FaultKind::Unhealthy),
        (Fault::min_context_slot_not_reached(), FaultKind::Lagging),
        (Fault::min_context_slot_not_reached_in_other_words(), FaultKind::Lagging),
    ]
}

async fn read(chain: &RpcChain) -> Result<(), ChainError> {
    chain.accounts(&[Address::new_from_array([7; 32])]).await.map(drop)
}

/// The error's kind and its number of tries.
fn told(error: &ChainError) -> (FaultKind, u32) {
    match error {
        ChainError::Rpc { method: METHOD, fault, attempts, .. } => (*fault, *attempts),
        other => panic!("{other}"),
    }
}

fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_passes_is_waited_out_and_counted() {
    let world = World::new(Validator::Embedded).await;
    for (fault, kind) in passing() {
        let chain = world.chain();
        world.proxy.add(Rule::new(fault.clone()).on(METHOD).times(2));
        read(&chain).await.unwrap();
        let stats = chain.stats();
        assert_eq!((stats.retries_of(kind), stats.faults_of(kind)), (2, 2), "{fault:?}");
        assert_eq!(stats.requests_of(METHOD), 3, "{fault:?}");
        assert_eq!(stats.retries.len(), 1, "{fault:?}: {:?}", stats.retries);
        world.proxy.clear();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_stays_is_told_after_a_bounded_number_of_tries() {
    let world = World::new(Validator::Embedded).await;
    let settings = world.settings();
    let retry = RetrySettings { attempts: 3, ..settings.retry };
    let settings = RpcSettings { retry, ..settings };
    for (fault, kind) in passing() {
        let chain = RpcChain::new(settings.clone());
        let before = world.proxy.counts().calls_of(METHOD);
        world.proxy.add(Rule::new(fault.clone()).on(METHOD));
        let error = read(&chain).await.unwrap_err();
        assert_eq!(told(&error), (kind, 3), "{fault:?}");
        assert!(error.is_transient() && error.is_outage() && !error.hint().is_empty(), "{error}");
        assert_eq!(world.proxy.counts().calls_of(METHOD) - before, 3, "{fault:?}");
        assert_eq!(chain.stats().retries_of(kind), 2, "{fault:?}");
        world.proxy.clear();
        read(&chain).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attempts_at_all_are_one() {
    let world = World::new(Validator::Embedded).await;
    let settings = world.settings();
    let retry = RetrySettings { attempts: 0, ..settings.retry };
    let chain = RpcChain::new(RpcSettings { retry, ..settings });
    read(&chain).await.unwrap();
    world.proxy.add(Rule::new(Fault::Status(500)));
    assert_eq!(told(&read(&chain).await.unwrap_err()), (FaultKind::ServerError, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_request_itself_is_told_at_once() {
    let world = World::new(Validator::Embedded).await;
    let invalid = Fault::Error { code: -32602, message: "Invalid params".to_owned(), data: Value::Null };
    for (fault, kind, outage) in
        [(invalid, FaultKind::Rejected, false), (Fault::Status(403), FaultKind::Denied, true)]
    {
        let chain = world.chain();
        world.proxy.add(Rule::new(fault));
        let error = read(&chain).await.unwrap_err();
        assert_eq!(told(&error), (kind, 1));
        assert_eq!((error.is_outage(), error.is_transient()), (outage, outage), "{error}");
        world.proxy.clear();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_left_alone_for_as_long_as_it_asks_for_by_everybody() {
    let world = World::new(Validator::Embedded).await;
    let chain = world.chain();
    world.proxy.add(Rule::new(Fault::TooManyRequests { retry_after_seconds: Some(1) }).times(1));
    let start = Instant::now();
    let first = read(&chain);
    let second = async {
        world.proxy.until(|counts| counts.all_faults() == 1).await;
        // The answer is on its way to the first one.
        while chain.stats().faults_of(FaultKind::RateLimited) == 0 {
            tokio::task::yield_now().await;
        }
        read(&chain).await
    };
    let (first, second) = tokio::join!(first, second);
    first.unwrap();
    second.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!(world.proxy.counts().calls_of(METHOD), 3, "nobody asked in between");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_wants_to_be_left_alone_for_too_long_is_given_up_at_once() {
    let world = World::new(Validator::Embedded).await;
    let chain = world.chain();
    world.proxy.add(Rule::new(Fault::TooManyRequests { retry_after_seconds: Some(3_600) }).times(1));
    assert_eq!(told(&read(&chain).await.unwrap_err()), (FaultKind::RateLimited, 1));
    assert_eq!(told(&read(&chain).await.unwrap_err()), (FaultKind::RateLimited, 0), "not even asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_never_answers_costs_a_bounded_time() {
    let world = World::new(Validator::Embedded).await;
    let settings = world.settings();
    let retry = RetrySettings { attempts: 2, ..settings.retry };
    let request_timeout = Duration::from_millis(200);
    let chain = RpcChain::new(RpcSettings { retry, request_timeout, ..settings });
    world.proxy.add(Rule::new(Fault::Hang).on(METHOD).times(1));
    read(&chain).await.unwrap();
    assert_eq!(chain.stats().retries_of(FaultKind::Timeout), 1);
    world.proxy.add(Rule::new(Fault::Hang).on(METHOD));
    assert_eq!(told(&read(&chain).await.unwrap_err()), (FaultKind::Timeout, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_not_there_is_told_as_that() {
    let settings = RpcSettings::new(closed_port());
    let retry = RetrySettings { attempts: 2, first_delay: Duration::from_millis(1), ..settings.retry };
    let error = read(&RpcChain::new(RpcSettings { retry, ..settings })).await.unwrap_err();
    assert_eq!(told(&error), (FaultKind::Connect, 2));
    for url in ["", "no url", "ftp://host"] {
        let error = read(&RpcChain::new(RpcSettings::new(url))).await.unwrap_err();
        assert_eq!(told(&error), (FaultKind::Denied, 1), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_does_not_show_the_key_in_a_url() {
    let settings = RpcSettings::new(format!("{}/secret?key=secret", closed_port()));
    let retry = RetrySettings { attempts: 1, ..settings.retry };
    let error = read(&RpcChain::new(RpcSettings { retry, ..settings })).await.unwrap_err();
    let mut source: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = source {
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        source = error.source();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_keep_to_the_rate_limit() {
    let world = World::new(Validator::Embedded).await;
    let rate_limit = Some(RateLimit { per_second: 50, burst: 2 });
    let chain = RpcChain::new(RpcSettings { rate_limit, ..world.settings() });
    let start = Instant::now();
    let reads = (0..12).map(|_| read(&chain));
    for result in futures::future::join_all(reads).await {
        result.unwrap();
    }
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    assert!(chain.stats().limited >= Duration::from_millis(200), "{:?}", chain.stats().limited);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_endpoint_is_used_while_the_first_one_fails() {
    let world = World::new(Validator::Embedded).await;
    let spare = FaultProxy::start(world.localnet.rpc_url(), world.localnet.ws_url(), 2).await.unwrap();
    for (fault, kind) in passing() {
        let fallbacks = vec![Endpoint::new(spare.rpc_url())];
        let chain = RpcChain::new(RpcSettings { fallbacks, ..world.settings() });
        world.proxy.add(Rule::new(fault.clone()));
        for _ in 0..3 {
            read(&chain).await.unwrap();
        }
        world.proxy.clear();
        let stats = chain.stats();
        assert!(stats.failovers >= 3, "{fault:?}: {stats:?}");
        assert_eq!(stats.retries_of(kind), stats.faults.values().sum::<u64>(), "{fault:?}");
    }
    let fallbacks = vec![Endpoint::new(spare.rpc_url())];
    let chain = RpcChain::new(RpcSettings { url: closed_port(), fallbacks, ..world.settings() });
    read(&chain).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_method_has_the_same_retries() {
    let world = World::new(Validator::Embedded).await;
    let chain = world.chain();
    world.proxy.add(Rule::new(Fault::Status(502)).on("getVersion").times(2));
    chain.client().get_version().await.unwrap();
    assert_eq!(chain.stats().retries_of(FaultKind::ServerError), 2);
}
