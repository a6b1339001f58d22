//! What people watch while a changeset lands: bars on a terminal, a line per bundle elsewhere. All on stderr.

use std::{
    collections::HashMap,
    io::{IsTerminal, stderr},
    time::Duration,
};

use committor_client::{
    Event,
    types::{BundleId, BundleKey},
};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::{
    sync::{
        broadcast::{
            Receiver,
            error::{RecvError, TryRecvError},
        },
        oneshot,
    },
    task::JoinHandle,
};

/// What is shown while bundles are worked on.
pub struct Progress {
    done: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Progress {
    /// Follows the events of some bundles until [`Self::finish`].
    pub fn follow(mut events: Receiver<Event>, bundles: &[(BundleId, BundleKey)]) -> Self {
        let mut view = View::new(bundles);
        let (done, mut finished) = oneshot::channel();
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    event = events.recv() => match event {
                        Ok(event) => view.show(&event),
                        // The bars fall behind; the report at the end does not.
                        Err(RecvError::Lagged(_)) => (),
                        Err(RecvError::Closed) => break,
                    },
                    _ = &mut finished => break,
                }
            }
            loop {
                match events.try_recv() {
                    Ok(event) => view.show(&event),
                    Err(TryRecvError::Lagged(_)) => (),
                    Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                }
            }
            view.bar.finish_and_clear();
        });
        Self { done, task }
    }

    /// Shows what is left to show, and ends.
    pub async fn finish(self) {
        // If the task has ended, there is nothing left to show.
        let _ = self.done.send(());
        let _ = self.task.await;
    }
}

struct View {
    names: HashMap<BundleKey, BundleId>,
    left: usize,
    bar: ProgressBar,
    terminal: bool,
    last_reason: Option<String>,
}

impl View {
    fn new(bundles: &[(BundleId, BundleKey)]) -> Self {
        let terminal = stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let style = "{spinner} {bar:40} {pos}/{len} transactions landed, {msg} {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        let names = bundles.iter().map(|(id, key)| (*key, *id)).collect();
        let view = Self { names, left: bundles.len(), bar, terminal, last_reason: None };
        view.count();
        view
    }

    fn count(&self) {
        self.bar.set_message(format!("{} bundles to go,", self.left));
    }

    fn line(&self, text: String) {
        if self.terminal { self.bar.println(text) } else { eprintln!("{text}") }
    }

    fn show(&mut self, event: &Event) {
        let Some(name) = self.names.get(&event.bundle()) else { return };
        match event {
            Event::Planned { transactions: 0, .. } => {
                self.line(format!("bundle {name}: shares a transaction"));
            }
            Event::Planned { transactions, .. } => {
                self.bar.inc_length(*transactions as u64);
                let plural = if *transactions == 1 { "" } else { "s" };
                self.line(format!("bundle {name}: {transactions} transaction{plural} planned"));
            }
            Event::Landed { .. } => self.bar.inc(1),
            Event::Retrying { reason, .. } => {
                // A node that is down tells every bundle the same, again and again.
                if self.last_reason.as_ref() != Some(reason) {
                    self.line(format!("bundle {name}: trying again: {reason}"));
                    self.last_reason = Some(reason.clone());
                }
            }
            Event::Superseded { by, .. } => {
                let by =
                    self.names.get(by).map_or_else(|| "a newer one".to_owned(), |by| format!("bundle {by}"));
                self.line(format!("bundle {name}: gave way to {by}"));
            }
            Event::Ended { status, .. } => {
                self.left = self.left.saturating_sub(1);
                self.count();
                self.line(format!("bundle {name}: {status}"));
            }
        }
    }
}
