//! The threads that read, each on a connection of its own: they wait for nobody.

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use tokio::sync::oneshot;

use super::{StoreError, sql::Sql};

/// Reads at a time: what people ask for does not hold up the engine.
pub(super) const READERS: usize = 2;

type Job = Box<dyn FnOnce(&dyn Sql) + Send>;

/// The reader threads. They end when this is dropped, after what is queued.
pub(super) struct Readers {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
    /// How errors call the store.
    store: Arc<str>,
}

impl Readers {
    /// Starts a thread for each of the connections.
    pub(super) fn start(connections: Vec<Box<dyn Sql + Send>>, store: Arc<str>) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(connections.len());
        for connection in connections {
            let queue = queue.clone();
            let run = move || {
                loop {
                    // A panic in a job poisons nothing: the lock is held only while waiting for one.
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    job(&*connection);
                }
            };
            let thread = std::thread::Builder::new().name("committor-reader".to_owned()).spawn(run);
            threads.push(thread.map_err(StoreError::Thread)?);
        }
        Ok(Self { jobs: Some(jobs), threads, store })
    }

    /// Runs `work` on a reader thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&dyn Sql) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let closed = || StoreError::Closed { doing };
        let (reply, answer) = oneshot::channel();
        let store = self.store.clone();
        let job: Job = Box::new(move |connection| {
            // A caller that went away does not want to know.
            let _ = reply.send(work(connection).map_err(|error| error.doing(doing, &store)));
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
