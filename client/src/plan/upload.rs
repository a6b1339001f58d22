//! Bringing a payload into a sealed buffer.

use std::sync::Arc;

use committor_sdk::{
    address, chunk_buffer,
    chunks::ChunkLayout,
    digest::{payload_digest, seal_calls},
    instructions::CreateBuffer,
};
use sha2::{Digest, Sha256};
use solana_address::Address;
use solana_instruction::Instruction;

use super::{
    AccountFacts, BufferFacts, ComputeUnits, PlanContext, PlanError, cost,
    transaction::{PlannedTransaction, TransactionBuilder, room_for_chunk},
};
use crate::types::{CommitId, Lamports, Stage};

/// What a buffer's payload is to the delegation program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadKind {
    /// A whole state.
    State,
    /// A patch.
    Patch,
}

impl PayloadKind {
    /// The number that the delegation program knows it by.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::State => 0,
            Self::Patch => 1,
        }
    }
}

/// The seed of a commit's buffer: known in advance and the same after a crash.
///
/// It depends on the content, so the buffer at its address holds these very bytes or nothing.
pub fn buffer_seed(account: &Address, commit_id: CommitId, kind: PayloadKind, payload: &[u8]) -> String {
    let hash = Sha256::new()
        .chain_update(commit_id.0.to_le_bytes())
        .chain_update(account.as_ref())
        .chain_update([kind.code()])
        .chain_update((payload.len() as u64).to_le_bytes())
        .chain_update(payload_digest(payload))
        .finalize();
    hash.iter().take(address::MAX_SEED_LEN / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// How one commit's payload gets into a buffer.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    /// The buffer's address.
    pub(super) buffer: Address,
    /// What the payload is.
    pub(super) kind: PayloadKind,
    /// The calls of `seal` that are still due.
    pub(super) seals: Vec<Instruction>,
    /// Lamports that go into the buffer.
    pub(super) rent: Lamports,
    payload: Arc<[u8]>,
    seed: String,
    layout: ChunkLayout,
    /// Chunks of an existing buffer that have not been written; `None` if there is no buffer yet.
    missing: Option<Vec<u32>>,
    /// Whether the first chunk fits the transaction that creates the buffer.
    first_chunk_rides: bool,
}

impl Upload {
    /// Decides where and in which chunks a payload is uploaded.
    pub(super) fn plan(
        facts: &AccountFacts,
        kind: PayloadKind,
        payload: Arc<[u8]>,
        context: &PlanContext,
    ) -> Result<Self, PlanError> {
        let account = facts.account;
        let seed = buffer_seed(&account, facts.commit_id, kind, &payload);
        let buffer = address::buffer(&context.authority, &seed)
            .map_err(|source| PlanError::Seed { account, source })?;
        let existing = facts.buffers.iter().find(|existing| existing.address == buffer);
        let layout = match existing {
            Some(existing) => {
                ChunkLayout::new(existing.header.payload_len.into(), existing.header.chunk_size)
                    .map_err(|source| PlanError::Layout { account, source })?
            }
            None => best_layout(account, payload.len(), &seed, buffer, context)?,
        };
        let rent = match existing {
            Some(_) => Lamports(0),
            None => context.rent.minimum(layout.account_len()),
        };
        let seals = seals_due(existing, &payload, buffer, layout, context);
        let missing = existing.map(|existing| existing.missing.clone());
        let mut upload =
            Self { buffer, kind, seals, rent, payload, seed, layout, missing, first_chunk_rides: false };
        upload.first_chunk_rides = upload.missing.is_none()
            && layout.chunk_count() > 0
            && upload.create(0, true, context)?.check(&context.payer).is_ok();
        Ok(upload)
    }

    /// Whether nothing of it is on chain.
    pub(super) const fn is_new(&self) -> bool {
        self.missing.is_none()
    }

    /// How many rounds of transactions it takes before the buffer can be sealed.
    pub(super) fn round_count(&self) -> usize {
        match &self.missing {
            Some(missing) => usize::from(!missing.is_empty()),
            None => 1 + usize::from(self.layout.chunk_count() > u32::from(self.first_chunk_rides)),
        }
    }

    /// How many transactions it takes before the buffer can be sealed.
    pub(super) fn transaction_count(&self) -> usize {
        match &self.missing {
            Some(missing) => missing.len(),
            None => 1 + (self.layout.chunk_count() - u32::from(self.first_chunk_rides)) as usize,
        }
    }

    /// The transactions that create the buffer of commit `index` and write it, by round, or what is left of them.
    pub(super) fn rounds(
        &self,
        index: usize,
        context: &PlanContext,
    ) -> Result<Vec<Vec<PlannedTransaction>>, PlanError> {
        let mut rounds = Vec::new();
        let due: Vec<u32> = match &self.missing {
            Some(missing) => missing.clone(),
            None => {
                rounds.push(vec![self.create(index, self.first_chunk_rides, context)?]);
                (u32::from(self.first_chunk_rides)..self.layout.chunk_count()).collect()
            }
        };
        if !due.is_empty() {
            rounds.push(due.into_iter().map(|chunk| self.write(index, chunk, context)).collect());
        }
        Ok(rounds)
    }

    /// Adds all that brings a new buffer about to a transaction that does something else besides.
    pub(super) fn add_all(
        &self,
        builder: &mut TransactionBuilder,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        for instruction in self.create_instructions(context)? {
            builder.add(instruction, cost::INIT);
        }
        for chunk in 0..self.layout.chunk_count() {
            self.add_write(builder, chunk, context);
        }
        Ok(())
    }

    /// Length of the payload in bytes.
    pub(super) fn payload_len(&self) -> usize {
        self.payload.len()
    }

    /// Length of the buffer account in bytes.
    pub(super) const fn account_len(&self) -> u64 {
        self.layout.account_len()
    }

    /// What one call of `seal` costs.
    pub(super) const fn seal_cost(&self) -> ComputeUnits {
        ComputeUnits::seal(self.layout.payload_len() as usize)
    }

    /// The transaction that creates the buffer, with the first chunk if it is to ride along.
    fn create(
        &self,
        index: usize,
        with_chunk: bool,
        context: &PlanContext,
    ) -> Result<PlannedTransaction, PlanError> {
        let mut builder = self.builder(index);
        for instruction in self.create_instructions(context)? {
            builder.add(instruction, cost::INIT);
        }
        if with_chunk {
            self.add_write(&mut builder, 0, context);
        }
        Ok(builder.build(context, 0))
    }

    fn create_instructions(&self, context: &PlanContext) -> Result<Vec<Instruction>, PlanError> {
        let (payer, authority) = (context.payer, context.authority);
        let (seed, layout, rent_lamports) = (self.seed.as_str(), self.layout, self.rent.0);
        let create = CreateBuffer { payer, authority, seed, layout, rent_lamports };
        create.instructions().map_err(|source| PlanError::Seed { account: self.buffer, source })
    }

    fn write(&self, index: usize, chunk: u32, context: &PlanContext) -> PlannedTransaction {
        let mut builder = self.builder(index);
        self.add_write(&mut builder, chunk, context);
        builder.build(context, 0)
    }

    fn add_write(&self, builder: &mut TransactionBuilder, chunk: u32, context: &PlanContext) {
        let range = self.layout.chunk(chunk).unwrap_or_default();
        let cost = ComputeUnits::write(range.len());
        let args = chunk_buffer::WriteArgs { offset: range.start as u32, data: &self.payload[range] };
        let accounts = chunk_buffer::Write { authority: context.authority, buffer: self.buffer };
        builder.add(accounts.instruction(args), cost);
    }

    fn builder(&self, index: usize) -> TransactionBuilder {
        let mut builder = TransactionBuilder::new(Stage::Prepare);
        builder.serves(index).loads(self.layout.account_len());
        builder
    }
}

fn seals_due(
    existing: Option<&BufferFacts>,
    payload: &[u8],
    buffer: Address,
    layout: ChunkLayout,
    context: &PlanContext,
) -> Vec<Instruction> {
    let hashed = match existing {
        Some(existing) if existing.sealed => return Vec::new(),
        Some(existing) if existing.missing.is_empty() => u64::from(existing.header.hashed_segments),
        _ => 0,
    };
    let due = seal_calls(u64::from(layout.payload_len())).saturating_sub(hashed);
    let seal = chunk_buffer::Seal { authority: context.authority, buffer };
    let digest = payload_digest(payload);
    (0..due).map(|_| seal.instruction(chunk_buffer::SealArgs { digest })).collect()
}

/// The layout with the fewest transactions: chunks that fill a transaction of their own, or chunks short enough that the
/// first one rides in the transaction that creates the buffer.
fn best_layout(
    account: Address,
    len: usize,
    seed: &str,
    buffer: Address,
    context: &PlanContext,
) -> Result<ChunkLayout, PlanError> {
    let in_chunks = |chunks: usize| {
        let chunk_size = len.div_ceil(chunks.max(1)).max(1);
        ChunkLayout::new(len as u64, chunk_size as u32)
            .map_err(|source| PlanError::Layout { account, source })
    };
    let write = chunk_buffer::Write { authority: context.authority, buffer };
    let alone = room_for_chunk(&write, Vec::new(), context)?;
    let own = in_chunks(len.div_ceil(alone))?;
    let (payer, authority) = (context.payer, context.authority);
    let create = CreateBuffer { payer, authority, seed, layout: own, rent_lamports: 1 };
    let create = create.instructions().map_err(|source| PlanError::Seed { account, source })?;
    let riding = room_for_chunk(&write, create, context)?;
    if riding == 0 || len.div_ceil(riding) > len.div_ceil(alone) + 1 {
        return Ok(own);
    }
    in_chunks(len.div_ceil(riding))
}
