//! How fast statuses are asked for.

use std::time::Duration;

use tokio::time::Instant;

/// How many `getSignatureStatuses` calls are made per second in the long run at most, however many transactions are on their
/// way. The calls of one round come one after the other, so that a single second may see up to 8.
pub const STATUS_CALLS_PER_SECOND: u32 = 6;
/// The time of one of them, rounded up.
const PER_CALL: Duration = Duration::from_nanos(1_000_000_000u64.div_ceil(STATUS_CALLS_PER_SECOND as u64));
/// How much longer the interval gets while nothing changes: as many times the first one.
const SLOWEST: u32 = 5;

/// The pace of the poller: as fast as its interval while there is news, and slower and slower while there is none.
#[derive(Debug)]
pub(super) struct Pace {
    fastest: Duration,
    interval: Duration,
    next: Instant,
}

impl Pace {
    pub(super) fn new(interval: Duration, now: Instant) -> Self {
        Self { fastest: interval, interval, next: now }
    }

    /// The earliest time of the next round.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// A round began at `started` and made so many calls. Something is new if a status changed or a transaction arrived.
    pub(super) fn round(&mut self, started: Instant, calls: usize, news: bool) {
        self.interval = if news {
            self.fastest
        } else {
            (self.interval.saturating_mul(3) / 2).min(self.fastest.saturating_mul(SLOWEST))
        };
        let calls = u32::try_from(calls).unwrap_or(u32::MAX);
        let for_calls = PER_CALL.saturating_mul(calls);
        self.next = started + self.interval.max(for_calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(400);

    #[test]
    fn the_interval_grows_while_nothing_changes_and_is_back_with_the_news() {
        let now = Instant::now();
        let mut pace = Pace::new(INTERVAL, now);
        let mut waits = Vec::new();
        for _ in 0..6 {
            pace.round(now, 1, false);
            waits.push((pace.next() - now).as_millis());
        }
        assert_eq!(waits, [600, 900, 1_350, 2_000, 2_000, 2_000]);
        pace.round(now, 1, true);
        assert_eq!(pace.next() - now, INTERVAL);
    }

    #[test]
    fn many_transactions_take_no_more_than_the_calls_per_second() {
        for transactions in [1, 256, 257, 1_000, 100_000usize] {
            let calls = transactions.div_ceil(256);
            let mut pace = Pace::new(INTERVAL, Instant::now());
            let now = Instant::now();
            pace.round(now, calls, true);
            let per_second = calls as f64 / (pace.next() - now).as_secs_f64();
            assert!(per_second <= f64::from(STATUS_CALLS_PER_SECOND), "{transactions}: {per_second}");
        }
    }
}
