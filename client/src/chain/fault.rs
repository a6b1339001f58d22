//! What can go wrong with a request, and what follows from it.

use std::fmt;

use solana_rpc_client_api::{
    client_error::{Error, ErrorKind, reqwest},
    custom_error::{
        JSON_RPC_SERVER_ERROR_BLOCK_NOT_AVAILABLE, JSON_RPC_SERVER_ERROR_BLOCK_STATUS_NOT_AVAILABLE_YET,
        JSON_RPC_SERVER_ERROR_LONG_TERM_STORAGE_UNREACHABLE,
        JSON_RPC_SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED, JSON_RPC_SERVER_ERROR_NODE_UNHEALTHY,
        JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
    },
    request::RpcError,
};

/// JSON-RPC: the server failed.
const INTERNAL_ERROR: i64 = -32603;
/// JSON-RPC: the first code that servers may define; used for whatever has no code of its own.
const SERVER_ERROR: i64 = -32000;
/// How some services tell inside a JSON-RPC answer that they were asked too often.
const TOO_MANY_REQUESTS: [i64; 2] = [429, -32429];

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// No connection could be made.
    Connect,
    /// The connection broke before the answer was complete.
    Reset,
    /// No answer came in time.
    Timeout,
    /// The service was asked too often (429).
    RateLimited,
    /// The service failed (5xx, or an internal error).
    ServerError,
    /// What came is no answer to what was asked: an HTML page, or other nonsense.
    Garbage,
    /// The node says that it can't be relied on now.
    Unhealthy,
    /// The node has not seen a slot yet that this client has.
    Lagging,
    /// The service does not let this client in (4xx).
    Denied,
    /// The node answered with an error that is about the request itself.
    Rejected,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Connect,
        Self::Reset,
        Self::Timeout,
        Self::RateLimited,
        Self::ServerError,
        Self::Garbage,
        Self::Unhealthy,
        Self::Lagging,
        Self::Denied,
        Self::Rejected,
    ];

    /// Whether the same request may well work in a moment, or elsewhere.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::Connect
            | Self::Reset
            | Self::Timeout
            | Self::RateLimited
            | Self::ServerError
            | Self::Garbage
            | Self::Unhealthy
            | Self::Lagging => true,
            Self::Denied | Self::Rejected => false,
        }
    }

    /// Whether the node, or the way to it, is the trouble, and not what was asked for.
    pub const fn is_outage(self) -> bool {
        match self {
            Self::Connect
            | Self::Reset
            | Self::Timeout
            | Self::RateLimited
            | Self::ServerError
            | Self::Garbage
            | Self::Unhealthy
            | Self::Lagging
            | Self::Denied => true,
            Self::Rejected => false,
        }
    }

    /// Whether the node may have done what it was asked to do all the same.
    pub const fn may_have_worked(self) -> bool {
        match self {
            Self::Reset | Self::Timeout | Self::ServerError | Self::Garbage => true,
            Self::Connect
            | Self::RateLimited
            | Self::Unhealthy
            | Self::Lagging
            | Self::Denied
            | Self::Rejected => false,
        }
    }

    /// What the user can do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Connect => "check the URL, and that the node is running",
            Self::Reset => "check the network and what stands between here and the node",
            Self::Timeout => "the node is slow: try another one, or allow a request more time",
            Self::RateLimited => "set a rate limit below that of the service, or use one with a higher limit",
            Self::ServerError => "the service fails: try again later, or another one",
            Self::Garbage => "check that the URL is that of a Solana JSON-RPC service",
            Self::Unhealthy => "the node is behind the cluster: wait, or use another one",
            Self::Lagging => "the node has not seen what this client has: wait, or use another one",
            Self::Denied => "check the URL and the key in it: the service does not let this client in",
            Self::Rejected => "the node does not take this request: check its version and what it offers",
        }
    }

    /// The kind of a JSON-RPC error.
    pub(super) fn of_answer(code: i64, message: &str) -> Self {
        // Nodes and what stands before them word it in more than one way, and do not agree on the code.
        let message = message.to_ascii_lowercase();
        let says = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
        match code {
            JSON_RPC_SERVER_ERROR_MIN_CONTEXT_SLOT_NOT_REACHED => Self::Lagging,
            // A transaction's failure quotes what programs say.
            JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE => Self::Rejected,
            _ if says(&["minimum context slot", "min context slot", "mincontextslot"]) => Self::Lagging,
            _ if says(&["rate limit", "too many requests", "request limit"]) => Self::RateLimited,
            JSON_RPC_SERVER_ERROR_NODE_UNHEALTHY
            | JSON_RPC_SERVER_ERROR_BLOCK_NOT_AVAILABLE
            | JSON_RPC_SERVER_ERROR_BLOCK_STATUS_NOT_AVAILABLE_YET
            | JSON_RPC_SERVER_ERROR_LONG_TERM_STORAGE_UNREACHABLE => Self::Unhealthy,
            code if TOO_MANY_REQUESTS.contains(&code) => Self::RateLimited,
            INTERNAL_ERROR | SERVER_ERROR => Self::ServerError,
            _ => Self::Rejected,
        }
    }

    /// The kind of an HTTP status; `None` if it is a success.
    pub(super) fn of_status(status: reqwest::StatusCode) -> Option<Self> {
        match status.as_u16() {
            429 => Some(Self::RateLimited),
            408 => Some(Self::Timeout),
            // Too long: the request is what has to change.
            413 => Some(Self::Rejected),
            _ if status.is_success() => None,
            _ if status.is_client_error() => Some(Self::Denied),
            _ if status.is_server_error() => Some(Self::ServerError),
            _ => Some(Self::Garbage),
        }
    }

    /// The kind of an exchange that came to nothing.
    pub(super) fn of_exchange(error: &reqwest::Error) -> Self {
        if error.is_connect() {
            Self::Connect
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_builder() {
            // The URL is none.
            Self::Denied
        } else if error.is_decode() {
            Self::Garbage
        } else {
            Self::Reset
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "no connection",
            Self::Reset => "connection broke",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate limited",
            Self::ServerError => "server error",
            Self::Garbage => "garbage",
            Self::Unhealthy => "unhealthy",
            Self::Lagging => "lagging",
            Self::Denied => "denied",
            Self::Rejected => "rejected",
        })
    }
}

/// A request that was given up.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// How often it was tried.
    pub(super) attempts: u32,
    pub(super) source: Error,
}

impl Fault {
    /// A request, or an answer, that makes no sense to this side.
    pub(super) fn of(kind: FaultKind, attempts: u32, words: String) -> Self {
        let source = ErrorKind::from(RpcError::RpcRequestError(words)).into();
        Self { kind, attempts, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_the_code_or_by_the_words() {
        let lagging = [
            (-32016, "whatever"),
            (-32000, "Minimum context slot has not been reached"),
            (-32603, "min context slot not reached: 7"),
        ];
        for (code, message) in lagging {
            assert_eq!(FaultKind::of_answer(code, message), FaultKind::Lagging, "{code} {message}");
        }
        assert_eq!(FaultKind::of_answer(-32005, "Node is behind by 42 slots"), FaultKind::Unhealthy);
        assert_eq!(FaultKind::of_answer(429, "slow down"), FaultKind::RateLimited);
        assert_eq!(FaultKind::of_answer(-32007, "50/second request limit reached"), FaultKind::RateLimited);
        assert_eq!(FaultKind::of_answer(-32002, "failed: rate limit of a program"), FaultKind::Rejected);
        assert_eq!(FaultKind::of_answer(-32603, "oh"), FaultKind::ServerError);
        assert_eq!(FaultKind::of_answer(-32602, "Invalid params"), FaultKind::Rejected);
    }

    #[test]
    fn what_may_have_worked_is_worth_another_try() {
        for kind in FaultKind::ALL {
            assert!(!kind.may_have_worked() || kind.is_retryable(), "{kind}");
            assert!(!kind.is_retryable() || kind.is_outage(), "{kind}");
        }
    }
}
