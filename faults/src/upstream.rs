//! The node behind the proxy, and what can be done to its answers.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde_json::{Value, json};
use solana_transaction::versioned::VersionedTransaction;

/// The node behind the proxy.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    pub(crate) http: reqwest::Client,
    pub(crate) rpc_url: String,
    pub(crate) ws_url: String,
}

impl Upstream {
    /// What the node answers.
    pub(crate) async fn ask(&self, body: Bytes) -> Result<Bytes, reqwest::Error> {
        let request = self.http.post(&self.rpc_url).header("content-type", "application/json").body(body);
        request.send().await?.bytes().await
    }
}

/// What a node answers that takes a transaction; `None` if there is none in the request.
pub(crate) fn taken(request: &Value) -> Option<Value> {
    let bytes = BASE64_STANDARD.decode(request["params"][0].as_str()?).ok()?;
    let transaction: VersionedTransaction = wincode::deserialize(&bytes).ok()?;
    let signature = transaction.signatures.first()?.to_string();
    Some(json!({ "jsonrpc": "2.0", "id": request["id"], "result": signature }))
}

/// The answer without any status.
pub(crate) fn without_statuses(mut answer: Value) -> Value {
    for status in statuses(&mut answer) {
        *status = Value::Null;
    }
    answer
}

/// The answer with an error at `processed` for every status.
pub(crate) fn with_processed_errors(mut answer: Value) -> Value {
    let slot = answer.pointer("/result/context/slot").cloned().unwrap_or_default();
    let error = json!({ "InstructionError": [0, { "Custom": 1 }] });
    for status in statuses(&mut answer) {
        *status = json!({ "slot": slot, "confirmations": 0, "err": error, "status": { "Err": error },
            "confirmationStatus": "processed" });
    }
    answer
}

fn statuses(answer: &mut Value) -> impl Iterator<Item = &mut Value> {
    answer.pointer_mut("/result/value").and_then(Value::as_array_mut).into_iter().flatten()
}
