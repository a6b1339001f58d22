//! The thread that owns the connection.

use std::thread::JoinHandle;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::StoreError;

/// Changes that share one transaction at most, so that none waits for more than a bounded amount of work.
const MAX_GROUP: usize = 256;
/// Changes that may wait; whoever comes after them waits outside.
const QUEUE: usize = 1024;

/// Tells the caller, once the group is on disk or isn't.
type Reply = Box<dyn FnOnce(Result<(), String>) + Send>;
/// Makes one change inside a savepoint; whether to keep it, and how to answer.
type Job = Box<dyn FnOnce(&Connection) -> (bool, Reply) + Send>;

/// The writer thread. It ends when this is dropped, after what is queued.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(mut connection: Connection) -> Result<Self, StoreError> {
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let run = move || {
            while let Some(first) = queue.blocking_recv() {
                let mut group = vec![first];
                while group.len() < MAX_GROUP {
                    let Ok(next) = queue.try_recv() else { break };
                    group.push(next);
                }
                run_group(&mut connection, group);
            }
        };
        let thread = std::thread::Builder::new().name("committor-store".to_owned()).spawn(run);
        Ok(Self { jobs: Some(jobs), thread: Some(thread.map_err(StoreError::Thread)?) })
    }

    /// Runs `work` on the writer thread and returns once its effect is on disk. If it fails, it has no effect.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let tell = move |result| {
            // A caller that went away does not want to know.
            let _ = reply.send(result);
        };
        self.run_then(doing, work, tell).await?;
        answer.await.map_err(|_| StoreError::Closed { doing })?
    }

    /// Runs `work` on the writer thread and then, once its effect is on disk, `tell`, in the order in which the effects
    /// came about. Returns as soon as it is queued.
    pub(super) async fn run_then<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
        tell: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        let job: Job = Box::new(move |connection| {
            let result = work(connection).map_err(|error| error.doing(doing));
            let keep = result.is_ok();
            let reply: Reply = Box::new(move |committed| {
                tell(match committed {
                    Ok(()) => result,
                    Err(reason) => Err(StoreError::Commit { doing, reason }),
                });
            });
            (keep, reply)
        });
        let closed = || StoreError::Closed { doing };
        self.jobs.as_ref().ok_or_else(closed)?.send(job).await.map_err(|_| closed())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Closing the queue ends the thread.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl StoreError {
    /// Says what was to be done where only SQLite's error is known.
    pub(super) fn doing(self, doing: &'static str) -> Self {
        match self {
            Self::Sqlite { source, .. } => Self::Sqlite { doing, source },
            other => other,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    /// The writer puts the right words in.
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite { doing: "use the store", source }
    }
}

fn run_group(connection: &mut Connection, group: Vec<Job>) {
    let mut replies = Vec::with_capacity(group.len());
    let committed = in_transaction(connection, group, &mut replies).map_err(|error| error.to_string());
    for reply in replies {
        reply(committed.clone());
    }
}

fn in_transaction(
    connection: &mut Connection,
    group: Vec<Job>,
    replies: &mut Vec<Reply>,
) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in group {
        let savepoint = transaction.savepoint()?;
        let (keep, reply) = job(&savepoint);
        replies.push(reply);
        if keep {
            savepoint.commit()?;
        }
        // Else dropping it undoes the change.
    }
    transaction.commit()
}
