//! The order of bundles, by account. Pure, so that it can be tested as it is.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use solana_address::Address;

use crate::{
    store::QueuedBundle,
    types::{BundleKey, BundleStatus},
};

/// Bundles that are started together at most.
const MAX_GROUP: usize = 64;
/// A bundle with more bytes than this fills a transaction by itself.
const MAX_SHARED_BYTES: u64 = 2_000;

/// Per account first in, first out; bundles that share no account at once, bounded, the oldest first.
pub(super) struct Queues {
    by_account: HashMap<Address, VecDeque<BundleKey>>,
    bundles: HashMap<BundleKey, QueuedBundle>,
    /// How many of its accounts a bundle is not yet at the head of.
    blocked: HashMap<BundleKey, usize>,
    /// Bundles that wait for nothing but room, in their order.
    ready: BTreeSet<BundleKey>,
    running: HashSet<BundleKey>,
    max_running: usize,
    share: bool,
}

impl Queues {
    pub(super) fn new(max_running: usize, share: bool) -> Self {
        Self {
            by_account: HashMap::new(),
            bundles: HashMap::new(),
            blocked: HashMap::new(),
            ready: BTreeSet::new(),
            running: HashSet::new(),
            max_running: max_running.max(1),
            share,
        }
    }

    /// Adds a bundle of distinct accounts.
    pub(super) fn push(&mut self, bundle: QueuedBundle) {
        let key = bundle.key;
        let mut blocked = 0;
        for account in &bundle.accounts {
            let queue = self.by_account.entry(*account).or_default();
            blocked += usize::from(!queue.is_empty());
            queue.push_back(key);
        }
        self.bundles.insert(key, bundle);
        if blocked == 0 {
            self.ready.insert(key);
        } else {
            self.blocked.insert(key, blocked);
        }
    }

    /// How many bundles wait or run.
    pub(super) fn len(&self) -> usize {
        self.bundles.len()
    }

    /// How many bundles run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// The bundles to start next, if there is room; they count as running from here. Small bundles of one changeset come
    /// together, so that they can share transactions.
    pub(super) fn next(&mut self) -> Vec<BundleKey> {
        let room = self.max_running.saturating_sub(self.running.len()).min(MAX_GROUP);
        let Some(first) = self.ready.first().copied().filter(|_| room > 0) else { return Vec::new() };
        let mut group = vec![first];
        if self.share && self.is_small(first) {
            let changeset = self.bundles.get(&first).map(|bundle| bundle.changeset);
            let others = self.ready.iter().copied().skip(1).filter(|key| {
                self.is_small(*key) && self.bundles.get(key).map(|bundle| bundle.changeset) == changeset
            });
            group.extend(others.take(room - 1));
        }
        for key in &group {
            self.ready.remove(key);
            self.running.insert(*key);
        }
        group
    }

    fn is_small(&self, key: BundleKey) -> bool {
        self.bundles.get(&key).is_some_and(|bundle| {
            bundle.is_plain
                && bundle.status == BundleStatus::Accepted
                && bundle.state_bytes <= MAX_SHARED_BYTES
        })
    }

    /// The bundles that `newer` can take the place of: not started, with nothing but states, with no account that it has
    /// not, and with nothing queued behind them.
    pub(super) fn replaceable_by(&self, newer: &QueuedBundle) -> Vec<BundleKey> {
        let mut found: Vec<BundleKey> = Vec::new();
        if !newer.is_plain {
            return found;
        }
        for account in &newer.accounts {
            let Some(last) = self.by_account.get(account).and_then(VecDeque::back).copied() else { continue };
            let Some(older) = self.bundles.get(&last) else { continue };
            let is_last = |account: &Address| {
                self.by_account.get(account).and_then(VecDeque::back) == Some(&last)
                    && newer.accounts.contains(account)
            };
            let replaceable = older.is_plain
                && older.status == BundleStatus::Accepted
                && !self.running.contains(&last)
                && older.accounts.iter().all(is_last);
            if replaceable && !found.contains(&last) {
                found.push(last);
            }
        }
        found
    }

    /// Removes a bundle, wherever it stands, and lets those behind it move up.
    pub(super) fn remove(&mut self, key: BundleKey) {
        let Some(bundle) = self.bundles.remove(&key) else { return };
        self.running.remove(&key);
        self.ready.remove(&key);
        self.blocked.remove(&key);
        for account in bundle.accounts {
            let Some(queue) = self.by_account.get_mut(&account) else { continue };
            let was_head = queue.front() == Some(&key);
            if was_head {
                queue.pop_front();
            } else {
                queue.retain(|queued| *queued != key);
            }
            let Some(head) = queue.front().copied() else {
                self.by_account.remove(&account);
                continue;
            };
            if !was_head {
                continue;
            }
            if let Some(blocked) = self.blocked.get_mut(&head) {
                *blocked -= 1;
                if *blocked == 0 {
                    self.blocked.remove(&head);
                    self.ready.insert(head);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{BundleId, ChangesetId};

    fn bundle(key: u64, accounts: &[u8]) -> QueuedBundle {
        QueuedBundle {
            key: BundleKey(key),
            changeset: ChangesetId(1),
            id: BundleId(key),
            status: BundleStatus::Accepted,
            accounts: accounts.iter().map(|byte| Address::new_from_array([*byte; 32])).collect(),
            state_bytes: MAX_SHARED_BYTES + 1,
            is_plain: true,
        }
    }

    fn queues(max_running: usize, bundles: &[(u64, &[u8])]) -> Queues {
        let mut queues = Queues::new(max_running, true);
        bundles.iter().for_each(|(key, accounts)| queues.push(bundle(*key, accounts)));
        queues
    }

    fn drain(queues: &mut Queues) -> Vec<Vec<u64>> {
        let groups = std::iter::from_fn(|| Some(queues.next()).filter(|group| !group.is_empty()));
        groups.map(|group| group.into_iter().map(|key| key.0).collect()).collect()
    }

    #[test]
    fn bundles_of_one_account_run_one_after_the_other_and_others_at_once() {
        let mut queues = queues(64, &[(1, &[1]), (2, &[1, 2]), (3, &[2, 3]), (4, &[4])]);
        assert_eq!(drain(&mut queues), [[1], [4]]);
        queues.remove(BundleKey(1));
        assert_eq!(drain(&mut queues), [[2]]);
        queues.remove(BundleKey(4));
        assert_eq!(drain(&mut queues), [[0u64; 0]; 0]);
        queues.remove(BundleKey(2));
        assert_eq!(drain(&mut queues), [[3]]);
        queues.remove(BundleKey(3));
        assert!(queues.by_account.is_empty() && queues.len() == 0 && queues.running() == 0);
    }

    #[test]
    fn no_more_run_than_allowed_and_the_oldest_goes_first() {
        let mut queues = queues(2, &[(1, &[1]), (2, &[2]), (3, &[3]), (4, &[4])]);
        assert_eq!(drain(&mut queues), [[1], [2]]);
        queues.remove(BundleKey(2));
        assert_eq!(drain(&mut queues), [[3]]);
    }

    #[test]
    fn a_long_queue_for_one_account_delays_no_other() {
        let mut queues = Queues::new(64, true);
        (1..=41_000).for_each(|key| queues.push(bundle(key, &[1])));
        queues.push(bundle(41_001, &[2]));
        assert_eq!(drain(&mut queues), [[1], [41_001]]);
    }

    #[test]
    fn small_bundles_of_one_changeset_come_together_as_far_as_there_is_room() {
        let mut queues = Queues::new(3, true);
        let small = |key, changeset| QueuedBundle {
            state_bytes: 100,
            changeset: ChangesetId(changeset),
            ..bundle(key, &[key as u8])
        };
        for (key, changeset) in [(1, 1), (2, 2), (3, 1), (4, 1), (5, 1)] {
            queues.push(small(key, changeset));
        }
        assert_eq!(drain(&mut queues), [[1, 3, 4]]);
        queues.remove(BundleKey(3));
        queues.remove(BundleKey(4));
        assert_eq!(drain(&mut queues), [[2], [5]]);
    }

    #[test]
    fn a_newer_bundle_replaces_only_what_it_covers_and_nothing_is_queued_behind() {
        let mut queues = queues(1, &[(1, &[1]), (2, &[1]), (3, &[2, 3]), (4, &[4, 5]), (5, &[5])]);
        assert_eq!(drain(&mut queues), [[1]]);
        let replaced = |queues: &Queues, accounts: &[u8]| -> Vec<u64> {
            queues.replaceable_by(&bundle(9, accounts)).into_iter().map(|key| key.0).collect()
        };
        assert_eq!(replaced(&queues, &[1]), [2], "the one that runs is not");
        assert_eq!(replaced(&queues, &[2, 3]), [3]);
        assert_eq!(replaced(&queues, &[1, 2, 3]), [2, 3]);
        assert_eq!(replaced(&queues, &[2]), [0; 0], "3 would be lost");
        assert_eq!(replaced(&queues, &[4, 5]), [5], "5 is queued behind 4");
        let with_actions = QueuedBundle { is_plain: false, ..bundle(9, &[1]) };
        assert_eq!(queues.replaceable_by(&with_actions), []);
        queues.remove(BundleKey(2));
        queues.remove(BundleKey(1));
        assert_eq!(drain(&mut queues), [[3]]);
    }
}
