//! What the chain layer did, in numbers.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::FaultKind;

/// What the chain layer did since it was made: a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainStats {
    /// Requests by method, every try counted.
    pub requests: BTreeMap<String, u64>,
    /// Requests that came to nothing, by method and kind.
    pub faults: BTreeMap<(String, FaultKind), u64>,
    /// Requests that were made again for it, by method and kind. The rest of the faults was told to whoever asked.
    pub retries: BTreeMap<(String, FaultKind), u64>,
    /// Requests that went to another endpoint than the preferred one.
    pub failovers: u64,
    /// How long requests waited for the own rate limit, all together.
    pub limited: Duration,
    /// Transactions that were sent for the first time.
    pub sent: u64,
    /// How often one was sent again because it was not confirmed.
    pub resent: u64,
    /// How often one was handed to a connection to the leaders, which says nothing about what became of it.
    pub sent_to_leaders: u64,
    /// Outcomes that the websocket told.
    pub notified: u64,
    /// Outcomes that were found by asking.
    pub polled: u64,
    /// Transactions that expired.
    pub expired: u64,
}

impl ChainStats {
    /// Requests of one method.
    pub fn requests_of(&self, method: &str) -> u64 {
        self.requests.get(method).copied().unwrap_or_default()
    }

    /// Requests that came to nothing in one way.
    pub fn faults_of(&self, kind: FaultKind) -> u64 {
        self.faults.iter().filter(|((_, of), _)| *of == kind).map(|(_, count)| count).sum()
    }

    /// Requests that were made again for one kind of fault.
    pub fn retries_of(&self, kind: FaultKind) -> u64 {
        self.retries.iter().filter(|((_, of), _)| *of == kind).map(|(_, count)| count).sum()
    }
}

/// Where it is counted.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<ChainStats>);

impl Counters {
    pub(super) fn snapshot(&self) -> ChainStats {
        self.lock().clone()
    }

    pub(super) fn request(&self, method: &str, preferred: bool, limited: Duration) {
        let mut stats = self.lock();
        // No `entry`: it would make a string for every request.
        match stats.requests.get_mut(method) {
            Some(count) => *count += 1,
            None => drop(stats.requests.insert(method.to_owned(), 1)),
        }
        stats.failovers += u64::from(!preferred);
        stats.limited += limited;
    }

    pub(super) fn fault(&self, method: &str, kind: FaultKind, again: bool) {
        let mut stats = self.lock();
        *stats.faults.entry((method.to_owned(), kind)).or_default() += 1;
        if again {
            *stats.retries.entry((method.to_owned(), kind)).or_default() += 1;
        }
    }

    /// Counts something else.
    pub(super) fn count(&self, count: impl FnOnce(&mut ChainStats)) {
        count(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, ChainStats> {
        // Numbers stay numbers, whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
