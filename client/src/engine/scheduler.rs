//! Which bundle is worked on when. One task owns the queues; the others send it messages.

use std::collections::HashMap;

use tokio::sync::{mpsc, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Event, bundle::Runner, error::chain_of, queues::Queues};
use crate::{
    chain::Chain,
    store::QueuedBundle,
    types::{BundleKey, BundleStatus},
};

/// What the scheduler is told.
pub(super) enum Message {
    /// Bundles in their order, and whom to tell once the work on all of them has ended.
    Submit { bundles: Vec<QueuedBundle>, done: Option<oneshot::Sender<()>> },
    /// The work on a bundle has ended.
    Ended(BundleKey),
    /// Whom to tell once no bundle is left.
    WhenIdle(oneshot::Sender<()>),
    /// Start no more bundles, and whom to tell once none is running.
    Drain(oneshot::Sender<()>),
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
    groups: HashMap<u64, Group>,
    group_of: HashMap<BundleKey, u64>,
    next_group: u64,
    waiting_for_idle: Vec<oneshot::Sender<()>>,
    draining: Vec<oneshot::Sender<()>>,
    is_draining: bool,
}

impl<C: Chain> Scheduler<C> {
    pub(super) fn new(
        runner: Runner<C>,
        messages: mpsc::UnboundedSender<Message>,
        tasks: TaskTracker,
        cancelled: CancellationToken,
    ) -> Self {
        let settings = runner.settings;
        Self {
            queues: Queues::new(settings.bundles_in_flight, settings.share_transactions),
            runner,
            messages,
            tasks,
            cancelled,
            groups: HashMap::new(),
            group_of: HashMap::new(),
            next_group: 0,
            waiting_for_idle: Vec::new(),
            draining: Vec::new(),
            is_draining: false,
        }
    }

    pub(super) async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let cancelled = self.cancelled.clone();
        while let Some(Some(message)) = cancelled.run_until_cancelled(messages.recv()).await {
            match message {
                Message::Submit { bundles, done } => self.submit(bundles, done).await,
                Message::Ended(key) => self.ended(key),
                Message::WhenIdle(idle) => self.waiting_for_idle.push(idle),
                Message::Drain(drained) => {
                    self.is_draining = true;
                    self.draining.push(drained);
                }
            }
            if !self.is_draining {
                self.start_what_can_run();
            }
            // Callers that went away do not want to know.
            if self.queues.len() == 0 {
                for idle in self.waiting_for_idle.drain(..) {
                    let _ = idle.send(());
                }
            }
            if self.queues.running() == 0 {
                for drained in self.draining.drain(..) {
                    let _ = drained.send(());
                }
            }
        }
    }

    async fn submit(&mut self, bundles: Vec<QueuedBundle>, done: Option<oneshot::Sender<()>>) {
        let group = self.next_group;
        self.next_group += 1;
        if bundles.is_empty() {
            done.map(|done| done.send(()));
            return;
        }
        self.groups.insert(group, Group { left: bundles.len(), done });
        for bundle in bundles {
            self.group_of.insert(bundle.key, group);
            if self.runner.settings.coalesce {
                self.coalesce(&bundle).await;
            }
            self.queues.push(bundle);
        }
    }

    /// Lets older bundles give way to a newer one. One that can't be recorded as such stays where it is.
    async fn coalesce(&mut self, newer: &QueuedBundle) {
        for older in self.queues.replaceable_by(newer) {
            match self.runner.store.supersede(older, newer.key).await {
                Ok(()) => {
                    self.runner.tell(Event::Superseded { bundle: older, by: newer.key });
                    let status = BundleStatus::Superseded;
                    self.runner.tell(Event::Ended { bundle: older, status });
                    self.ended(older);
                }
                Err(error) => {
                    tracing::warn!(bundle = %older, error = chain_of(&error), "could not supersede a bundle");
                }
            }
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
        loop {
            let group = self.queues.next();
            if group.is_empty() {
                return;
            }
            let (runner, messages, cancelled) =
                (self.runner.clone(), self.messages.clone(), self.cancelled.clone());
            self.tasks.spawn(async move {
                cancelled.run_until_cancelled(runner.run_group(&group, &messages)).await;
            });
        }
    }
}
