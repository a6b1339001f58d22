//! How long to wait before trying again.

use std::time::Duration;

use rand::Rng;

use super::RetrySettings;

impl RetrySettings {
    /// The wait after the `failures`-th failure in a row, counted from 1: doubling, capped, and between half of that and all
    /// of it by chance.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let full = self.first_delay.saturating_mul(1 << doublings).min(self.max_delay);
        full.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_differ() {
        let retry = RetrySettings {
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(1),
            ..RetrySettings::default()
        };
        for (failures, full) in
            [(0, 100), (1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (u32::MAX, 1_000)]
        {
            let full = Duration::from_millis(full);
            let delays: Vec<Duration> = (0..50).map(|_| retry.delay(failures)).collect();
            assert!(delays.iter().all(|delay| (full / 2..=full).contains(delay)), "{failures}: {delays:?}");
            assert!(delays.iter().any(|delay| *delay != delays[0]), "{failures}: no jitter");
        }
    }
}
