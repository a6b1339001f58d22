//! Forgets what has ended long ago, while the engine runs.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::chain_of;
use crate::store::Store;

/// Rows that are removed in one step: a few milliseconds in which no other change is made.
const ROWS_PER_STEP: u32 = 2_000;
/// How often it looks. What is to be kept for less is looked for as often as it is long.
const INTERVAL: Duration = Duration::from_secs(600);

/// Prunes at the start, and from then on at intervals, until it is cancelled.
pub(super) async fn run(store: Store, keep: Duration, cancelled: CancellationToken) {
    let mut interval = tokio::time::interval(keep.clamp(Duration::from_secs(1), INTERVAL));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = cancelled.cancelled() => return,
            _ = interval.tick() => (),
        }
        loop {
            match store.prune(keep, ROWS_PER_STEP).await {
                Ok(step) if step.more && !cancelled.is_cancelled() => (),
                Ok(_) => break,
                Err(error) => {
                    // Nothing depends on it; the next look tries again.
                    tracing::warn!(error = chain_of(&error), "could not prune the store");
                    break;
                }
            }
        }
    }
}
