//! One request and its answer, over HTTP.

use std::time::{Duration, SystemTime};

use serde_json::Value;
use solana_rpc_client_api::{
    client_error::{
        Error,
        reqwest::{self, header},
    },
    custom_error::{
        JSON_RPC_SERVER_ERROR_NODE_UNHEALTHY, JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE,
        NodeUnhealthyErrorData,
    },
    request::{RpcError, RpcResponseErrorData},
};

use super::FaultKind;

/// How much of a page that is no answer is told.
const MAX_EXCERPT_CHARS: usize = 120;

/// Why one try came to nothing.
pub(super) struct Failure {
    pub(super) kind: FaultKind,
    pub(super) source: Error,
    /// When the service wants to be asked again.
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    pub(super) fn new(kind: FaultKind, source: impl Into<Error>) -> Self {
        Self { kind, source: source.into(), retry_after: None }
    }

    pub(super) fn words(kind: FaultKind, words: String) -> Self {
        Self::new(kind, from_rpc(RpcError::RpcRequestError(words)))
    }
}

/// Sends a request and reads the answer to it.
pub(super) async fn exchange(
    http: &reqwest::Client,
    url: &str,
    id: u64,
    body: String,
    timeout: Option<Duration>,
) -> Result<Value, Failure> {
    // A URL may hold a key, and an error may end up in a log.
    let failed = |error: reqwest::Error| {
        let error = error.without_url();
        Failure::new(FaultKind::of_exchange(&error), from_http(error))
    };
    let mut request = http.post(url).header(header::CONTENT_TYPE, "application/json").body(body);
    if let Some(timeout) = timeout {
        request = request.timeout(timeout);
    }
    let response = request.send().await.map_err(failed)?;
    let status = response.status();
    let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.and_then(|value| wait(value, SystemTime::now()));
    let body = response.bytes().await.map_err(failed)?;
    let answer = read(&body, id);
    let Some(kind) = FaultKind::of_status(status) else { return answer };
    // Some services send what they have to say about the request itself with an HTTP error.
    match answer {
        Err(failure) if kind != FaultKind::RateLimited && is_answer(&failure) => {
            let kind = if kind == FaultKind::ServerError && failure.kind == FaultKind::Rejected {
                kind
            } else {
                failure.kind
            };
            Err(Failure { kind, retry_after, ..failure })
        }
        _ => {
            let failure = Failure::words(kind, format!("HTTP status {status}: {}", excerpt(&body)));
            Err(Failure { retry_after, ..failure })
        }
    }
}

fn is_answer(failure: &Failure) -> bool {
    use solana_rpc_client_api::client_error::ErrorKind;
    matches!(failure.source.kind(), ErrorKind::RpcError(RpcError::RpcResponseError { .. }))
}

/// The result in an answer.
fn read(body: &[u8], id: u64) -> Result<Value, Failure> {
    let garbage = || Failure::words(FaultKind::Garbage, format!("no JSON-RPC answer: {}", excerpt(body)));
    let mut answer: Value = serde_json::from_slice(body).map_err(|_| garbage())?;
    if let Some(error) = answer.get_mut("error").map(Value::take).filter(|error| !error.is_null()) {
        let code = error.get("code").and_then(Value::as_i64).ok_or_else(garbage)?;
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = FaultKind::of_answer(code, &message);
        let data = error_data(code, error.get("data").cloned().unwrap_or_default());
        return Err(Failure::new(kind, from_rpc(RpcError::RpcResponseError { code, message, data })));
    }
    if answer.get("id").and_then(Value::as_u64) != Some(id) {
        return Err(garbage());
    }
    answer.get_mut("result").map(Value::take).ok_or_else(garbage)
}

fn error_data(code: i64, data: Value) -> RpcResponseErrorData {
    match code {
        JSON_RPC_SERVER_ERROR_SEND_TRANSACTION_PREFLIGHT_FAILURE => serde_json::from_value(data)
            .map_or(RpcResponseErrorData::Empty, RpcResponseErrorData::SendTransactionPreflightFailure),
        JSON_RPC_SERVER_ERROR_NODE_UNHEALTHY => serde_json::from_value(data).map_or(
            RpcResponseErrorData::Empty,
            |NodeUnhealthyErrorData { num_slots_behind }| RpcResponseErrorData::NodeUnhealthy {
                num_slots_behind,
            },
        ),
        _ => RpcResponseErrorData::Empty,
    }
}

/// What `Retry-After` asks for: seconds, or a date.
fn wait(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|char| !char.is_control()).take(MAX_EXCERPT_CHARS).collect()
}

fn from_rpc(error: RpcError) -> Error {
    solana_rpc_client_api::client_error::ErrorKind::from(error).into()
}

fn from_http(error: reqwest::Error) -> Error {
    solana_rpc_client_api::client_error::ErrorKind::from(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 90);
        assert_eq!(wait(" 7 ", now), Some(Duration::from_secs(7)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(90)));
        let later = now + Duration::from_secs(3_600);
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT", later), Some(Duration::ZERO), "it has passed");
        for nonsense in ["", "soon", "-1", "1.5"] {
            assert_eq!(wait(nonsense, now), None, "{nonsense}");
        }
    }

    #[test]
    fn only_an_answer_to_this_request_is_one() {
        let kind = |body: &str| read(body.as_bytes(), 7).map_err(|failure| failure.kind);
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":7,"result":null}"#), Ok(Value::Null));
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":7,"error":null,"result":1}"#), Ok(Value::from(1)));
        let garbage = [
            "",
            "<html>502</html>",
            "\u{0}\u{fffd}",
            "\"Service Unavailable\"",
            "[]",
            "{}",
            r#"{"jsonrpc":"2.0","id":8,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":"oh"}"#,
        ];
        for body in garbage {
            assert_eq!(kind(body), Err(FaultKind::Garbage), "{body}");
        }
        assert_eq!(kind(r#"{"id":7,"error":{"code":-32005,"message":"behind"}}"#), Err(FaultKind::Unhealthy));
    }
}
