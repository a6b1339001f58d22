//! Which bundle is worked on when: per account first in, first out; bundles that share no account in parallel, bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};

use solana_address::Address;
use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::bundle::Runner;
use crate::{chain::Chain, store::StoredBundle, types::BundleKey};

/// What the scheduler is told.
pub(super) enum Message {
    /// Bundles in their order, and whom to tell once all of them have ended.
    Submit { bundles: Vec<StoredBundle>, done: Option<oneshot::Sender<()>> },
    /// A bundle has ended.
    Ended(BundleKey),
    /// Whom to tell once no bundle is left.
    WhenIdle(oneshot::Sender<()>),
}

/// Bundles that were submitted together.
struct Group {
    left: usize,
    done: Option<oneshot::Sender<()>>,
}

/// Owns the queues. One task.
pub(super) struct Scheduler<C: Chain> {
    runner: Runner<C>,
    messages: mpsc::UnboundedSender<Message>,
    tasks: TaskTracker,
    cancelled: CancellationToken,
    queues: Queues,
    bundles: HashMap<BundleKey, StoredBundle>,
    groups: HashMap<u64, Group>,
    group_of: HashMap<BundleKey, u64>,
    next_group: u64,
    waiting_for_idle: Vec<oneshot::Sender<()>>,
}

impl<C: Chain> Scheduler<C> {
    pub(super) fn new(
        runner: Runner<C>,
        messages: mpsc::UnboundedSender<Message>,
        tasks: TaskTracker,
        cancelled: CancellationToken,
    ) -> Self {
        let queues = Queues::new(runner.settings.bundles_in_flight);
        let (bundles, groups, group_of) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self {
            runner,
            messages,
            tasks,
            cancelled,
            queues,
            bundles,
            groups,
            group_of,
            next_group: 0,
            waiting_for_idle: Vec::new(),
        }
    }

    pub(super) async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let cancelled = self.cancelled.clone();
        while let Some(Some(message)) = cancelled.run_until_cancelled(messages.recv()).await {
            match message {
                Message::Submit { bundles, done } => self.submit(bundles, done),
                Message::Ended(key) => self.ended(key),
                Message::WhenIdle(idle) => self.waiting_for_idle.push(idle),
            }
            self.start_what_can_run();
            if self.queues.is_empty() {
                for idle in self.waiting_for_idle.drain(..) {
                    // A caller that went away does not want to know.
                    let _ = idle.send(());
                }
            }
        }
    }

    fn submit(&mut self, bundles: Vec<StoredBundle>, done: Option<oneshot::Sender<()>>) {
        let group = self.next_group;
        self.next_group += 1;
        self.groups.insert(group, Group { left: bundles.len(), done });
        for bundle in bundles {
            let accounts = bundle.commits.iter().map(|commit| commit.account).collect();
            self.queues.push(bundle.key, accounts);
            self.group_of.insert(bundle.key, group);
            self.bundles.insert(bundle.key, bundle);
        }
    }

    fn ended(&mut self, key: BundleKey) {
        self.queues.remove(key);
        let Some(group) = self.group_of.remove(&key) else { return };
        let Some(entry) = self.groups.get_mut(&group) else { return };
        entry.left -= 1;
        if entry.left == 0 {
            let done = self.groups.remove(&group).and_then(|group| group.done);
            if let Some(done) = done {
                // A caller that went away does not want to know.
                let _ = done.send(());
            }
        }
    }

    fn start_what_can_run(&mut self) {
        while let Some(key) = self.queues.next() {
            let Some(bundle) = self.bundles.remove(&key) else { continue };
            let (runner, messages, cancelled) =
                (self.runner.clone(), self.messages.clone(), self.cancelled.clone());
            self.tasks.spawn(async move {
                if cancelled.run_until_cancelled(runner.run(&bundle)).await.is_some() {
                    // The scheduler is gone only when everything ends.
                    let _ = messages.send(Message::Ended(key));
                }
            });
        }
    }
}

/// The order of bundles, by account. Pure, so that it can be tested as it is.
struct Queues {
    by_account: HashMap<Address, VecDeque<BundleKey>>,
    accounts: HashMap<BundleKey, Vec<Address>>,
    /// How many of its accounts a bundle is not yet at the head of.
    blocked: HashMap<BundleKey, usize>,
    /// Bundles that wait for nothing but room, in their order.
    ready: BTreeMap<BundleKey, ()>,
    running: usize,
    max_running: usize,
}

impl Queues {
    fn new(max_running: usize) -> Self {
        Self {
            by_account: HashMap::new(),
            accounts: HashMap::new(),
            blocked: HashMap::new(),
            ready: BTreeMap::new(),
            running: 0,
            max_running: max_running.max(1),
        }
    }

    /// Adds a bundle of distinct accounts.
    fn push(&mut self, key: BundleKey, accounts: Vec<Address>) {
        let mut blocked = 0;
        for account in &accounts {
            let queue = self.by_account.entry(*account).or_default();
            blocked += usize::from(!queue.is_empty());
            queue.push_back(key);
        }
        self.accounts.insert(key, accounts);
        if blocked == 0 {
            self.ready.insert(key, ());
        } else {
            self.blocked.insert(key, blocked);
        }
    }

    fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// The next bundle to start, if there is room; it counts as running from here.
    fn next(&mut self) -> Option<BundleKey> {
        if self.running >= self.max_running {
            return None;
        }
        let (key, ()) = self.ready.pop_first()?;
        self.running += 1;
        Some(key)
    }

    /// Removes a bundle that was running, and lets those behind it move up.
    fn remove(&mut self, key: BundleKey) {
        let Some(accounts) = self.accounts.remove(&key) else { return };
        self.running -= 1;
        for account in accounts {
            let Some(queue) = self.by_account.get_mut(&account) else { continue };
            queue.pop_front();
            let Some(head) = queue.front().copied() else {
                self.by_account.remove(&account);
                continue;
            };
            if let Some(blocked) = self.blocked.get_mut(&head) {
                *blocked -= 1;
                if *blocked == 0 {
                    self.blocked.remove(&head);
                    self.ready.insert(head, ());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(bytes: &[u8]) -> Vec<Address> {
        bytes.iter().map(|byte| Address::new_from_array([*byte; 32])).collect()
    }

    fn drain(queues: &mut Queues) -> Vec<u64> {
        std::iter::from_fn(|| queues.next()).map(|key| key.0).collect()
    }

    #[test]
    fn bundles_of_one_account_run_one_after_the_other_and_others_at_once() {
        let mut queues = Queues::new(64);
        queues.push(BundleKey(1), accounts(&[1]));
        queues.push(BundleKey(2), accounts(&[1, 2]));
        queues.push(BundleKey(3), accounts(&[2, 3]));
        queues.push(BundleKey(4), accounts(&[4]));
        assert_eq!(drain(&mut queues), [1, 4]);
        queues.remove(BundleKey(1));
        assert_eq!(drain(&mut queues), [2]);
        queues.remove(BundleKey(4));
        assert_eq!(drain(&mut queues), [0; 0]);
        queues.remove(BundleKey(2));
        assert_eq!(drain(&mut queues), [3]);
        queues.remove(BundleKey(3));
        assert!(queues.by_account.is_empty() && queues.accounts.is_empty() && queues.running == 0);
    }

    #[test]
    fn no_more_run_than_allowed_and_the_oldest_goes_first() {
        let mut queues = Queues::new(2);
        for key in 1..=4 {
            queues.push(BundleKey(key), accounts(&[key as u8]));
        }
        assert_eq!(drain(&mut queues), [1, 2]);
        queues.remove(BundleKey(2));
        assert_eq!(drain(&mut queues), [3]);
    }
}
