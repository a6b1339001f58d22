//! Bringing a state into a sealed buffer.

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
    AccountFacts, ComputeUnits, PlanContext, PlanError, cost,
    transaction::{PlannedTransaction, TransactionBuilder, room_for_chunk},
};
use crate::types::{CommitId, Lamports, Stage};

/// The seed of a commit's buffer: known in advance and the same after a crash.
///
/// It depends on the content, so the buffer at its address holds these very bytes or nothing.
pub fn buffer_seed(account: &Address, commit_id: CommitId, state: &[u8]) -> String {
    let hash = Sha256::new()
        .chain_update(commit_id.0.to_le_bytes())
        .chain_update(account.as_ref())
        .chain_update((state.len() as u64).to_le_bytes())
        .chain_update(payload_digest(state))
        .finalize();
    hash.iter().take(address::MAX_SEED_LEN / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// How one commit's bytes get into a buffer.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    /// The buffer's address.
    pub(super) buffer: Address,
    /// The calls of `seal` that are still due.
    pub(super) seals: Vec<Instruction>,
    /// Lamports that go into the buffer.
    pub(super) rent: Lamports,
    seed: String,
    layout: ChunkLayout,
}

impl Upload {
    /// Decides where and in which chunks a state is uploaded.
    pub(super) fn plan(facts: &AccountFacts, context: &PlanContext) -> Result<Self, PlanError> {
        let account = facts.account;
        let seed = buffer_seed(&account, facts.commit_id, &facts.state);
        let buffer = address::buffer(&context.authority, &seed)
            .map_err(|source| PlanError::Seed { account, source })?;
        let layout = match &facts.buffer {
            Some(existing) => {
                ChunkLayout::new(existing.header.payload_len.into(), existing.header.chunk_size)
                    .map_err(|source| PlanError::Layout { account, source })?
            }
            None => best_layout(facts, &seed, buffer, context)?,
        };
        let rent = match &facts.buffer {
            Some(_) => Lamports(0),
            None => context.rent.minimum(layout.account_len()).saturating_sub(facts.buffer_lamports),
        };
        let seals = seals_due(facts, buffer, layout, context);
        Ok(Self { buffer, seals, rent, seed, layout })
    }

    /// The transactions that create the buffer of commit `index` and write it, by round, or what is left of them.
    pub(super) fn rounds(
        &self,
        index: usize,
        facts: &AccountFacts,
        context: &PlanContext,
    ) -> Result<Vec<Vec<PlannedTransaction>>, PlanError> {
        let accounts = chunk_buffer::Write { authority: context.authority, buffer: self.buffer };
        let writes = Writes { index, accounts, layout: self.layout, state: &facts.state, context };
        let mut rounds = Vec::new();
        let due: Vec<u32> = match &facts.buffer {
            Some(existing) => existing.missing.clone(),
            None => {
                let instructions = create_instructions(facts, &self.seed, self.layout, self.rent, context)?;
                let (create, first_chunk_rides) = writes.create(instructions);
                rounds.push(vec![create]);
                (u32::from(first_chunk_rides)..self.layout.chunk_count()).collect()
            }
        };
        if !due.is_empty() {
            rounds.push(due.into_iter().map(|chunk| writes.write(chunk)).collect());
        }
        Ok(rounds)
    }

    /// Length of the buffer account in bytes.
    pub(super) const fn account_len(&self) -> u64 {
        self.layout.account_len()
    }

    /// What one call of `seal` costs.
    pub(super) const fn seal_cost(&self) -> ComputeUnits {
        ComputeUnits::seal(self.layout.payload_len() as usize)
    }
}

fn seals_due(
    facts: &AccountFacts,
    buffer: Address,
    layout: ChunkLayout,
    context: &PlanContext,
) -> Vec<Instruction> {
    let hashed = match &facts.buffer {
        Some(existing) if existing.sealed => return Vec::new(),
        Some(existing) if existing.missing.is_empty() => u64::from(existing.header.hashed_segments),
        _ => 0,
    };
    let due = seal_calls(u64::from(layout.payload_len())).saturating_sub(hashed);
    let seal = chunk_buffer::Seal { authority: context.authority, buffer };
    let digest = payload_digest(&facts.state);
    (0..due).map(|_| seal.instruction(chunk_buffer::SealArgs { digest })).collect()
}

/// The layout with the fewest transactions: chunks that fill a transaction of their own, or chunks short enough that the
/// first one rides in the transaction that creates the buffer.
fn best_layout(
    facts: &AccountFacts,
    seed: &str,
    buffer: Address,
    context: &PlanContext,
) -> Result<ChunkLayout, PlanError> {
    let account = facts.account;
    let len = facts.state.len();
    let in_chunks = |chunks: usize| {
        let chunk_size = len.div_ceil(chunks.max(1)).max(1);
        ChunkLayout::new(len as u64, chunk_size as u32)
            .map_err(|source| PlanError::Layout { account, source })
    };
    let write = chunk_buffer::Write { authority: context.authority, buffer };
    let alone = room_for_chunk(&context.payer, &write, Vec::new(), context.version)?;
    let own = in_chunks(len.div_ceil(alone))?;
    let create = create_instructions(facts, seed, own, Lamports(1), context)?;
    let riding = room_for_chunk(&context.payer, &write, create, context.version)?;
    if riding == 0 || len.div_ceil(riding) > len.div_ceil(alone) + 1 {
        return Ok(own);
    }
    in_chunks(len.div_ceil(riding))
}

fn create_instructions(
    facts: &AccountFacts,
    seed: &str,
    layout: ChunkLayout,
    rent: Lamports,
    context: &PlanContext,
) -> Result<Vec<Instruction>, PlanError> {
    let (payer, authority) = (context.payer, context.authority);
    let create = CreateBuffer { payer, authority, seed, layout, rent_lamports: rent.0 };
    create.instructions().map_err(|source| PlanError::Seed { account: facts.account, source })
}

/// The writes of one buffer.
struct Writes<'a> {
    index: usize,
    accounts: chunk_buffer::Write,
    layout: ChunkLayout,
    state: &'a [u8],
    context: &'a PlanContext,
}

impl Writes<'_> {
    /// The transaction that creates the buffer, with the first chunk if it fits.
    fn create(&self, instructions: Vec<Instruction>) -> (PlannedTransaction, bool) {
        let mut builder = self.builder();
        for instruction in instructions {
            builder.add(instruction, cost::INIT);
        }
        if self.layout.chunk_count() > 0 {
            let mut with_chunk = builder.clone();
            self.add(&mut with_chunk, 0);
            let with_chunk = with_chunk.build(self.context.version, 0);
            if with_chunk.check(&self.context.payer).is_ok() {
                return (with_chunk, true);
            }
        }
        (builder.build(self.context.version, 0), false)
    }

    fn write(&self, chunk: u32) -> PlannedTransaction {
        let mut builder = self.builder();
        self.add(&mut builder, chunk);
        builder.build(self.context.version, 0)
    }

    fn add(&self, builder: &mut TransactionBuilder, chunk: u32) {
        let range = self.layout.chunk(chunk).unwrap_or_default();
        let cost = ComputeUnits::write(range.len());
        let args = chunk_buffer::WriteArgs { offset: range.start as u32, data: &self.state[range] };
        builder.add(self.accounts.instruction(args), cost);
    }

    fn builder(&self) -> TransactionBuilder {
        let mut builder = TransactionBuilder::new(Stage::Prepare);
        builder.serves(self.index).loads(self.layout.account_len());
        builder
    }
}
