//! The services of a cluster: which one is asked, how often at most, and what happens when it fails.
//!
//! Every request of the chain layer comes through [`Endpoints::request`], so that all are limited, tried again and counted
//! in one place. It is an [`RpcSender`] too, for methods that the chain layer has no use for.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use solana_rpc_client::rpc_sender::{RpcSender, RpcTransportStats};
use solana_rpc_client_api::{
    client_error::{self, ErrorKind, reqwest},
    request::RpcRequest,
};
use tokio::time::{Instant, sleep_until};

use super::{
    Endpoint, FaultKind, RetrySettings, RpcSettings,
    exchange::{Failure, exchange},
    fault::Fault,
    limiter::Limiter,
    settings::host,
    stats::Counters,
};

/// The longest that a service is left alone because it asked for it.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Connections that are kept for what is asked beside sending.
const MIN_IDLE_CONNECTIONS: usize = 8;

/// What a request needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// The slot that an answer must have seen, unless the request's `minContextSlot` says it.
    pub(super) floor: Option<u64>,
    /// What has an effect must not be done twice unnoticed: a try that may have worked is the last one.
    pub(super) once: bool,
    /// Any endpoint will do, and the next one each time.
    pub(super) in_turn: bool,
    /// How long a try may take, if less than the settings allow.
    pub(super) timeout: Option<Duration>,
}

/// The services of a cluster.
pub(super) struct Endpoints {
    /// `None` if there can't be one, which every request then tells.
    http: Result<reqwest::Client, String>,
    endpoints: Vec<State>,
    retry: RetrySettings,
    next_id: AtomicU64,
    next_turn: AtomicUsize,
    pub(super) counters: Arc<Counters>,
}

struct State {
    endpoint: Endpoint,
    limiter: Option<Limiter>,
    health: Mutex<Health>,
}

struct Health {
    /// Failures since the last success.
    failures: u32,
    /// The service is left alone until then.
    ready_at: Instant,
}

impl State {
    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoints {
    pub(super) fn new(settings: &RpcSettings) -> Self {
        let http = reqwest::Client::builder()
            .connect_timeout(settings.connect_timeout)
            .timeout(settings.request_timeout)
            .pool_max_idle_per_host(settings.connections.get().max(MIN_IDLE_CONNECTIONS))
            .build();
        let state = |endpoint| State {
            endpoint,
            limiter: settings.rate_limit.map(Limiter::new),
            health: Mutex::new(Health { failures: 0, ready_at: Instant::now() }),
        };
        Self {
            http: http.map_err(|error| error.to_string()),
            endpoints: settings.endpoints().into_iter().map(state).collect(),
            retry: settings.retry,
            next_id: AtomicU64::new(1),
            next_turn: AtomicUsize::new(0),
            counters: Arc::default(),
        }
    }

    /// Asks until there is an answer, or no hope for one.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        needs: Needs,
    ) -> Result<T, Fault> {
        let floor = needs.floor.or_else(|| min_context_slot(&params));
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        let first = if needs.in_turn { self.next_turn.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let mut deadline = Instant::now() + self.retry.total;
        // When this request may go to an endpoint again. What others met there does not hold it up, but for a rate limit.
        let mut not_before = vec![Instant::now(); self.endpoints.len()];
        let mut attempts = 0;
        let mut last: Option<Failure> = None;
        loop {
            let (index, at) = self.choose(first, &not_before);
            if at > deadline {
                let too_long =
                    || Failure::words(FaultKind::RateLimited, "it asked to be left alone".to_owned());
                let Failure { kind, source, .. } = last.unwrap_or_else(too_long);
                return Err(Fault { kind, attempts, source });
            }
            sleep_until(at).await;
            let state = &self.endpoints[index];
            let limited = match &state.limiter {
                Some(limiter) => limiter.take().await,
                None => Duration::ZERO,
            };
            deadline += limited;
            attempts += 1;
            self.counters.request(method, needs.in_turn || index == 0, limited);
            let failure = match self.attempt(state, id, body.clone(), floor, needs.timeout).await {
                Ok(answer) => {
                    state.health().failures = 0;
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            let delay = self.retry.delay(attempts).max(failure.retry_after.unwrap_or_default());
            let now = Instant::now();
            not_before[index] = now + delay.min(MAX_RETRY_AFTER);
            self.leave_alone(state, &failure, now);
            let again = self.is_worth_it(failure.kind, needs) && attempts < self.retry.attempts;
            self.counters.fault(method, failure.kind, again);
            let (kind, endpoint) = (failure.kind, host(&state.endpoint.url));
            tracing::debug!(method, endpoint, %kind, attempts, again, error = %failure.source, "request failed");
            if !again {
                return Err(Fault { kind, attempts, source: failure.source });
            }
            last = Some(failure);
        }
    }

    /// The first endpoint that may be asked now, or else the one that may be asked first; and when.
    fn choose(&self, first: usize, not_before: &[Instant]) -> (usize, Instant) {
        let count = self.endpoints.len();
        let now = Instant::now();
        let at = |index: usize| self.endpoints[index].health().ready_at.max(not_before[index]).max(now);
        let order = (0..count).map(|offset| (first + offset) % count).map(|index| (index, at(index)));
        // There is always one, and of equal ones the first is taken.
        order.min_by_key(|(_, at)| *at).unwrap_or((0, now))
    }

    /// Sees to it that an endpoint that fails is not asked for a while.
    fn leave_alone(&self, state: &State, failure: &Failure, now: Instant) {
        let limited = failure.kind == FaultKind::RateLimited || failure.retry_after.is_some();
        // Where there is only one, others may have more luck with it, and each waits longer after each failure of its own.
        let elsewhere = self.endpoints.len() > 1 && failure.kind.is_outage();
        if !limited && !elsewhere {
            return;
        }
        let mut health = state.health();
        health.failures = health.failures.saturating_add(1);
        let delay = self.retry.delay(health.failures).max(failure.retry_after.unwrap_or_default());
        health.ready_at = health.ready_at.max(now + delay.min(MAX_RETRY_AFTER));
    }

    fn is_worth_it(&self, kind: FaultKind, needs: Needs) -> bool {
        let elsewhere = kind == FaultKind::Denied && self.endpoints.len() > 1;
        (kind.is_retryable() || elsewhere) && !(needs.once && kind.may_have_worked())
    }

    async fn attempt<T: DeserializeOwned>(
        &self,
        state: &State,
        id: u64,
        body: String,
        floor: Option<u64>,
        timeout: Option<Duration>,
    ) -> Result<T, Failure> {
        let http = self.http.as_ref();
        let http = http.map_err(|error| Failure::words(FaultKind::Denied, error.clone()))?;
        let answer = exchange(http, &state.endpoint.url, id, body, timeout).await?;
        // A node may lag behind what stands before it, and that may not know `minContextSlot`.
        let seen = answer.pointer("/context/slot").and_then(Value::as_u64);
        if let (Some(seen), Some(floor)) = (seen, floor)
            && seen < floor
        {
            let words = format!("the answer is of slot {seen}, slot {floor} was asked for");
            return Err(Failure::words(FaultKind::Lagging, words));
        }
        serde_json::from_value(answer)
            .map_err(|error| Failure::new(FaultKind::Garbage, ErrorKind::from(error)))
    }
}

/// What a request says about the slot that its answer must have seen.
fn min_context_slot(params: &Value) -> Option<u64> {
    params.as_array()?.iter().rev().find_map(|param| param.get("minContextSlot")?.as_u64())
}

/// The endpoints as a transport for [`RpcClient`](solana_rpc_client::nonblocking::rpc_client::RpcClient).
pub(super) struct Sender(pub(super) Arc<Endpoints>);

#[async_trait]
impl RpcSender for Sender {
    async fn send(&self, request: RpcRequest, params: Value) -> client_error::Result<Value> {
        let method = request.to_string();
        let sent = self.0.request(&method, params, Needs::default()).await;
        sent.map_err(|fault| fault.source.into_with_request(request))
    }

    fn get_transport_stats(&self) -> RpcTransportStats {
        let stats = self.0.counters.snapshot();
        let requests: u64 = stats.requests.values().sum();
        RpcTransportStats {
            request_count: usize::try_from(requests).unwrap_or(usize::MAX),
            rate_limited_time: stats.limited,
            ..RpcTransportStats::default()
        }
    }

    fn url(&self) -> String {
        self.0.endpoints.first().map(|state| state.endpoint.url.clone()).unwrap_or_default()
    }
}
