//! Outcomes of a batch in its order, computed ahead in chunks.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    vec,
};

use futures::{FutureExt, Stream, channel::oneshot};
use rayon::ThreadPool;

use super::CryptoSettings;

/// Chunks per thread that are computed or wait to be taken.
const CHUNKS_PER_THREAD: usize = 2;

/// A stream of `(index, outcome)`, in order, one for each item.
///
/// Nothing is computed before the first outcome is asked for. Threads never wait for whoever takes outcomes, so it does not
/// matter who that is: a task, or any thread with [`futures::executor::block_on_stream`].
pub struct OrderedStream<I, T> {
    threads: Arc<ThreadPool>,
    compute: Arc<dyn Fn(I) -> T + Send + Sync>,
    /// What an item gives whose computation panicked.
    panicked: fn() -> T,
    /// The first items, which are computed here.
    head: vec::IntoIter<I>,
    /// Items that no thread has yet.
    rest: vec::IntoIter<I>,
    next_chunk: usize,
    max_chunk: usize,
    chunks: VecDeque<(usize, oneshot::Receiver<Vec<T>>)>,
    /// Outcomes that are taken next.
    ready: vec::IntoIter<T>,
    index: usize,
}

impl<I: Send + 'static, T: Send + 'static> OrderedStream<I, T> {
    pub(super) fn new(
        threads: Arc<ThreadPool>,
        settings: CryptoSettings,
        mut batch: Vec<I>,
        compute: impl Fn(I) -> T + Send + Sync + 'static,
        panicked: fn() -> T,
    ) -> Self {
        let rest = batch.split_off(settings.head.min(batch.len()));
        Self {
            threads,
            compute: Arc::new(compute),
            panicked,
            head: batch.into_iter(),
            rest: rest.into_iter(),
            next_chunk: settings.first_chunk.clamp(1, settings.max_chunk.max(1)),
            max_chunk: settings.max_chunk.max(1),
            chunks: VecDeque::new(),
            ready: Vec::new().into_iter(),
            index: 0,
        }
    }

    /// Hands chunks to the threads, as many as may be ahead.
    fn start(&mut self) {
        while self.chunks.len() < self.threads.current_num_threads() * CHUNKS_PER_THREAD {
            let chunk: Vec<I> = self.rest.by_ref().take(self.next_chunk).collect();
            if chunk.is_empty() {
                return;
            }
            self.next_chunk = (self.next_chunk * 2).min(self.max_chunk);
            let (sender, receiver) = oneshot::channel();
            self.chunks.push_back((chunk.len(), receiver));
            let (compute, panicked) = (self.compute.clone(), self.panicked);
            self.threads.spawn(move || {
                if !sender.is_canceled() {
                    let outcomes = chunk.into_iter().map(|item| guarded(&*compute, panicked, item)).collect();
                    // Whoever would take them may be gone.
                    let _ = sender.send(outcomes);
                }
            });
        }
    }

    fn number(&mut self, outcome: T) -> Poll<Option<(usize, T)>> {
        let index = self.index;
        self.index += 1;
        Poll::Ready(Some((index, outcome)))
    }
}

/// What a chunk gives, if this is one of the threads that compute it: it has to help, since nobody else may.
fn received_by_own<T>(
    threads: &ThreadPool,
    chunk: &mut oneshot::Receiver<Vec<T>>,
) -> Option<Result<Vec<T>, oneshot::Canceled>> {
    threads.current_thread_index()?;
    loop {
        match chunk.try_recv() {
            Ok(None) => drop(threads.yield_now()),
            Ok(Some(outcomes)) => return Some(Ok(outcomes)),
            Err(lost) => return Some(Err(lost)),
        }
    }
}

/// Computes one item, whatever happens.
fn guarded<I, T>(compute: &(dyn Fn(I) -> T + Send + Sync), panicked: fn() -> T, item: I) -> T {
    // Nothing is shared with what panicked but the function, which holds no state.
    catch_unwind(AssertUnwindSafe(|| compute(item))).unwrap_or_else(|_| panicked())
}

impl<I: Send + Unpin + 'static, T: Send + Unpin + 'static> Stream for OrderedStream<I, T> {
    type Item = (usize, T);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<(usize, T)>> {
        let this = &mut *self;
        if let Some(item) = this.head.next() {
            // The threads have something to do while the first outcomes are computed and used.
            this.start();
            let outcome = guarded(&*this.compute, this.panicked, item);
            return this.number(outcome);
        }
        loop {
            if let Some(outcome) = this.ready.next() {
                return this.number(outcome);
            }
            this.start();
            let Some((len, chunk)) = this.chunks.front_mut() else { return Poll::Ready(None) };
            let len = *len;
            let received = match received_by_own(&this.threads, chunk) {
                Some(received) => received,
                None => ready!(chunk.poll_unpin(context)),
            };
            // A thread that did not answer has been lost with all of its chunk.
            let outcomes = received.unwrap_or_else(|_| (0..len).map(|_| (this.panicked)()).collect());
            this.chunks.pop_front();
            this.ready = outcomes.into_iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let ahead: usize = self.chunks.iter().map(|(len, _)| len).sum();
        let left = self.head.len() + self.rest.len() + ahead + self.ready.len();
        (left, Some(left))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::{StreamExt, executor::block_on_stream};
    use rayon::ThreadPoolBuilder;

    use super::*;

    fn stream(
        threads: usize,
        count: u64,
        compute: impl Fn(u64) -> u64 + Send + Sync + 'static,
    ) -> OrderedStream<u64, u64> {
        let threads = Arc::new(ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        let settings = CryptoSettings { threads: 0, head: 3, first_chunk: 2, max_chunk: 16 };
        OrderedStream::new(threads, settings, (0..count).collect(), compute, || u64::MAX)
    }

    #[test]
    fn all_outcomes_come_once_and_in_order_from_any_number_of_threads() {
        for threads in [1, 2, 4] {
            for count in [0, 1, 2, 3, 4, 5, 7, 100, 1_000] {
                let mut stream = stream(threads, count, |item| item * 2);
                let mut left = count as usize;
                for (expected, (index, outcome)) in (0..).zip(block_on_stream(&mut stream)) {
                    assert_eq!((index as u64, outcome), (expected, expected * 2));
                    left -= 1;
                }
                assert_eq!(left, 0);
            }
        }
    }

    #[test]
    fn a_panic_is_the_outcome_of_its_item_and_of_no_other() {
        for at in [0, 2, 3, 4, 50, 99] {
            let stream = stream(2, 100, move |item| if item == at { panic!("on purpose") } else { item });
            let outcomes: Vec<(usize, u64)> = block_on_stream(stream).collect();
            assert_eq!(outcomes.len(), 100);
            for (index, outcome) in outcomes {
                assert_eq!(outcome, if index as u64 == at { u64::MAX } else { index as u64 });
            }
        }
    }

    #[test]
    fn no_more_is_computed_ahead_than_there_is_room_for_and_nothing_after_it_was_dropped() {
        let computed = Arc::new(AtomicUsize::new(0));
        let count = computed.clone();
        let mut stream = stream(2, 10_000, move |item| {
            count.fetch_add(1, Ordering::SeqCst);
            item
        });
        assert_eq!(stream.size_hint(), (10_000, Some(10_000)));
        let threads = stream.threads.clone();
        block_on_stream(&mut stream).next();
        drop(stream);
        // Whatever was handed to the threads has run before this does.
        threads.broadcast(|_| ());
        let ahead = 1 + 2 * CHUNKS_PER_THREAD * 16;
        assert!(computed.load(Ordering::SeqCst) <= ahead, "{}", computed.load(Ordering::SeqCst));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_task_on_the_only_thread_of_its_runtime_takes_outcomes_as_well_as_a_blocking_caller() {
        let outcomes: Vec<(usize, u64)> = stream(1, 500, |item| item).collect().await;
        assert_eq!(outcomes.len(), 500);
        assert_eq!(block_on_stream(stream(1, 500, |item| item)).count(), 500);
        // From inside of the pool's own only thread.
        let inner = stream(1, 500, |item| item);
        let threads = inner.threads.clone();
        assert_eq!(threads.install(|| block_on_stream(inner).count()), 500);
    }
}
