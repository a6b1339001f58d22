//! The thread that owns the connection that writes.

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use tokio::{
    runtime::Runtime,
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    StoreError,
    error::DatabaseError,
    sql::{Durability, Sql, Transactions},
};

/// Changes that share one transaction at most, so that none waits for more than a bounded amount of work.
const MAX_GROUP: usize = 256;
/// Changes that may wait; whoever comes after them waits outside.
const QUEUE: usize = 1024;
/// How long a change that need not survive a power cut at once may go without, if nothing comes after it.
pub(super) const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// Tells the caller, once the group is on disk or isn't.
type Reply = Box<dyn FnOnce(Result<(), Arc<DatabaseError>>) + Send>;

/// Makes a change, inside a savepoint, or is told that it can't be made; whether to keep it, and how to answer.
type Work = Box<dyn FnOnce(Option<&dyn Sql>) -> (bool, Reply) + Send>;

/// One change.
struct Job {
    durability: Durability,
    work: Work,
}

/// The writer thread. It ends when this is dropped, after what is queued.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// How errors call the store.
    store: Arc<str>,
}

impl Writer {
    pub(super) fn start(mut connection: Box<dyn Transactions>, store: Arc<str>) -> Result<Self, StoreError> {
        let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
        let clock = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let clock = clock.map_err(StoreError::Thread)?;
        let run = move || {
            let mut synced = true;
            loop {
                let first = match next(&mut queue, &clock, synced) {
                    Next::Job(first) => first,
                    Next::Nothing => {
                        connection.sync();
                        synced = true;
                        continue;
                    }
                    Next::Closed => break,
                };
                let mut group = vec![first];
                while group.len() < MAX_GROUP {
                    let Ok(next) = queue.try_recv() else { break };
                    group.push(next);
                }
                synced = run_group(&mut *connection, group) == Durability::Power;
            }
            if !synced {
                connection.sync();
            }
        };
        let thread = std::thread::Builder::new().name("committor-store".to_owned()).spawn(run);
        Ok(Self { jobs: Some(jobs), thread: Some(thread.map_err(StoreError::Thread)?), store })
    }

    /// Runs `work` on the writer thread and returns once its effect is as durable as it has to be. If it fails, it has no
    /// effect.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnOnce(&dyn Sql) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_and(doing, durability, work, |result| result).await
    }

    /// As [`Self::run`], and calls `then` with the result, as [`Self::run_then`] does. Returns what `then` returns.
    pub(super) async fn run_and<T: Send + 'static, U: Send + 'static>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnOnce(&dyn Sql) -> Result<T, StoreError> + Send + 'static,
        then: impl FnOnce(T) -> U + Send + 'static,
    ) -> Result<U, StoreError> {
        let (reply, answer) = oneshot::channel();
        let tell = move |result: Result<T, StoreError>| {
            // A caller that went away does not want to know.
            let _ = reply.send(result.map(then));
        };
        self.run_then(doing, durability, work, tell).await?;
        answer.await.map_err(|_| StoreError::Closed { doing })?
    }

    /// Runs `work` on the writer thread and then, once its effect is as durable as it has to be, `tell`, in the order in
    /// which the effects came about. Returns as soon as it is queued.
    pub(super) async fn run_then<T: Send + 'static>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnOnce(&dyn Sql) -> Result<T, StoreError> + Send + 'static,
        tell: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        let store = self.store.clone();
        let work = move |sql: Option<&dyn Sql>| {
            let result = sql.map(|sql| work(sql).map_err(|error| error.doing(doing, &store)));
            let keep = matches!(result, Some(Ok(_)));
            let reply: Reply = Box::new(move |committed| {
                tell(match (committed, result) {
                    // Its own error says more than that of the group.
                    (_, Some(Err(error))) => Err(error),
                    (Ok(()), Some(result)) => result,
                    (Ok(()), None) => Err(StoreError::Closed { doing }),
                    (Err(source), _) => Err(StoreError::Commit { doing, store: store.to_string(), source }),
                });
            });
            (keep, reply)
        };
        let job = Job { durability, work: Box::new(work) };
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

enum Next {
    Job(Job),
    /// Nothing came for [`SYNC_WITHIN`].
    Nothing,
    Closed,
}

fn next(queue: &mut mpsc::Receiver<Job>, clock: &Runtime, synced: bool) -> Next {
    if synced {
        return queue.blocking_recv().map_or(Next::Closed, Next::Job);
    }
    match clock.block_on(async { timeout(SYNC_WITHIN, queue.recv()).await }) {
        Ok(job) => job.map_or(Next::Closed, Next::Job),
        Err(_) => Next::Nothing,
    }
}

/// Runs a group in one transaction, which is as durable as the one of its changes that has to be the most.
fn run_group(connection: &mut dyn Transactions, group: Vec<Job>) -> Durability {
    let durability = group.iter().map(|job| job.durability).max().unwrap_or(Durability::Power);
    let mut replies = Vec::with_capacity(group.len());
    let mut group = group.into_iter();
    let committed = in_transaction(connection, durability, &mut group, &mut replies).map_err(Arc::new);
    if committed.is_err() {
        connection.rollback();
        // Those whose turn did not come are told too.
        replies.extend(group.map(|job| (job.work)(None).1));
    }
    for reply in replies {
        reply(committed.clone());
    }
    durability
}

fn in_transaction(
    connection: &mut dyn Transactions,
    durability: Durability,
    group: &mut impl Iterator<Item = Job>,
    replies: &mut Vec<Reply>,
) -> Result<(), DatabaseError> {
    connection.begin(durability)?;
    for job in group {
        let saved = connection.execute("SAVEPOINT change", &[]);
        let (keep, reply) = (job.work)(saved.is_ok().then_some(&*connection as &dyn Sql));
        replies.push(reply);
        let ended = saved.and_then(|_| {
            if !keep {
                connection.execute("ROLLBACK TO SAVEPOINT change", &[])?;
            }
            connection.execute("RELEASE SAVEPOINT change", &[])
        });
        ended.map_err(|error| connection.cause(error))?;
    }
    connection.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite;

    /// What SQLite was told about syncing when a change was made.
    async fn synchronous(writer: &Writer, durability: Durability) -> i64 {
        let ask = |sql: &dyn Sql| sql.query("PRAGMA synchronous", &[])?[0].int(0);
        writer.run("ask", durability, ask).await.unwrap()
    }

    #[tokio::test]
    async fn a_group_is_synced_if_one_of_its_changes_has_to_survive_a_power_cut() {
        const FULL: i64 = 2;
        const NORMAL: i64 = 1;
        let folder = tempfile::tempdir().unwrap();
        let connection = sqlite::open(&folder.path().join("s.db")).unwrap();
        let writer = Writer::start(Box::new(connection), "s.db".into()).unwrap();
        assert_eq!(synchronous(&writer, Durability::Process).await, NORMAL);
        assert_eq!(synchronous(&writer, Durability::Power).await, FULL);
        // The thread is held until all three wait, so that they are one group.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let held = writer.run("wait", Durability::Process, move |_| {
            // It ends when the sender is dropped.
            let _ = wait.recv();
            Ok(())
        });
        let changes = async {
            tokio::task::yield_now().await;
            let first = synchronous(&writer, Durability::Process);
            let second = synchronous(&writer, Durability::Power);
            let third = synchronous(&writer, Durability::Process);
            let release = async { drop(go) };
            tokio::join!(first, second, third, release)
        };
        let (held, (first, second, third, ())) = tokio::join!(held, changes);
        held.unwrap();
        assert_eq!([first, second, third], [FULL; 3]);
    }
}
