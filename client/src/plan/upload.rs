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
use crate::types::{CommitId, Lamports, Method, Stage};

/// What a buffer's payload is to the delegation program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadKind {
    /// A whole state.
    State,
    /// A patch.
    Patch,
}

impl PayloadKind {
    /// What a commit with this method has in its buffer.
    pub(super) const fn of(method: Method) -> Self {
        match method {
            Method::Inline | Method::Buffer => Self::State,
            Method::InlinePatch | Method::BufferPatch => Self::Patch,
        }
    }

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

/// How a payload gets into a buffer.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    /// The buffer's address.
    pub(super) buffer: Address,
    /// The calls of `seal` that are still due.
    pub(super) seals: Vec<Instruction>,
    /// Lamports that go into the buffer.
    pub(super) rent: Lamports,
    /// How the payload is cut into chunks.
    pub(super) layout: ChunkLayout,
    payload: Arc<[u8]>,
    seed: String,
    /// Whether nothing of it is on chain.
    is_new: bool,
    /// The chunks that have to be written, in order.
    due: Vec<u32>,
    /// Whether the first of them fits the transaction that creates the buffer.
    first_chunk_rides: bool,
}

/// Where a payload goes, and what is there already.
pub(super) struct Destination<'a> {
    /// The seed of the buffer's address.
    pub(super) seed: String,
    /// The delegated account that it is for, or the buffer itself: errors name it.
    pub(super) subject: Address,
    /// Lamports that the address holds without being a buffer.
    pub(super) lamports: Lamports,
    /// The buffer, if there is one.
    pub(super) existing: Option<&'a BufferFacts>,
}

/// Whether bytes are all zero, as a buffer's are before they are written.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

impl Upload {
    /// The upload of a commit's payload.
    pub(super) fn of_commit(
        facts: &AccountFacts,
        kind: PayloadKind,
        payload: Arc<[u8]>,
        context: &PlanContext,
    ) -> Result<Self, PlanError> {
        let subject = facts.account;
        let seed = buffer_seed(&subject, facts.commit_id, kind, &payload);
        let buffer = address::buffer(&context.authority, &seed)
            .map_err(|source| PlanError::Seed { account: subject, source })?;
        let existing = facts.buffers.iter().find(|existing| existing.address == buffer);
        let destination = Destination { seed, subject, lamports: Lamports(0), existing };
        let bytes = payload.clone();
        let due = move |layout: ChunkLayout| {
            let is_due = |chunk: &u32| layout.chunk(*chunk).is_some_and(|range| !is_zero(&bytes[range]));
            match existing {
                Some(existing) => existing.missing.iter().copied().filter(is_due).collect(),
                None => (0..layout.chunk_count()).filter(is_due).collect(),
            }
        };
        Self::plan(destination, payload, due, context)
    }

    /// Decides in which chunks a payload is uploaded; `due` says which of them have to be written.
    pub(super) fn plan(
        destination: Destination<'_>,
        payload: Arc<[u8]>,
        due: impl FnOnce(ChunkLayout) -> Vec<u32>,
        context: &PlanContext,
    ) -> Result<Self, PlanError> {
        let Destination { seed, subject, lamports, existing } = destination;
        let buffer = address::buffer(&context.authority, &seed)
            .map_err(|source| PlanError::Seed { account: subject, source })?;
        let layout = match existing {
            Some(existing) => {
                ChunkLayout::new(existing.header.payload_len.into(), existing.header.chunk_size)
                    .map_err(|source| PlanError::Layout { account: subject, source })?
            }
            None => best_layout(subject, payload.len(), &seed, buffer, context)?,
        };
        let rent = match existing {
            Some(_) => Lamports(0),
            None => context.rent.minimum(layout.account_len()).saturating_sub(lamports),
        };
        let due = due(layout);
        let hashed =
            existing.filter(|_| due.is_empty()).map_or(0, |existing| existing.header.hashed_segments);
        let sealed = existing.is_some_and(|existing| existing.sealed);
        let seals = if sealed { Vec::new() } else { seals_due(hashed, &payload, buffer, layout, context) };
        let is_new = existing.is_none();
        let mut upload =
            Self { buffer, seals, rent, payload, seed, layout, is_new, due, first_chunk_rides: false };
        upload.first_chunk_rides = is_new
            && !upload.due.is_empty()
            && upload.create(0, true, context)?.check(&context.payer).is_ok();
        Ok(upload)
    }

    /// Whether nothing of it is on chain.
    pub(super) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// The chunks that have transactions of their own.
    fn alone(&self) -> &[u32] {
        &self.due[usize::from(self.first_chunk_rides)..]
    }

    /// How many rounds of transactions it takes before the buffer can be sealed.
    pub(super) fn round_count(&self) -> usize {
        usize::from(self.is_new) + usize::from(!self.alone().is_empty())
    }

    /// How many transactions it takes before the buffer can be sealed.
    pub(super) fn transaction_count(&self) -> usize {
        usize::from(self.is_new) + self.alone().len()
    }

    /// The chunks that have to be written.
    pub(super) fn due(&self) -> &[u32] {
        &self.due
    }

    /// The transactions that create the buffer of commit `index` and write it, by round, or what is left of them.
    pub(super) fn rounds(
        &self,
        index: usize,
        context: &PlanContext,
    ) -> Result<Vec<Vec<PlannedTransaction>>, PlanError> {
        let mut rounds = Vec::new();
        if self.is_new {
            rounds.push(vec![self.create(index, self.first_chunk_rides, context)?]);
        }
        if !self.alone().is_empty() {
            rounds.push(self.alone().iter().map(|chunk| self.write(index, *chunk, context)).collect());
        }
        Ok(rounds)
    }

    /// Adds all that is left to do before the buffer can be sealed.
    pub(super) fn add_all(
        &self,
        builder: &mut TransactionBuilder,
        context: &PlanContext,
    ) -> Result<(), PlanError> {
        if self.is_new {
            for instruction in self.create_instructions(context)? {
                builder.add(instruction, cost::INIT);
            }
        }
        for chunk in &self.due {
            self.add_write(builder, *chunk, context);
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
        if with_chunk && let Some(chunk) = self.due.first() {
            self.add_write(&mut builder, *chunk, context);
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

/// The calls of `seal` after `hashed` segments.
fn seals_due(
    hashed: u32,
    payload: &[u8],
    buffer: Address,
    layout: ChunkLayout,
    context: &PlanContext,
) -> Vec<Instruction> {
    let due = seal_calls(u64::from(layout.payload_len())).saturating_sub(hashed.into());
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
