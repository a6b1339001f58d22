//! What can go wrong.

use std::time::Duration;

use serde_json::{Value, json};

/// What can go wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The node is not asked; the answer is HTTP status 429.
    TooManyRequests {
        /// What the answer's `Retry-After` says, if it has one.
        retry_after_seconds: Option<u64>,
    },
    /// The node is not asked; the answer is an HTTP status, such as 500 or 502, with a page.
    Status(u16),
    /// The node is not asked; the answer is a page, with HTTP status 200.
    Html,
    /// The node is not asked; the answer is no text.
    Garbage,
    /// The node is not asked; the answer is this JSON-RPC error.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
        /// Its data.
        data: Value,
    },
    /// There is no answer, ever. A websocket's message is swallowed.
    Hang,
    /// The connection is broken off before the node is asked.
    Reset,
    /// The node is asked, and the connection broken off before its answer is passed on.
    LoseAnswer,
    /// The node is asked so much later.
    Delay(Duration),
    /// The answer is an earlier one to the same question.
    Stale {
        /// How many slots earlier, at least, if there is such an answer; else the earliest that there is.
        slots: u64,
        /// Whether a question that names a later `minContextSlot` is refused, as a node that lags does.
        checks_min_context_slot: bool,
    },
    /// A transaction is taken and lost.
    DropSend,
    /// A transaction is sent twice.
    DuplicateSend,
    /// A transaction is taken, and sent so much later.
    DelaySend(Duration),
    /// A transaction is taken, and sent after the next one.
    ReorderSend,
    /// No transaction's status is known.
    NullStatuses,
    /// No transaction's status is known unless the history is asked too.
    ForgottenStatuses,
    /// Every transaction has failed, at `processed`.
    ProcessedErrors,
}

impl Fault {
    /// A node that knows itself to be behind.
    pub fn unhealthy() -> Self {
        let data = json!({ "numSlotsBehind": 42 });
        Self::Error { code: -32005, message: "Node is behind by 42 slots".to_owned(), data }
    }

    /// A node that has not reached the slot asked for, in Agave's words.
    pub fn min_context_slot_not_reached() -> Self {
        let (message, data) = ("Minimum context slot has not been reached", json!({ "contextSlot": 1 }));
        Self::Error { code: -32016, message: message.to_owned(), data }
    }

    /// The same in other words, with a code that is used for anything.
    pub fn min_context_slot_not_reached_in_other_words() -> Self {
        let message = "min context slot not reached".to_owned();
        Self::Error { code: -32603, message, data: Value::Null }
    }

    /// A node that does not know a transaction's blockhash.
    pub fn blockhash_not_found() -> Self {
        let message = "Transaction simulation failed: Blockhash not found".to_owned();
        let data = json!({ "err": "BlockhashNotFound", "logs": [], "accounts": null, "unitsConsumed": 0,
            "returnData": null, "innerInstructions": null, "replacementBlockhash": null });
        Self::Error { code: -32002, message, data }
    }

    /// Its name in [`Counts`](crate::Counts).
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooManyRequests { .. } => "too many requests",
            Self::Status(_) => "status",
            Self::Html => "html",
            Self::Garbage => "garbage",
            Self::Error { .. } => "error",
            Self::Hang => "hang",
            Self::Reset => "reset",
            Self::LoseAnswer => "lose answer",
            Self::Delay(_) => "delay",
            Self::Stale { .. } => "stale",
            Self::DropSend => "drop send",
            Self::DuplicateSend => "duplicate send",
            Self::DelaySend(_) => "delay send",
            Self::ReorderSend => "reorder send",
            Self::NullStatuses => "null statuses",
            Self::ForgottenStatuses => "forgotten statuses",
            Self::ProcessedErrors => "processed errors",
        }
    }
}
