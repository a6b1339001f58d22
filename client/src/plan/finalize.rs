//! What follows a committing transaction: applying what is staged, and closing what is left.

use super::{
    BufferFacts, BundleFacts, BundlePlan, CommitPlan, ComputeUnits, PlanContext, PlanError, TableNeed,
    account::{MAX_GROWTH, RECORD_LEN, close, close_transaction},
    cost,
    patch::MAX_RANGES,
    shape::merge,
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
    let mut broken = PlanError::no_commits();
    // Growing and closing inside first: readers see no half-grown account, and it is fewer transactions.
    for (grow_inside, close_inside) in [(true, true), (true, false), (false, true), (false, false)] {
        let finalize = transaction(facts, grow_inside, close_inside, context);
        match finalize.check(&context.payer) {
            Ok(()) => return Ok(plan(facts, finalize, grow_inside, close_inside, context)),
            Err(error) => broken = error,
        }
    }
    Err(broken)
}

fn transaction(
    facts: &BundleFacts,
    grow_inside: bool,
    close_inside: bool,
    context: &PlanContext,
) -> PlannedTransaction {
    let mut builder = TransactionBuilder::new(Stage::Finalize);
    for (index, account) in facts.accounts.iter().enumerate() {
        let Some(record) = account.record else { continue };
        builder.serves(index).loads(account.len.max(account.state.len()) as u64).loads(RECORD_LEN);
        builder.loads(account.buffers.iter().map(|buffer| buffer.account_len).max().unwrap_or_default());
        if grow_inside || account.growth() <= MAX_GROWTH {
            account.add_growth(&mut builder, account.grow_steps(), context);
        }
        // How many ranges a staged patch has is not known: as many as its length allows, and a patch has.
        let (kind, len) = (record.staged_kind, record.staged_len as usize);
        let cost = match kind {
            0 => ComputeUnits::commit(account.state.len()),
            _ => ComputeUnits::patch((len / 9).min(MAX_RANGES), len),
        };
        account.add_finalize(&mut builder, record.staged_buffer, cost, context);
        if close_inside {
            builder.add(close(record.staged_buffer, context), cost::CLOSE);
        }
    }
    builder.build(context, 0)
}

fn plan(
    facts: &BundleFacts,
    finalize: PlannedTransaction,
    grow_inside: bool,
    close_inside: bool,
    context: &PlanContext,
) -> BundlePlan {
    let mut rounds = Vec::new();
    if !grow_inside {
        for (index, account) in facts.accounts.iter().enumerate() {
            merge(&mut rounds, account.grow_rounds(index, Stage::Prepare, context));
        }
    }
    rounds.push(vec![finalize]);
    if !close_inside {
        let closes = facts.accounts.iter().enumerate().flat_map(|(index, account)| {
            let close = move |buffer: &BufferFacts| {
                close_transaction(index, buffer.address, buffer.account_len, context)
            };
            account.buffers.iter().map(close)
        });
        rounds.push(closes.collect());
    }
    let commits = facts.accounts.iter().filter_map(|account| {
        let record = account.record?;
        let method = if record.staged_kind == 0 { Method::Buffer } else { Method::BufferPatch };
        Some(CommitPlan {
            account: account.account,
            session: record.session,
            nonce: Nonce(record.staged_nonce),
            strategy: Strategy { method, version: context.version, tables: false },
            buffer: Some(record.staged_buffer),
            buffer_rent: Lamports(0),
            rent: account.rent_due(context),
        })
    });
    let commits = commits.collect();
    BundlePlan { mode: CommitMode::Finalize, rounds, commits, tables: TableNeed::None, has_actions: false }
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
