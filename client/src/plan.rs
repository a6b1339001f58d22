//! From a bundle and what the chain says about its accounts to the transactions that apply it. Pure: no I/O, no clock.
//!
//! A plan is a list of rounds. The transactions of one round may land in any order, all of them before the next round
//! starts; exactly one transaction, of [`Stage::Commit`](crate::types::Stage::Commit), applies the bundle. Every transaction
//! was measured by serializing it, so none is emitted that cannot land.
//!
//! Of all forms that keep the chain's limits, the best one is taken: one in which no reader sees a half-grown account, then
//! the one with the fewest rounds, then without lookup tables, then with the fewest buffers, then with the lowest fees.

mod account;
mod admit;
mod cost;
mod error;
mod facts;
mod file;
mod finalize;
mod loader;
mod pack;
mod patch;
mod price;
mod program;
mod shape;
mod transaction;
mod upload;

use solana_address::Address;

pub use admit::{Admission, admit};
pub use cost::ComputeUnits;
pub use error::{Limit, PlanError};
pub use facts::{AccountFacts, BufferFacts, BundleFacts, PlanContext, Prices, RentSchedule, StagePrice};
pub use file::{FileFacts, FilePlan, file_seed, plan_close_buffer, plan_file, plan_set_buffer_authority};
pub use finalize::{plan_cleanup, plan_finalize};
pub use loader::{LOADER_BUFFER_HEADER, plan_close_loader_buffer, plan_set_loader_buffer_authority};
pub use pack::{Shared, pack};
pub use price::{Price, TABLE_COMPUTE_UNIT_LIMIT};
pub use program::{
    DeployedFacts, MAX_PROGRAM_LEN, PROGRAM_DATA_HEADER, ProgramFacts, ProgramGoal, ProgramPlan,
    UpgradeAuthority, plan_program, program_buffer, program_seed, upgrade_message,
};
pub use transaction::{CompileError, PlannedTransaction};
pub use upload::{PayloadKind, buffer_seed};

use crate::types::{CommitMode, Lamports, LookupTable, Nonce, Strategy};
use shape::Bundle;

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
    /// Lamports that the plan moves to the buffer. They come back when it is closed.
    pub buffer_rent: Lamports,
    /// Lamports that the plan moves to the account and its buffer.
    pub rent: Lamports,
}

/// The lookup tables of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableNeed {
    /// It uses none.
    None,
    /// It uses these, which can be used now.
    Ready(Vec<LookupTable>),
    /// It fits only once tables hold these addresses. Its committing transaction can be measured, but not be sent: plan
    /// again when they do.
    Missing(Vec<Address>),
}

/// The transactions that apply a bundle.
#[derive(Clone, Debug)]
pub struct BundlePlan {
    /// How far the bundle goes.
    pub mode: CommitMode,
    /// The transactions, by round.
    pub rounds: Vec<Vec<PlannedTransaction>>,
    /// How each commit reaches the chain, in the bundle's order.
    pub commits: Vec<CommitPlan>,
    /// The lookup tables of the committing transaction.
    pub tables: TableNeed,
    /// Whether instructions of the caller ride along.
    pub has_actions: bool,
}

impl BundlePlan {
    /// All transactions, round by round.
    pub fn transactions(&self) -> impl Iterator<Item = &PlannedTransaction> {
        self.rounds.iter().flatten()
    }
}

/// Plans one bundle.
///
/// ```
/// use bytemuck::Zeroable;
/// use committor_client::{
///     CommitMode, Lamports,
///     plan::{AccountFacts, BundleFacts, PlanContext, Prices, RentSchedule, plan_bundle},
///     types::{CommitId, TransactionVersion},
/// };
/// use committor_sdk::delegation;
/// use solana_address::Address;
///
/// let (account, authority) = (Address::new_from_array([1; 32]), Address::new_from_array([2; 32]));
/// let context = PlanContext {
///     payer: authority,
///     authority,
///     version: TransactionVersion::V1,
///     rent: RentSchedule { empty_account: Lamports(890_880), per_byte: Lamports(6_960) },
///     prices: Prices::default(),
///     tables: Vec::new(),
/// };
/// // What the chain says: an account of 8 bytes, delegated to the authority, that took 4 commits.
/// let record =
///     delegation::Delegation { account, authority, nonce: 4, state: 2, ..delegation::Delegation::zeroed() };
/// let mut facts = AccountFacts {
///     account,
///     state: vec![7; 8].into(),
///     commit_id: CommitId(1),
///     owner: Some(delegation::ID),
///     len: 8,
///     lamports: context.rent.minimum(8),
///     record: Some(record),
///     base: None,
///     buffers: Vec::new(),
/// };
/// let bundle = |account: &AccountFacts| BundleFacts {
///     mode: CommitMode::Finalize,
///     accounts: vec![account.clone()],
///     actions: Vec::new(),
///     extra_loaded: 0,
/// };
/// let plan = plan_bundle(&bundle(&facts), &context)?;
/// assert_eq!(plan.commits[0].strategy.to_string(), "inline-v1");
/// assert_eq!(plan.commits[0].nonce.0, 5);
/// assert_eq!(plan.price(&context).transactions, 1);
///
/// // A long state of which nothing is there yet goes through a buffer.
/// facts.state = (0..10_240).map(|index| (index % 251) as u8).collect();
/// let plan = plan_bundle(&bundle(&facts), &context)?;
/// assert_eq!(plan.commits[0].strategy.to_string(), "buffer-v1");
/// assert!(plan.commits[0].buffer.is_some());
///
/// // What cannot work is named before anything is spent.
/// facts.owner = None;
/// let error = plan_bundle(&bundle(&facts), &context).unwrap_err();
/// assert!(error.to_string().ends_with("does not exist on this cluster"));
/// # Ok::<(), committor_client::plan::PlanError>(())
/// ```
///
/// # Errors
/// [`PlanError::DoesNotFit`] names the limit that the bundle breaks even in its most spread-out form; the others name the
/// account at fault.
pub fn plan_bundle(facts: &BundleFacts, context: &PlanContext) -> Result<BundlePlan, PlanError> {
    facts.check(context)?;
    Bundle::new(facts, context).plan()
}

/// Whether a plan could be better if the facts had the accounts' present content ([`AccountFacts::base`]): not if
/// everything fits inline without.
///
/// # Errors
/// As [`plan_bundle`], except for limits.
pub fn needs_bases(facts: &BundleFacts, context: &PlanContext) -> Result<bool, PlanError> {
    facts.check(context)?;
    if facts.accounts.iter().all(|account| account.base.is_some()) {
        return Ok(false);
    }
    Ok(!Bundle::new(facts, context).fits_inline()?)
}
