//! What is told while it happens.

use solana_signature::Signature;

use crate::types::{BundleKey, BundleStatus, Stage};

/// Something that happened. [`Committor::events`](super::Committor::events) tells them in the order in which they happen.
///
/// Events are for those who watch. What must not be missed is in the store: a reader that falls too far behind is told how
/// many events it lost, and asks for the report instead.
///
/// ```no_run
/// # async fn run(committor: committor_client::Committor) {
/// use committor_client::Event;
/// use tokio::sync::broadcast::error::RecvError;
///
/// let mut events = committor.events();
/// loop {
///     match events.recv().await {
///         Ok(Event::Planned { bundle, transactions }) => println!("{bundle}: {transactions} transactions"),
///         Ok(Event::Landed { bundle, signature, .. }) => println!("{bundle}: {signature} landed"),
///         Ok(Event::Retrying { bundle, reason }) => println!("{bundle} is tried again: {reason}"),
///         Ok(Event::Superseded { bundle, by }) => println!("{bundle} gave way to {by}"),
///         Ok(Event::Ended { bundle, status }) => println!("{bundle} is {status}"),
///         Err(RecvError::Lagged(missed)) => println!("{missed} events missed"),
///         Err(RecvError::Closed) => break, // the committor has stopped
///     }
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A bundle was planned.
    Planned {
        /// The bundle.
        bundle: BundleKey,
        /// How many transactions it takes, from here; none if it shares another bundle's.
        transactions: usize,
    },
    /// A transaction landed.
    Landed {
        /// The bundle it is for; of several that share it, the first.
        bundle: BundleKey,
        /// What it was for.
        stage: Stage,
        /// The transaction.
        signature: Signature,
    },
    /// A bundle is tried again.
    Retrying {
        /// The bundle.
        bundle: BundleKey,
        /// Why.
        reason: String,
    },
    /// A bundle that was never sent gave way to a newer one of the same accounts.
    Superseded {
        /// The bundle.
        bundle: BundleKey,
        /// The newer one.
        by: BundleKey,
    },
    /// The work on a bundle ended.
    Ended {
        /// The bundle.
        bundle: BundleKey,
        /// How.
        status: BundleStatus,
    },
}

impl Event {
    /// The bundle that the event is about.
    pub const fn bundle(&self) -> BundleKey {
        match self {
            Self::Planned { bundle, .. }
            | Self::Landed { bundle, .. }
            | Self::Retrying { bundle, .. }
            | Self::Superseded { bundle, .. }
            | Self::Ended { bundle, .. } => *bundle,
        }
    }
}
