//! What goes wrong in a seed.

use std::time::Duration;

use committor_client::chain::{Endpoint, RateLimit, RetrySettings, RpcSettings};
use committor_faults::{Fault, FaultProxy, Rule, WEBSOCKET};
use committor_localnet::Localnet;
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

use crate::exit::{CommandError, Kind};

/// What the engine asks over HTTP.
const METHODS: [&str; 9] = [
    "getEpochInfo",
    "getLatestBlockhash",
    "getMinimumBalanceForRentExemption",
    "getMultipleAccounts",
    SEND,
    "getSlot",
    "getTransaction",
    STATUSES,
    "simulateTransaction",
];
const SEND: &str = "sendTransaction";
const STATUSES: &str = "getSignatureStatuses";
/// What a lagging node lags behind with.
const READS: [&str; 5] = ["getEpochInfo", "getLatestBlockhash", "getMultipleAccounts", "getSlot", STATUSES];
/// The longest that a proxy keeps a transaction.
pub const MAX_DELAY: Duration = Duration::from_millis(400);

/// The way to the validator in one seed: a proxy, and perhaps another one that lags, to fall back on.
pub struct Way {
    pub settings: RpcSettings,
    proxies: Vec<FaultProxy>,
}

impl Way {
    /// Starts the proxies, with what goes wrong there.
    pub async fn draw(seed: u64, random: &mut StdRng, localnet: &Localnet) -> Result<Self, CommandError> {
        let (rpc, websocket) = (localnet.rpc_url(), localnet.ws_url());
        let start = async |seed, rules: Vec<Rule>| {
            let proxy = FaultProxy::start(rpc, websocket, seed).await;
            let proxy = proxy.map_err(|error| CommandError::new(Kind::Other, error))?;
            rules.into_iter().for_each(|rule| proxy.add(rule));
            Ok::<_, CommandError>(proxy)
        };
        let mut proxies = vec![start(seed, rules(random)).await?];
        if random.random_bool(0.4) {
            proxies.push(start(!seed, lagging(random)).await?);
        }
        let endpoint = |proxy: &FaultProxy| Endpoint {
            websocket_url: Some(proxy.ws_url().to_owned()),
            ..Endpoint::new(proxy.rpc_url())
        };
        let mut endpoints = proxies.iter().map(endpoint);
        let first = endpoints.next();
        let has_websocket = random.random_bool(0.8);
        let impatient = random.random_bool(0.3);
        let settings = RpcSettings {
            websocket_url: first.and_then(|first| first.websocket_url).filter(|_| has_websocket),
            fallbacks: endpoints.collect(),
            connect_timeout: Duration::from_secs(1),
            request_timeout: Duration::from_secs(1),
            retry: RetrySettings {
                first_delay: Duration::from_millis(5),
                max_delay: Duration::from_millis(100),
                attempts: random.random_range(4..=8),
                ..RetrySettings::default()
            },
            rate_limit: random.random_bool(0.2).then_some(RateLimit { per_second: 200, burst: 20 }),
            poll_interval: Duration::from_millis(50),
            resend_interval: Duration::from_millis(200),
            patience: Duration::from_millis(if impatient { 200 } else { 10_000 }),
            position_max_age: Duration::from_millis(20),
            ..RpcSettings::new(proxies.first().map_or(rpc, FaultProxy::rpc_url))
        };
        Ok(Self { settings, proxies })
    }

    /// How often something went wrong.
    pub fn faults(&self) -> u64 {
        self.proxies.iter().map(|proxy| proxy.counts().all_faults()).sum()
    }
}

/// Some of all that can go wrong, each with a chance of its own.
fn rules(random: &mut StdRng) -> Vec<Rule> {
    let mut rules = Vec::new();
    for _ in 0..random.random_range(0..=2) {
        rules.push(outage(random));
    }
    for method in METHODS {
        let faults = [
            Fault::TooManyRequests { retry_after_seconds: None },
            Fault::TooManyRequests { retry_after_seconds: Some(0) },
            Fault::Status(500),
            Fault::Status(502),
            Fault::Html,
            Fault::Garbage,
            Fault::Reset,
            Fault::LoseAnswer,
            Fault::unhealthy(),
            Fault::min_context_slot_not_reached(),
            Fault::min_context_slot_not_reached_in_other_words(),
            Fault::Delay(Duration::from_millis(random.random_range(1..100))),
        ];
        for fault in faults {
            sometimes(random, &mut rules, method, fault, 0.3, 0.08);
        }
        // Each of these takes a second.
        for fault in [Fault::Hang, Fault::TooManyRequests { retry_after_seconds: Some(1) }] {
            if random.random_bool(0.15) {
                let rule = Rule::new(fault).on(method).chance(0.2).times(random.random_range(1..=2));
                rules.push(rule);
            }
        }
    }
    let delay = Duration::from_millis(random.random_range(1..=MAX_DELAY.as_millis() as u64));
    let sends = [
        Fault::DropSend,
        Fault::DuplicateSend,
        Fault::DelaySend(delay),
        Fault::ReorderSend,
        Fault::blockhash_not_found(),
    ];
    for fault in sends {
        sometimes(random, &mut rules, SEND, fault, 0.6, 0.25);
    }
    if random.random_bool(0.3) {
        // Until some transactions expire.
        let (after, times) = (random.random_range(0..40), random.random_range(20..150));
        rules.push(Rule::new(Fault::DropSend).on(SEND).after(after).times(times));
    }
    for fault in [Fault::NullStatuses, Fault::ForgottenStatuses, Fault::ProcessedErrors] {
        sometimes(random, &mut rules, STATUSES, fault, 0.5, 0.4);
    }
    for method in READS {
        for checks_min_context_slot in [true, false] {
            let stale = Fault::Stale { slots: random.random_range(1..50), checks_min_context_slot };
            sometimes(random, &mut rules, method, stale, 0.4, 0.2);
        }
    }
    let websocket = [
        (WEBSOCKET, Fault::Reset, 0.8),
        ("signatureSubscribe", Fault::Reset, 0.1),
        ("signatureSubscribe", Fault::Hang, 0.1),
        ("signatureNotification", Fault::Reset, 0.1),
        ("signatureNotification", Fault::Hang, 0.5),
        ("signatureNotification", Fault::Delay(Duration::from_millis(200)), 0.2),
    ];
    for (method, fault, most) in websocket {
        sometimes(random, &mut rules, method, fault, 0.3, most);
    }
    rules
}

/// A stretch in which nothing works.
fn outage(random: &mut StdRng) -> Rule {
    let faults = [
        Fault::Reset,
        Fault::LoseAnswer,
        Fault::Status(500),
        Fault::Status(502),
        Fault::Html,
        Fault::unhealthy(),
        Fault::TooManyRequests { retry_after_seconds: None },
    ];
    let fault = faults.choose(random).cloned().unwrap_or(Fault::Reset);
    Rule::new(fault).after(random.random_range(0..200)).times(random.random_range(1..40))
}

/// A node that answers of the past, most of the time.
fn lagging(random: &mut StdRng) -> Vec<Rule> {
    let slots = random.random_range(2..60);
    let chance = random.random_range(0.3..0.9);
    let checks_min_context_slot = random.random_bool(0.5);
    let stale =
        |method: &str| Rule::new(Fault::Stale { slots, checks_min_context_slot }).on(method).chance(chance);
    let mut rules: Vec<Rule> = READS.into_iter().map(stale).collect();
    sometimes(random, &mut rules, SEND, Fault::blockhash_not_found(), 0.7, 0.9);
    sometimes(random, &mut rules, SEND, Fault::DropSend, 0.5, 0.5);
    rules
}

/// Adds a fault in `of` of all seeds, by a chance of up to `most`.
fn sometimes(random: &mut StdRng, rules: &mut Vec<Rule>, method: &str, fault: Fault, of: f64, most: f64) {
    if random.random_bool(of) {
        rules.push(Rule::new(fault).on(method).chance(random.random_range(0.0..most)));
    }
}
