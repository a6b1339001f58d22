//! How to talk to a cluster.

use std::{fmt, num::NonZeroUsize, time::Duration};

use solana_commitment_config::CommitmentConfig;

#[cfg(feature = "tpu")]
use super::TpuSettings;
#[cfg(feature = "proxy")]
use crate::proxy::ProxySettings;

/// The smallest number that lands as many transactions per second as any: see `docs/performance.md`.
const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(32).expect("not zero");

/// How to talk to a cluster.
#[derive(Clone)]
pub struct RpcSettings {
    /// URL of the JSON-RPC service.
    pub url: String,
    /// URL of the websocket service; `None` to poll only.
    pub websocket_url: Option<String>,
    /// Other services of the same cluster, the best first. They are used while those before them fail or lag behind.
    pub fallbacks: Vec<Endpoint>,
    /// When a transaction counts as landed, and what reads see.
    pub commitment: CommitmentConfig,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long one request may take, its answer included.
    pub request_timeout: Duration,
    /// How often, and after what waits, a request is tried again.
    pub retry: RetrySettings,
    /// What each endpoint is asked at most; `None` for no limit.
    pub rate_limit: Option<RateLimit>,
    /// How soon a status is asked for that the websocket did not tell in time. The more transactions there are to ask for,
    /// and the longer nothing changes, the longer it takes: see [`STATUS_CALLS_PER_SECOND`](super::STATUS_CALLS_PER_SECOND).
    pub poll_interval: Duration,
    /// How often an unconfirmed transaction is sent again.
    pub resend_interval: Duration,
    /// How long a node may go on failing before what waits for it is told.
    pub patience: Duration,
    /// How old a blockhash may be that is handed out to sign with. It lives for 150 blocks, some 30 s.
    pub blockhash_max_age: Duration,
    /// How old the slot and the block height may be that are handed out. Both only grow, so an old one is merely careful.
    pub position_max_age: Duration,
    /// Transactions that are handed to the nodes at a time, each on an HTTP connection of its own, which is kept.
    pub connections: NonZeroUsize,
    /// Whether, and how, transactions are sent to the leaders; `None` for by the node. What the node has to simulate first
    /// goes through it all the same, and to the leaders if it has to be sent again.
    #[cfg(feature = "tpu")]
    pub tpu: Option<TpuSettings>,
    /// Whether, and how, transactions are simulated in this process; `None` for by the node.
    #[cfg(feature = "proxy")]
    pub proxy: Option<ProxySettings>,
}

impl RpcSettings {
    /// Settings for the service at `url`: `confirmed`, and intervals that suit slots of 200 to 400 ms.
    pub fn new(url: impl Into<String>) -> Self {
        let Endpoint { url, websocket_url } = Endpoint::new(url);
        Self {
            url,
            websocket_url,
            fallbacks: Vec::new(),
            commitment: CommitmentConfig::confirmed(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            retry: RetrySettings::default(),
            rate_limit: None,
            poll_interval: Duration::from_millis(400),
            resend_interval: Duration::from_secs(2),
            patience: Duration::from_secs(60),
            blockhash_max_age: Duration::from_secs(1),
            position_max_age: Duration::from_millis(400),
            connections: DEFAULT_CONNECTIONS,
            #[cfg(feature = "tpu")]
            tpu: None,
            #[cfg(feature = "proxy")]
            proxy: None,
        }
    }

    /// Settings as [`Self::new`] makes them, for several services of one cluster, the best first.
    pub fn of(first: Endpoint, fallbacks: Vec<Endpoint>) -> Self {
        let Endpoint { url, websocket_url } = first;
        Self { websocket_url, fallbacks, ..Self::new(url) }
    }

    /// All endpoints, the preferred one first.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let first = Endpoint { url: self.url.clone(), websocket_url: self.websocket_url.clone() };
        std::iter::once(first).chain(self.fallbacks.iter().cloned()).collect()
    }
}

// A URL may hold a key.
impl fmt::Debug for RpcSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcSettings")
            .field("endpoints", &self.endpoints())
            .field("commitment", &self.commitment.commitment)
            .field("retry", &self.retry)
            .field("rate_limit", &self.rate_limit)
            .finish_non_exhaustive()
    }
}

/// One service of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// URL of the JSON-RPC service.
    pub url: String,
    /// URL of the websocket service; `None` if it has none.
    pub websocket_url: Option<String>,
}

impl Endpoint {
    /// A service whose websocket is where Solana's convention has it: at the same host, one port above if one is named.
    pub fn new(url: impl Into<String>) -> Self {
        let url = url.into();
        let websocket_url = websocket_url(&url);
        Self { url, websocket_url }
    }

    /// Host and port, which hold no key, for people to read.
    pub fn host(&self) -> &str {
        host(&self.url)
    }
}

// A URL may hold a key.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&host(&self.url)).finish()
    }
}

/// How a request is tried again after a fault that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// How often a request is tried in all; 0 counts as 1.
    pub attempts: u32,
    /// The wait before the second try. It doubles with each further one, and varies by half, so that those who failed
    /// together do not come back together.
    pub first_delay: Duration,
    /// The longest of these waits. What a node asks for by `Retry-After` may be longer.
    pub max_delay: Duration,
    /// After how long a request is not tried again, however many tries are left. Waiting for the own rate limit does not count.
    pub total: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts: 8,
            first_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(5),
            total: Duration::from_secs(60),
        }
    }
}

/// What an endpoint is asked at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second, in the long run; 0 counts as 1.
    pub per_second: u32,
    /// Requests that may follow each other at once after a pause; 0 counts as 1.
    pub burst: u32,
}

/// A URL's host and port: what may be shown of it.
pub(super) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

/// By Solana's convention: the same host, and the next port if one is named. `None` if the URL is not of that kind.
fn websocket_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme {
        "http" => "ws",
        "https" => "wss",
        _ => return None,
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            format!("{name}:{}", port.parse::<u16>().ok()?.checked_add(1)?)
        }
        _ => host.to_owned(),
    };
    Some(format!("{scheme}://{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_websocket_is_beside_the_rpc_service() {
        let cases = [
            ("http://localhost:8899", Some("ws://localhost:8900/")),
            ("https://api.devnet.solana.com", Some("wss://api.devnet.solana.com/")),
            ("https://host.example/a/key?x=1", Some("wss://host.example/a/key?x=1")),
            ("http://[::1]:80/", Some("ws://[::1]:81/")),
            ("http://[::1]/", Some("ws://[::1]/")),
            ("http://host:65535", None),
            ("ftp://host", None),
        ];
        for (url, expected) in cases {
            assert_eq!(websocket_url(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_key_in_a_url_is_not_shown() {
        let settings = RpcSettings {
            fallbacks: vec![Endpoint::new("https://user:secret@b.example/secret")],
            ..RpcSettings::new("https://a.example:8899?api-key=secret")
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("a.example:8899") && shown.contains("b.example"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
