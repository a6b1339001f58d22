//! What was asked, and what was done to it.

use std::collections::BTreeMap;

/// What was asked of a proxy, and what it did to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls and websocket messages by method.
    pub calls: BTreeMap<String, u64>,
    /// Bytes of questions and answers over HTTP, without their headers.
    pub bytes: u64,
    /// Faults by method and [name](crate::Fault::name).
    pub faults: BTreeMap<(String, &'static str), u64>,
}

impl Counts {
    /// Calls of one method.
    pub fn calls_of(&self, method: &str) -> u64 {
        self.calls.get(method).copied().unwrap_or_default()
    }

    /// Faults of one method.
    pub fn faults_of(&self, method: &str) -> u64 {
        self.faults.iter().filter(|((of, _), _)| of == method).map(|(_, count)| count).sum()
    }

    /// All faults.
    pub fn all_faults(&self) -> u64 {
        self.faults.values().sum()
    }
}
