//! The threads that read, each on a connection of its own: in WAL mode they wait for nobody.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

use super::StoreError;

/// Reads at a time: what people ask for does not hold up the engine.
const READERS: usize = 2;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// The reader threads. They end when this is dropped, after what is queued.
pub(super) struct Readers {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(READERS);
        for _ in 0..READERS {
            let open = |source| StoreError::Open { path: path.to_owned(), source };
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags).map_err(open)?;
            connection.execute_batch("PRAGMA busy_timeout = 5000;").map_err(open)?;
            let queue = queue.clone();
            let run = move || {
                loop {
                    // A panic in a job poisons nothing: the lock is held only while waiting for one.
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    job(&connection);
                }
            };
            let thread = std::thread::Builder::new().name("committor-reader".to_owned()).spawn(run);
            threads.push(thread.map_err(StoreError::Thread)?);
        }
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Runs `work` on a reader thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let closed = || StoreError::Closed { doing };
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // A caller that went away does not want to know.
            let _ = reply.send(work(connection).map_err(|error| error.doing(doing)));
        });
        self.jobs.as_ref().ok_or_else(closed)?.send(job).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        // Closing the queue ends the threads.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
