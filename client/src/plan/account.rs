//! The instructions on one delegated account.

use std::ops::Deref;

use committor_sdk::{address, chunk_buffer, delegation};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_system_interface::instruction as system;

use super::{
    AccountFacts, ComputeUnits, PlanContext, PlanError, cost,
    patch::Patch,
    transaction::{PlannedTransaction, TransactionBuilder},
    upload::{PayloadKind, Upload},
};
use crate::types::{Lamports, Stage};

/// How much an account grows in one instruction, in bytes.
pub(super) const MAX_GROWTH: usize = 10_240;
/// The longest state that `undelegate` hands back without a reservation, in bytes: the record grows by one step.
pub(super) const MAX_UNDELEGATE_INLINE: usize = MAX_GROWTH;
/// Length of a record, in bytes.
pub(super) const RECORD_LEN: u64 = 248;
/// Growth steps in one transaction ahead of the commit; with the transfer and the compute budget they stay below the
/// longest trace.
const GROW_STEPS_PER_TRANSACTION: usize = 50;
/// Instructions that undelegating calls: the owner program's `restore_delegated`.
const CALLS_OF_UNDELEGATE: u64 = 1;

/// A delegated account with its record's address, which takes a search for a point off the curve: once per account, not
/// once per instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delegated<'a> {
    facts: &'a AccountFacts,
    record: Address,
}

impl Deref for Delegated<'_> {
    type Target = AccountFacts;

    fn deref(&self) -> &AccountFacts {
        self.facts
    }
}

impl<'a> Delegated<'a> {
    pub(super) fn new(facts: &'a AccountFacts) -> Self {
        Self { facts, record: address::record(&facts.account) }
    }

    /// Steps of growth ahead of the commit's own.
    pub(super) fn grow_steps(&self) -> usize {
        self.growth().div_ceil(MAX_GROWTH).saturating_sub(1)
    }

    fn grow(&self, context: &PlanContext) -> Instruction {
        let record = self.record;
        let accounts = delegation::Grow { authority: context.authority, account: self.account, record };
        accounts.instruction(delegation::GrowArgs { len: self.state.len() as u32 })
    }

    /// Adds the rent and `steps` steps of growth.
    pub(super) fn add_growth(&self, builder: &mut TransactionBuilder, steps: usize, context: &PlanContext) {
        let rent = self.rent_due(context);
        if rent > Lamports(0) {
            builder.add(system::transfer(&context.payer, &self.account, rent.0), cost::BUILTIN);
        }
        for _ in 0..steps {
            builder.add(self.grow(context), cost::GROW);
        }
    }

    /// Adds the commit of the state itself.
    pub(super) fn add_commit(
        &self,
        builder: &mut TransactionBuilder,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        let record = self.record;
        let accounts = delegation::Commit { authority: context.authority, account: self.account, record };
        let (session, nonce, commit_id) = (self.session(), self.nonce()?.0, self.commit_id.0);
        let args = delegation::CommitArgs { session, nonce, commit_id, data: &self.state };
        builder.add(accounts.instruction(args), ComputeUnits::commit(self.state.len()));
        Ok(())
    }

    /// Adds the commit of what changes.
    pub(super) fn add_commit_patch(
        &self,
        builder: &mut TransactionBuilder,
        patch: &Patch,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        let record = self.record;
        let accounts =
            delegation::CommitPatch { authority: context.authority, account: self.account, record };
        let (session, nonce, commit_id) = (self.session(), self.nonce()?.0, self.commit_id.0);
        let args = delegation::CommitPatchArgs { session, nonce, commit_id, patch: &patch.bytes };
        builder.add(accounts.instruction(args), ComputeUnits::patch(patch.ranges, patch.bytes.len()));
        Ok(())
    }

    /// Adds the commit of a sealed buffer.
    pub(super) fn add_commit_buffer(
        &self,
        builder: &mut TransactionBuilder,
        upload: &Upload,
        ranges: usize,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        let (authority, account, buffer) = (context.authority, self.account, upload.buffer);
        let record = self.record;
        let accounts = delegation::CommitBuffer { authority, account, record, buffer };
        let (session, nonce, commit_id) = (self.session(), self.nonce()?.0, self.commit_id.0);
        let args = delegation::CommitBufferArgs { session, nonce, commit_id, kind: upload.kind.code() };
        let cost = match upload.kind {
            PayloadKind::State => ComputeUnits::commit(self.state.len()),
            PayloadKind::Patch => ComputeUnits::patch(ranges, upload.payload_len()),
        };
        builder.add(accounts.instruction(args), cost);
        Ok(())
    }

    /// Adds what names a sealed buffer as the next state.
    pub(super) fn add_stage(
        &self,
        builder: &mut TransactionBuilder,
        upload: &Upload,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        let (authority, account, buffer) = (context.authority, self.account, upload.buffer);
        let record = self.record;
        let accounts = delegation::Stage { authority, account, record, buffer };
        let (session, nonce, commit_id) = (self.session(), self.nonce()?.0, self.commit_id.0);
        let args = delegation::StageArgs { session, nonce, commit_id, kind: upload.kind.code() };
        builder.add(accounts.instruction(args), cost::STAGE);
        Ok(())
    }

    /// Adds what applies the staged buffer.
    pub(super) fn add_finalize(
        &self,
        builder: &mut TransactionBuilder,
        buffer: Address,
        cost: ComputeUnits,
        context: &PlanContext,
    ) {
        let (authority, account) = (context.authority, self.account);
        let record = self.record;
        builder.add(delegation::Finalize { authority, account, record, buffer }.instruction(), cost);
    }

    /// Adds what hands the account back with the state that it has.
    pub(super) fn add_undelegate(
        &self,
        builder: &mut TransactionBuilder,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        let delegation = self.delegation(context)?;
        let (authority, account) = (context.authority, self.account);
        let (record, owner_program) = (self.record, delegation.owner_program);
        let rent_payer = delegation.rent_payer;
        let accounts = delegation::Undelegate { authority, account, record, owner_program, rent_payer };
        builder.add(accounts.instruction(), ComputeUnits::undelegate(self.state.len()));
        builder.calls(CALLS_OF_UNDELEGATE);
        Ok(())
    }

    /// Adds what commits a sealed buffer and hands the account back with it.
    pub(super) fn add_undelegate_buffer(
        &self,
        builder: &mut TransactionBuilder,
        upload: &Upload,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        let delegation = self.delegation(context)?;
        let (authority, account, buffer) = (context.authority, self.account, upload.buffer);
        let (record, owner_program) = (self.record, delegation.owner_program);
        let rent_payer = delegation.rent_payer;
        let accounts =
            delegation::UndelegateBuffer { authority, account, record, owner_program, rent_payer, buffer };
        let (session, nonce, commit_id) = (self.session(), self.nonce()?.0, self.commit_id.0);
        let args = delegation::UndelegateBufferArgs { session, nonce, commit_id };
        let cost = ComputeUnits::undelegate(self.state.len());
        builder.add(accounts.instruction(args), cost).calls(CALLS_OF_UNDELEGATE);
        Ok(())
    }

    /// How many rounds growth ahead of the commit takes.
    pub(super) fn grow_round_count(&self) -> usize {
        match self.grow_steps() {
            0 => 0,
            1..=GROW_STEPS_PER_TRANSACTION => 1,
            _ => 2,
        }
    }

    /// How many transactions growth ahead of the commit takes.
    pub(super) fn grow_transaction_count(&self) -> usize {
        self.grow_steps().div_ceil(GROW_STEPS_PER_TRANSACTION)
    }

    /// Growth ahead of the commit, for accounts that grow by more than one transaction can hold. The first transaction
    /// brings the rent; the others follow in one round, in any order, since each grows by what is left.
    pub(super) fn grow_rounds(
        &self,
        index: usize,
        stage: Stage,
        context: &PlanContext,
    ) -> Vec<Vec<PlannedTransaction>> {
        let steps = self.grow_steps();
        if steps == 0 {
            return Vec::new();
        }
        let first_steps = steps.min(GROW_STEPS_PER_TRANSACTION);
        let builder = || {
            let mut builder = TransactionBuilder::new(stage);
            builder.serves(index).loads(self.state.len() as u64).loads(RECORD_LEN);
            builder
        };
        let mut first = builder();
        self.add_growth(&mut first, first_steps, context);
        let mut rounds = vec![vec![first.build(context, 0)]];
        let mut rest = Vec::new();
        let mut left = steps - first_steps;
        while left > 0 {
            let mut next = builder();
            for _ in 0..left.min(GROW_STEPS_PER_TRANSACTION) {
                next.add(self.grow(context), cost::GROW);
            }
            left = left.saturating_sub(GROW_STEPS_PER_TRANSACTION);
            rest.push(next.build(context, 1 + rest.len() as u32));
        }
        if !rest.is_empty() {
            rounds.push(rest);
        }
        rounds
    }
}

/// Closes a buffer; its rent goes to the fee payer.
pub(super) fn close(buffer: Address, context: &PlanContext) -> Instruction {
    let (authority, receiver) = (context.authority, context.payer);
    chunk_buffer::Close { authority, buffer, receiver }.instruction()
}

/// The transaction that closes a buffer of commit `index`, `account_len` bytes long.
pub(super) fn close_transaction(
    index: usize,
    buffer: Address,
    account_len: u64,
    context: &PlanContext,
) -> PlannedTransaction {
    let mut builder = TransactionBuilder::new(Stage::Cleanup);
    builder.serves(index).loads(account_len).add(close(buffer, context), cost::CLOSE);
    builder.build(context, 0)
}
