//! From a bundle and what the chain says about its accounts to the transactions that apply it. Pure: no I/O, no clock.
//!
//! A plan is a list of rounds. The transactions of one round may land in any order, all of them before the next round
//! starts; exactly one transaction, of [`Stage::Commit`](crate::types::Stage::Commit), applies the bundle. Every transaction was measured by
//! serializing it, so none is emitted that cannot land.

mod cost;
mod error;
mod facts;
mod shape;
mod transaction;
mod upload;

pub use cost::ComputeUnits;
pub use error::{Limit, PlanError};
pub use facts::{AccountFacts, BufferFacts, BundleFacts, PlanContext, RentSchedule};
pub use transaction::{CompileError, PlannedTransaction};
pub use upload::buffer_seed;

use crate::types::{Lamports, Method, Nonce, Strategy};
use shape::{Shape, Uploads};
use solana_address::Address;

/// How one commit of a bundle reaches the chain.
#[derive(Clone, Debug)]
pub struct CommitPlan {
    /// The delegated account.
    pub account: Address,
    /// The delegation of the account that this commit is made for.
    pub session: u64,
    /// The nonce that this commit takes.
    pub nonce: Nonce,
    /// How its bytes travel.
    pub strategy: Strategy,
    /// The buffer they travel through, if they do.
    pub buffer: Option<Address>,
    /// Lamports that the plan moves to the account and its buffer.
    pub rent: Lamports,
}

/// The transactions that apply a bundle.
#[derive(Clone, Debug)]
pub struct BundlePlan {
    /// The transactions, by round.
    pub rounds: Vec<Vec<PlannedTransaction>>,
    /// How each commit reaches the chain, in the bundle's order.
    pub commits: Vec<CommitPlan>,
}

impl BundlePlan {
    /// Lamports that the plan moves into accounts; those in buffers come back when they are closed.
    pub fn rent(&self) -> Lamports {
        self.commits.iter().map(|commit| commit.rent).sum()
    }

    /// All transactions, round by round.
    pub fn transactions(&self) -> impl Iterator<Item = &PlannedTransaction> {
        self.rounds.iter().flatten()
    }
}

/// Plans one bundle.
///
/// Prefers the fewest buffers, and of those plans the fewest rounds: it starts with every state inline and moves the
/// longest ones into buffers, one by one, until the committing transaction keeps every limit.
///
/// # Errors
/// [`PlanError::DoesNotFit`] names the limit that the bundle breaks even in its most spread-out form; the others name the
/// account at fault.
pub fn plan_bundle(facts: &BundleFacts, context: &PlanContext) -> Result<BundlePlan, PlanError> {
    facts.check(context)?;
    let uploads = Uploads::new(facts, context);
    let mut broken = None;
    for shape in Shape::candidates(facts) {
        match shape.build(&uploads, context) {
            Ok(plan) => return Ok(plan),
            Err(PlanError::DoesNotFit { limit, value, max }) => broken = Some((limit, value, max)),
            Err(error) => return Err(error),
        }
    }
    // There is always a candidate, so there is always a reason.
    let (limit, value, max) = broken.unwrap_or((Limit::Commits, 0, 0));
    Err(PlanError::DoesNotFit { limit, value, max })
}

/// Transactions that close what buffers a bundle left behind: for a bundle that landed before its buffers were closed.
///
/// # Errors
/// [`PlanError`] if a buffer's address can't be derived.
pub fn plan_cleanup(
    facts: &BundleFacts,
    context: &PlanContext,
) -> Result<Vec<PlannedTransaction>, PlanError> {
    shape::cleanup(facts, context)
}

fn method(buffered: bool) -> Method {
    if buffered { Method::Buffer } else { Method::Inline }
}
