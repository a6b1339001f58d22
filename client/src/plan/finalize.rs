//! What follows a committing transaction: applying what is staged, and closing what is left.

use solana_address::Address;

use super::{
    BufferFacts, BundleFacts, BundlePlan, CommitPlan, ComputeUnits, PlanContext, PlanError, TableNeed,
    account::{Delegated, MAX_GROWTH, RECORD_LEN, close, close_transaction},
    cost,
    patch::MAX_RANGES,
    shape::{TableOption, merge},
    transaction::{PlannedTransaction, TransactionBuilder},
};
use crate::types::{CommitMode, Lamports, Method, Nonce, Stage, Strategy};

/// Plans the transactions that apply what is staged for a bundle.
///
/// # Errors
/// [`PlanError::NotStaged`] if something else or nothing is staged; [`PlanError::DoesNotFit`] if it does not fit one
/// transaction.
pub fn plan_finalize(facts: &BundleFacts, context: &PlanContext) -> Result<BundlePlan, PlanError> {
    for account in &facts.accounts {
        account.delegation(context)?;
        if !account.is_staged() {
            let found = match account.record {
                Some(record) if record.staged_nonce != 0 => "another committor staged it",
                _ => "nothing is staged",
            };
            return Err(PlanError::NotStaged { account: account.account, found });
        }
    }
    let accounts: Vec<Delegated> = facts.accounts.iter().map(Delegated::new).collect();
    let parts: Vec<Part> = accounts.iter().filter_map(|account| Part::staged(*account)).collect();
    let mut broken = PlanError::no_commits();
    for tables in TableOption::all(context) {
        // Growing and closing inside first: readers see no half-grown account, and it is fewer transactions.
        for (grow_inside, close_inside) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut builder = transaction(&parts, grow_inside, close_inside, context);
            let need = tables.give(&mut builder, context);
            let mut finalize = builder.build(context, 0);
            // The estimate of a patch is a bound. Before it was staged, what it really takes was seen to fit.
            if u64::from(finalize.compute_unit_limit) > cost::MAX.0 {
                finalize = finalize.with_compute_unit_limit(cost::MAX.0 as u32);
            }
            match finalize.check(&context.payer) {
                Ok(()) => return Ok(plan(&accounts, finalize, need, grow_inside, close_inside, context)),
                Err(error) => broken = error,
            }
        }
    }
    Err(broken)
}

/// Whether what a plan is about to stage can be applied afterwards.
pub(super) fn finalize_fits(parts: Vec<Part>, context: &PlanContext) -> Result<(), PlanError> {
    let mut broken = PlanError::no_commits();
    // Lookup tables may be gone until then, or come to be.
    let options = TableOption::all(context).iter().filter(|tables| **tables != TableOption::Ready);
    for tables in options {
        for grow_inside in [true, false] {
            let mut builder = transaction(&parts, grow_inside, false, context);
            tables.give(&mut builder, context);
            match builder.build(context, 0).check(&context.payer) {
                Ok(()) => return Ok(()),
                Err(error) => broken = error,
            }
        }
    }
    Err(broken)
}

/// What is staged for one account.
pub(super) struct Part<'a> {
    pub(super) account: Delegated<'a>,
    pub(super) buffer: Address,
    pub(super) buffer_len: u64,
    pub(super) cost: ComputeUnits,
}

impl<'a> Part<'a> {
    fn staged(account: Delegated<'a>) -> Option<Self> {
        let record = account.record?;
        let buffer_len = account.buffers.iter().map(|buffer| buffer.account_len).max().unwrap_or_default();
        // How many ranges a staged patch has is not known: as many as its length allows, and a patch has.
        let (kind, len) = (record.staged_kind, record.staged_len as usize);
        let cost = match kind {
            0 => ComputeUnits::commit(account.state.len()),
            _ => ComputeUnits::patch((len / 9).min(MAX_RANGES), len),
        };
        Some(Self { account, buffer: record.staged_buffer, buffer_len, cost })
    }
}

fn transaction(
    parts: &[Part],
    grow_inside: bool,
    close_inside: bool,
    context: &PlanContext,
) -> TransactionBuilder {
    let mut builder = TransactionBuilder::new(Stage::Finalize);
    for (index, Part { account, buffer, buffer_len, cost }) in parts.iter().enumerate() {
        builder.serves(index).loads(account.len.max(account.state.len()) as u64).loads(RECORD_LEN);
        builder.loads(*buffer_len);
        if grow_inside || account.growth() <= MAX_GROWTH {
            account.add_growth(&mut builder, account.grow_steps(), context);
        }
        account.add_finalize(&mut builder, *buffer, *cost, context);
        if close_inside {
            builder.add(close(*buffer, context), cost::CLOSE);
        }
    }
    builder
}

fn plan(
    accounts: &[Delegated],
    finalize: PlannedTransaction,
    tables: TableNeed,
    grow_inside: bool,
    close_inside: bool,
    context: &PlanContext,
) -> BundlePlan {
    let mut rounds = Vec::new();
    if !grow_inside {
        for (index, account) in accounts.iter().enumerate() {
            merge(&mut rounds, account.grow_rounds(index, Stage::Prepare, context));
        }
    }
    rounds.push(vec![finalize]);
    if !close_inside {
        let closes = accounts.iter().enumerate().flat_map(|(index, account)| {
            let close = move |buffer: &BufferFacts| {
                close_transaction(index, buffer.address, buffer.account_len, context)
            };
            account.buffers.iter().map(close)
        });
        rounds.push(closes.collect());
    }
    let commits = accounts.iter().filter_map(|account| {
        let record = account.record?;
        let method = if record.staged_kind == 0 { Method::Buffer } else { Method::BufferPatch };
        Some(CommitPlan {
            account: account.account,
            session: record.session,
            nonce: Nonce(record.staged_nonce),
            strategy: Strategy { method, version: context.version, tables: tables != TableNeed::None },
            buffer: Some(record.staged_buffer),
            buffer_rent: Lamports(0),
            rent: account.rent_due(context),
        })
    });
    let commits = commits.collect();
    BundlePlan { mode: CommitMode::Finalize, rounds, commits, tables, has_actions: false }
}

/// Transactions that close what buffers of a bundle exist and are not staged: for one that landed before they were closed,
/// or failed.
pub fn plan_cleanup(facts: &BundleFacts, context: &PlanContext) -> Vec<PlannedTransaction> {
    let mut transactions = Vec::new();
    for (index, account) in facts.accounts.iter().enumerate() {
        let staged =
            account.record.filter(|record| record.staged_nonce != 0).map(|record| record.staged_buffer);
        for buffer in account.buffers.iter().filter(|buffer| Some(buffer.address) != staged) {
            transactions.push(close_transaction(index, buffer.address, buffer.account_len, context));
        }
    }
    transactions
}
