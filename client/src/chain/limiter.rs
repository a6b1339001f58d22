//! A token bucket.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::RateLimit;

/// A token bucket, kept as the time at which it would be full again (the generic cell rate algorithm).
#[derive(Debug)]
pub(super) struct Limiter {
    /// How long one token takes to come back.
    interval: Duration,
    /// How far ahead of time the tokens of a full bucket may be taken.
    ahead: Duration,
    full_at: Mutex<Instant>,
}

impl Limiter {
    pub(super) fn new(limit: RateLimit) -> Self {
        let interval = Duration::from_secs(1) / limit.per_second.max(1);
        Self {
            interval,
            ahead: interval.saturating_mul(limit.burst.max(1) - 1),
            full_at: Mutex::new(Instant::now()),
        }
    }

    /// Waits for a token, in the order of asking.
    pub(super) async fn take(&self) -> Duration {
        let now = Instant::now();
        let at = self.reserve(now);
        if at > now {
            tokio::time::sleep_until(at).await;
        }
        at.saturating_duration_since(now)
    }

    /// Takes a token, and tells when it may be used.
    fn reserve(&self, now: Instant) -> Instant {
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let starts = (*full_at).max(now);
        *full_at = starts + self.interval;
        starts.checked_sub(self.ahead).map_or(now, |at| at.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of so many tokens may be used that are asked for at once, in milliseconds.
    fn waits(limiter: &Limiter, now: Instant, tokens: usize) -> Vec<u128> {
        (0..tokens).map(|_| (limiter.reserve(now) - now).as_millis()).collect()
    }

    #[test]
    fn a_burst_is_taken_at_once_and_the_rest_at_the_rate() {
        let limiter = Limiter::new(RateLimit { per_second: 10, burst: 3 });
        let now = Instant::now();
        assert_eq!(waits(&limiter, now, 6), [0, 0, 0, 100, 200, 300]);
        // Full again, and not fuller than that.
        assert_eq!(waits(&limiter, now + Duration::from_secs(60), 5), [0, 0, 0, 100, 200]);
    }

    #[test]
    fn nothing_at_all_is_taken_for_one() {
        let limiter = Limiter::new(RateLimit { per_second: 0, burst: 0 });
        assert_eq!(waits(&limiter, Instant::now(), 3), [0, 1_000, 2_000]);
    }
}
