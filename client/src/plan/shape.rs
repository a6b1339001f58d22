//! The forms that a bundle's plan can take, and the plan that each gives.

use std::{cell::OnceCell, collections::HashSet};

use committor_sdk::{address, chunk_buffer, delegation};
use solana_instruction::Instruction;
use solana_system_interface::instruction as system;

use super::{
    AccountFacts, BundleFacts, BundlePlan, CommitPlan, ComputeUnits, PlanContext, PlanError, cost, method,
    transaction::{PlannedTransaction, TransactionBuilder},
    upload::Upload,
};
use crate::types::{Lamports, Stage, Strategy};

/// How much an account grows in one instruction, in bytes.
const MAX_GROWTH: usize = 10_240;
/// Growth steps in one transaction ahead of the commit; with the transfer and the compute budget they stay below the
/// longest trace.
const GROW_STEPS_PER_TRANSACTION: usize = 50;
/// A buffer's payload is a whole state.
const KIND_STATE: u8 = 0;
/// Length of a record, in bytes.
const RECORD_LEN: u64 = 248;

/// One form of a plan: which states travel through buffers, and what rides in the committing transaction.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Indices of the commits that travel through buffers.
    buffered: HashSet<usize>,
    /// Growth beyond one step happens in the committing transaction, so that no reader sees a half-grown account.
    grow_inside: bool,
    /// Buffers are sealed in the committing transaction.
    seal_inside: bool,
    /// Buffers are closed in the committing transaction.
    close_inside: bool,
}

/// The uploads of a bundle's states, each planned when the first form asks for it.
pub(super) struct Uploads<'a> {
    facts: &'a BundleFacts,
    context: &'a PlanContext,
    planned: Vec<OnceCell<Upload>>,
}

impl<'a> Uploads<'a> {
    pub(super) fn new(facts: &'a BundleFacts, context: &'a PlanContext) -> Self {
        let planned = facts.accounts.iter().map(|_| OnceCell::new()).collect();
        Self { facts, context, planned }
    }

    /// The uploads of the `buffered` commits, in the bundle's order.
    fn of(&self, buffered: &HashSet<usize>) -> Result<Vec<Option<&Upload>>, PlanError> {
        let uploads = self.facts.accounts.iter().zip(&self.planned).enumerate();
        let uploads = uploads.map(|(index, (account, planned))| {
            if !buffered.contains(&index) {
                return Ok(None);
            }
            if planned.get().is_none() {
                let upload = Upload::plan(account, self.context)?;
                return Ok(Some(planned.get_or_init(|| upload)));
            }
            Ok(planned.get())
        });
        uploads.collect()
    }
}

impl Shape {
    /// The forms to try, best first.
    pub(super) fn candidates(facts: &BundleFacts) -> impl Iterator<Item = Self> {
        let mut by_len: Vec<usize> = (0..facts.accounts.len()).collect();
        by_len.sort_by_key(|index| std::cmp::Reverse(facts.accounts[*index].state.len()));
        // A commit of which a buffer exists already goes on where it stopped.
        let begun: Vec<usize> =
            by_len.iter().copied().filter(|index| facts.accounts[*index].buffer.is_some()).collect();
        (begun.len()..=by_len.len()).flat_map(move |count| {
            let rest = by_len.iter().filter(|index| !begun.contains(index)).take(count - begun.len());
            let buffered: HashSet<usize> = begun.iter().chain(rest).copied().collect();
            // Growing inside comes first: it keeps the account whole for readers. Then the fewest rounds.
            let inside = [true, false];
            let forms = inside.into_iter().flat_map(move |grow_inside| {
                inside.into_iter().flat_map(move |seal_inside| {
                    inside.into_iter().map(move |close_inside| (grow_inside, seal_inside, close_inside))
                })
            });
            let no_buffer = buffered.is_empty();
            forms
                .filter(move |(_, seal, close)| !no_buffer || (*seal && *close))
                .map(move |(grow_inside, seal_inside, close_inside)| Self {
                    buffered: buffered.clone(),
                    grow_inside,
                    seal_inside,
                    close_inside,
                })
                .collect::<Vec<_>>()
        })
    }

    /// The plan of this form.
    ///
    /// # Errors
    /// [`PlanError::DoesNotFit`] if the committing transaction breaks a limit.
    pub(super) fn build(&self, uploads: &Uploads, context: &PlanContext) -> Result<BundlePlan, PlanError> {
        let facts = uploads.facts;
        let uploads = uploads.of(&self.buffered)?;
        // The committing transaction decides; the uploads, which can be many transactions, follow once it fits.
        let commit = self.commit_transaction(facts, &uploads, context)?;
        commit.check(&context.payer)?;

        let mut rounds: Vec<Vec<PlannedTransaction>> = Vec::new();
        for (index, (account, upload)) in facts.accounts.iter().zip(&uploads).enumerate() {
            if let Some(upload) = upload {
                merge(&mut rounds, upload.rounds(index, account, context)?);
            }
            if !self.grow_inside {
                merge(&mut rounds, grow_rounds(index, account, context));
            }
        }
        if !self.seal_inside {
            let seals: Vec<_> = present(&uploads)
                .flat_map(|(index, upload)| seal_transactions(index, upload, context))
                .collect();
            if !seals.is_empty() {
                rounds.push(seals);
            }
        }
        rounds.push(vec![commit]);
        if !self.close_inside {
            rounds.push(close_transactions(&uploads, context));
        }
        for transaction in rounds.iter().flatten() {
            transaction.check(&context.payer)?;
        }
        let commits = self.commit_plans(facts, &uploads, context)?;
        Ok(BundlePlan { rounds, commits })
    }

    fn commit_plans(
        &self,
        facts: &BundleFacts,
        uploads: &[Option<&Upload>],
        context: &PlanContext,
    ) -> Result<Vec<CommitPlan>, PlanError> {
        let plans = facts.accounts.iter().zip(uploads).map(|(account, upload)| {
            let strategy = Strategy { method: method(upload.is_some()), version: context.version };
            let buffer = upload.map(|upload| upload.buffer);
            let rent = account.rent_due(context) + upload.map_or(Lamports(0), |upload| upload.rent);
            let (session, nonce) = (account.session(), account.nonce()?);
            Ok(CommitPlan { account: account.account, session, nonce, strategy, buffer, rent })
        });
        plans.collect()
    }

    fn commit_transaction(
        &self,
        facts: &BundleFacts,
        uploads: &[Option<&Upload>],
        context: &PlanContext,
    ) -> Result<PlannedTransaction, PlanError> {
        let mut builder = TransactionBuilder::new(Stage::Commit);
        for (index, (account, upload)) in facts.accounts.iter().zip(uploads).enumerate() {
            builder.serves(index).loads(account.len.max(account.state.len()) as u64).loads(RECORD_LEN);
            if self.grow_inside || account.growth() <= MAX_GROWTH {
                add_growth(&mut builder, account, account.grow_steps(), context);
            }
            let Some(upload) = upload else {
                builder.add(account.commit(context)?, ComputeUnits::commit(account.state.len()));
                continue;
            };
            builder.loads(upload.account_len());
            if self.seal_inside {
                for seal in &upload.seals {
                    builder.add(seal.clone(), upload.seal_cost());
                }
            }
            let cost = ComputeUnits::commit(account.state.len());
            builder.add(account.commit_buffer(upload, context)?, cost);
            if self.close_inside {
                builder.add(close(upload, context), cost::CLOSE);
            }
        }
        Ok(builder.build(context.version, 0))
    }
}

impl AccountFacts {
    /// What must be moved to the account so that it is rent exempt at its new length.
    fn rent_due(&self, context: &PlanContext) -> Lamports {
        if self.growth() == 0 {
            return Lamports(0);
        }
        context.rent.minimum(self.state.len() as u64).saturating_sub(self.lamports)
    }

    /// Steps of growth ahead of the commit's own.
    fn grow_steps(&self) -> usize {
        self.growth().div_ceil(MAX_GROWTH).saturating_sub(1)
    }

    fn grow(&self, context: &PlanContext) -> Instruction {
        let record = address::record(&self.account);
        let accounts = delegation::Grow { authority: context.authority, account: self.account, record };
        accounts.instruction(delegation::GrowArgs { len: self.state.len() as u32 })
    }

    fn commit(&self, context: &PlanContext) -> Result<Instruction, PlanError> {
        let record = address::record(&self.account);
        let accounts = delegation::Commit { authority: context.authority, account: self.account, record };
        let (session, nonce, commit_id) = (self.session(), self.nonce()?.0, self.commit_id.0);
        Ok(accounts.instruction(delegation::CommitArgs { session, nonce, commit_id, data: &self.state }))
    }

    fn commit_buffer(&self, upload: &Upload, context: &PlanContext) -> Result<Instruction, PlanError> {
        let (authority, account, buffer) = (context.authority, self.account, upload.buffer);
        let record = address::record(&account);
        let accounts = delegation::CommitBuffer { authority, account, record, buffer };
        let (session, nonce, commit_id) = (self.session(), self.nonce()?.0, self.commit_id.0);
        let kind = KIND_STATE;
        Ok(accounts.instruction(delegation::CommitBufferArgs { session, nonce, commit_id, kind }))
    }
}

/// Adds the rent and `steps` steps of growth.
fn add_growth(builder: &mut TransactionBuilder, account: &AccountFacts, steps: usize, context: &PlanContext) {
    let rent = account.rent_due(context);
    if rent > Lamports(0) {
        builder.add(system::transfer(&context.payer, &account.account, rent.0), cost::BUILTIN);
    }
    for _ in 0..steps {
        builder.add(account.grow(context), cost::GROW);
    }
}

/// Growth ahead of the commit, for accounts that grow by more than one transaction can hold. The first transaction brings
/// the rent; the others follow in one round, in any order, since each grows by what is left.
fn grow_rounds(index: usize, account: &AccountFacts, context: &PlanContext) -> Vec<Vec<PlannedTransaction>> {
    let steps = account.grow_steps();
    if steps == 0 {
        return Vec::new();
    }
    let first_steps = steps.min(GROW_STEPS_PER_TRANSACTION);
    let builder = || {
        let mut builder = TransactionBuilder::new(Stage::Prepare);
        builder.serves(index).loads(account.state.len() as u64).loads(RECORD_LEN);
        builder
    };
    let mut first = builder();
    add_growth(&mut first, account, first_steps, context);
    let mut rounds = vec![vec![first.build(context.version, 0)]];
    let mut rest = Vec::new();
    let mut left = steps - first_steps;
    while left > 0 {
        let mut next = builder();
        for _ in 0..left.min(GROW_STEPS_PER_TRANSACTION) {
            next.add(account.grow(context), cost::GROW);
        }
        left = left.saturating_sub(GROW_STEPS_PER_TRANSACTION);
        rest.push(next.build(context.version, 1 + rest.len() as u32));
    }
    if !rest.is_empty() {
        rounds.push(rest);
    }
    rounds
}

/// The calls of `seal`, each in a transaction of its own, in any order: each hashes the next segment.
fn seal_transactions(
    index: usize,
    upload: &Upload,
    context: &PlanContext,
) -> impl Iterator<Item = PlannedTransaction> {
    let transactions = upload.seals.iter().zip(0u32..).map(move |(seal, variant)| {
        let mut builder = TransactionBuilder::new(Stage::Prepare);
        builder.serves(index).loads(upload.account_len()).add(seal.clone(), upload.seal_cost());
        builder.build(context.version, variant)
    });
    transactions.collect::<Vec<_>>().into_iter()
}

fn close(upload: &Upload, context: &PlanContext) -> Instruction {
    let (authority, receiver) = (context.authority, context.payer);
    chunk_buffer::Close { authority, buffer: upload.buffer, receiver }.instruction()
}

fn close_transactions(uploads: &[Option<&Upload>], context: &PlanContext) -> Vec<PlannedTransaction> {
    let transactions = present(uploads).map(|(index, upload)| {
        let mut builder = TransactionBuilder::new(Stage::Cleanup);
        builder.serves(index).loads(upload.account_len()).add(close(upload, context), cost::CLOSE);
        builder.build(context.version, 0)
    });
    transactions.collect()
}

/// Transactions that close the buffers that exist.
pub(super) fn cleanup(
    facts: &BundleFacts,
    context: &PlanContext,
) -> Result<Vec<PlannedTransaction>, PlanError> {
    let uploads = Uploads::new(facts, context);
    let accounts = facts.accounts.iter().enumerate();
    let existing = accounts.filter(|(_, account)| account.buffer.is_some()).map(|(index, _)| index).collect();
    Ok(close_transactions(&uploads.of(&existing)?, context))
}

fn present<'a>(uploads: &'a [Option<&'a Upload>]) -> impl Iterator<Item = (usize, &'a Upload)> {
    uploads.iter().enumerate().filter_map(|(index, upload)| Some((index, (*upload)?)))
}

/// Puts `more` beside `rounds`, round by round.
fn merge(rounds: &mut Vec<Vec<PlannedTransaction>>, more: Vec<Vec<PlannedTransaction>>) {
    for (index, round) in more.into_iter().enumerate() {
        match rounds.get_mut(index) {
            Some(existing) => existing.extend(round),
            None => rounds.push(round),
        }
    }
}
