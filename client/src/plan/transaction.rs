//! Transactions that are planned but not signed, and the limits they must keep.

use committor_sdk::chunk_buffer;
use solana_address::Address;
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{AddressLookupTableAccount, VersionedMessage, v0, v1};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use thiserror::Error;

use super::{ComputeUnits, Limit, PlanContext, PlanError, StagePrice, cost};
use crate::types::{Lamports, LookupTable, Stage, TransactionVersion};

/// Accounts that one transaction may lock, on clusters where `increase_tx_account_lock_limit` is not active.
pub(super) const MAX_ACCOUNT_LOCKS: u64 = 64;
/// Instructions in one transaction's trace.
const MAX_INSTRUCTIONS: u64 = 64;
/// What the runtime adds to every loaded account's length, in bytes.
const LOADED_ACCOUNT_OVERHEAD: u64 = 64;
/// Room for the two programs and their program data, in bytes; they have less than a third of it.
const LOADED_PROGRAMS: u64 = 512 * 1024;
/// What the runtime counts for a lookup table, in bytes.
const LOADED_TABLE: u64 = 8_248;
/// The unit in which loaded data is charged for, in bytes.
const LOADED_DATA_PAGE: u64 = 32 * 1024;
/// The most that a transaction may load, in bytes.
const MAX_LOADED_DATA: u64 = 64 * 1024 * 1024;
/// What a signature costs, in lamports.
const LAMPORTS_PER_SIGNATURE: u64 = 5_000;

/// The instructions make no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompileError {
    /// In the v0 format.
    #[error("not a v0 message")]
    V0(#[source] solana_message::CompileError),
    /// In the v1 format.
    #[error("not a v1 message: {0}")]
    V1(String),
    /// It can't be serialized.
    #[error("not serializable: {0}")]
    Serialize(String),
}

/// A transaction that lacks only its blockhash and signatures.
#[derive(Clone, Debug)]
pub struct PlannedTransaction {
    /// What it is for.
    pub stage: Stage,
    /// Which commits of the bundle it serves, by index.
    pub commits: Vec<usize>,
    /// Its instructions, without those of the compute budget.
    pub instructions: Vec<Instruction>,
    /// Its format.
    pub version: TransactionVersion,
    /// The lookup tables that it may use.
    pub tables: Vec<LookupTable>,
    /// Its compute-unit limit.
    pub compute_unit_limit: u32,
    /// Its limit on loaded accounts' data, in bytes.
    pub loaded_data_limit: u32,
    /// Price of its priority fee, in micro-lamports per compute unit.
    pub micro_lamports_per_unit: u64,
    sums: Sums,
}

/// What a transaction's instructions add up to, before margins.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    compute: ComputeUnits,
    loaded: u64,
    /// Instructions that its own instructions call.
    called: u64,
}

/// Collects what a transaction does and costs.
#[derive(Clone, Debug)]
pub(super) struct TransactionBuilder {
    stage: Stage,
    commits: Vec<usize>,
    instructions: Vec<Instruction>,
    tables: Vec<LookupTable>,
    sums: Sums,
}

impl TransactionBuilder {
    pub(super) fn new(stage: Stage) -> Self {
        let sums = Sums { loaded: LOADED_PROGRAMS, ..Sums::default() };
        Self { stage, commits: Vec::new(), instructions: Vec::new(), tables: Vec::new(), sums }
    }

    pub(super) fn serves(&mut self, commit: usize) -> &mut Self {
        if !self.commits.contains(&commit) {
            self.commits.push(commit);
        }
        self
    }

    pub(super) fn add(&mut self, instruction: Instruction, cost: ComputeUnits) -> &mut Self {
        self.instructions.push(instruction);
        self.sums.compute = self.sums.compute.plus(cost);
        self
    }

    /// Counts instructions that the one added last calls.
    pub(super) fn calls(&mut self, instructions: u64) -> &mut Self {
        self.sums.called += instructions;
        self
    }

    /// Counts an account of `len` bytes that the transaction loads.
    pub(super) fn loads(&mut self, len: u64) -> &mut Self {
        self.sums.loaded = self.sums.loaded.saturating_add(len).saturating_add(LOADED_ACCOUNT_OVERHEAD);
        self
    }

    /// Lets it use lookup tables.
    pub(super) fn with_tables(&mut self, tables: &[LookupTable]) -> &mut Self {
        self.tables = tables.to_vec();
        self
    }

    /// The accounts that a lookup table can stand for: all that do not sign and are not called.
    pub(super) fn lookup_keys(&self, payer: &Address) -> Vec<Address> {
        let metas = || self.instructions.iter().flat_map(|instruction| &instruction.accounts);
        let fixed: Vec<Address> = (self.instructions.iter().map(|instruction| instruction.program_id))
            .chain(metas().filter(|meta| meta.is_signer).map(|meta| meta.pubkey))
            .chain([*payer])
            .collect();
        let mut keys: Vec<Address> = metas().map(|meta| meta.pubkey).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.retain(|key| !fixed.contains(key));
        keys
    }

    /// Fixes the limits. `variant` tells transactions apart that would else be identical and so have one signature.
    pub(super) fn build(self, context: &PlanContext, variant: u32) -> PlannedTransaction {
        let Self { stage, commits, instructions, tables, sums } = self;
        let price = context.prices.of(stage);
        let mut transaction = PlannedTransaction {
            stage,
            commits,
            instructions,
            version: context.version,
            tables,
            compute_unit_limit: 0,
            loaded_data_limit: 0,
            micro_lamports_per_unit: price.micro_lamports_per_unit,
            sums,
        };
        transaction.set_limits(price, variant);
        transaction
    }
}

impl PlannedTransaction {
    fn set_limits(&mut self, price: StagePrice, variant: u32) {
        let budget = match self.version {
            TransactionVersion::V0 => ComputeUnits(3 * cost::BUILTIN.0),
            TransactionVersion::V1 => ComputeUnits::default(),
        };
        let from_table = self.sums.compute.plus(budget).with_margin().0;
        let limit = price.fixed_limit.map_or(from_table, u64::from) + u64::from(variant);
        let loaded = self.sums.loaded + LOADED_TABLE * self.tables.len() as u64;
        let loaded = loaded.div_ceil(LOADED_DATA_PAGE) * LOADED_DATA_PAGE;
        self.compute_unit_limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.loaded_data_limit = u32::try_from(loaded).unwrap_or(u32::MAX);
    }

    /// This transaction and another one as a single one, which serves no commits by index: they are of several bundles.
    pub(super) fn merged(&self, other: &Self, price: StagePrice) -> Self {
        let mut merged = self.clone();
        merged.commits.clear();
        merged.instructions.extend_from_slice(&other.instructions);
        for table in &other.tables {
            if !merged.tables.contains(table) {
                merged.tables.push(table.clone());
            }
        }
        merged.sums = Sums {
            compute: self.sums.compute.plus(other.sums.compute),
            loaded: self.sums.loaded.saturating_add(other.sums.loaded).saturating_sub(LOADED_PROGRAMS),
            called: self.sums.called + other.sums.called,
        };
        merged.set_limits(price, 0);
        merged
    }

    /// The same with another compute-unit limit.
    pub fn with_compute_unit_limit(mut self, units: u32) -> Self {
        self.compute_unit_limit = units;
        self
    }

    /// The accounts that it writes to, the fee payer aside.
    pub fn writable(&self) -> Vec<Address> {
        let metas = self.instructions.iter().flat_map(|instruction| &instruction.accounts);
        let mut writable: Vec<Address> =
            metas.filter(|meta| meta.is_writable).map(|meta| meta.pubkey).collect();
        writable.sort_unstable();
        writable.dedup();
        writable
    }

    /// What it pays: for its signatures and for its place in a block.
    pub fn fee(&self, payer: &Address) -> Lamports {
        let mut signers: Vec<&Address> = self
            .instructions
            .iter()
            .flat_map(|instruction| &instruction.accounts)
            .filter(|meta| meta.is_signer)
            .map(|meta| &meta.pubkey)
            .chain([payer])
            .collect();
        signers.sort_unstable();
        signers.dedup();
        Lamports(LAMPORTS_PER_SIGNATURE * signers.len() as u64 + self.priority_fee())
    }

    /// The priority fee, in lamports.
    fn priority_fee(&self) -> u64 {
        let micro = u128::from(self.micro_lamports_per_unit) * u128::from(self.compute_unit_limit);
        u64::try_from(micro.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The message, for signing.
    ///
    /// # Errors
    /// [`CompileError`] if the instructions make no message of this format.
    pub fn message(&self, payer: &Address, blockhash: Hash) -> Result<VersionedMessage, CompileError> {
        match self.version {
            TransactionVersion::V0 => {
                let mut instructions = vec![
                    ComputeBudgetInstruction::set_compute_unit_limit(self.compute_unit_limit),
                    ComputeBudgetInstruction::set_loaded_accounts_data_size_limit(self.loaded_data_limit),
                ];
                if self.micro_lamports_per_unit > 0 {
                    let price = self.micro_lamports_per_unit;
                    instructions.push(ComputeBudgetInstruction::set_compute_unit_price(price));
                }
                instructions.extend_from_slice(&self.instructions);
                let tables = self.tables.iter().map(|table| AddressLookupTableAccount {
                    key: table.address,
                    addresses: table.addresses.clone(),
                });
                let tables: Vec<_> = tables.collect();
                let message = v0::Message::try_compile(payer, &instructions, &tables, blockhash);
                message.map(VersionedMessage::V0).map_err(CompileError::V0)
            }
            TransactionVersion::V1 => {
                // In this format an absent limit means zero.
                let mut config = v1::TransactionConfig::default()
                    .with_compute_unit_limit(self.compute_unit_limit)
                    .with_loaded_accounts_data_size_limit(self.loaded_data_limit);
                if self.micro_lamports_per_unit > 0 {
                    config = config.with_priority_fee(self.priority_fee());
                }
                let message =
                    v1::Message::try_compile_with_config(payer, &self.instructions, blockhash, config);
                message.map(VersionedMessage::V1).map_err(|error| CompileError::V1(error.to_string()))
            }
        }
    }

    /// Length on the wire in bytes, signatures included.
    ///
    /// # Errors
    /// [`CompileError`] as [`Self::message`].
    pub fn wire_len(&self, payer: &Address) -> Result<usize, CompileError> {
        wire_len(self.message(payer, Hash::default())?)
    }

    /// Checks every limit of the chain.
    ///
    /// # Errors
    /// [`PlanError::DoesNotFit`] with the first limit that is broken.
    pub fn check(&self, payer: &Address) -> Result<(), PlanError> {
        let refuse = |limit, value, max| {
            if value > max { Err(PlanError::DoesNotFit { limit, value, max }) } else { Ok(()) }
        };
        let locks = account_count(payer, &self.instructions);
        // The two programs of the compute budget are one.
        let locks = locks + u64::from(self.version == TransactionVersion::V0);
        refuse(Limit::AccountLocks, locks, MAX_ACCOUNT_LOCKS)?;
        // Longer data can't even be serialized.
        let data_len: usize = self.instructions.iter().map(|instruction| instruction.data.len()).sum();
        refuse(Limit::TransactionLen, data_len as u64, self.version.max_len() as u64)?;
        let message = self.message(payer, Hash::default())?;
        refuse(
            Limit::Instructions,
            message.instructions().len() as u64 + self.sums.called,
            MAX_INSTRUCTIONS,
        )?;
        refuse(Limit::LoadedData, u64::from(self.loaded_data_limit), MAX_LOADED_DATA)?;
        refuse(Limit::ComputeUnits, u64::from(self.compute_unit_limit), cost::MAX.0)?;
        refuse(Limit::TransactionLen, wire_len(message)? as u64, self.version.max_len() as u64)
    }
}

/// How many bytes of a chunk fit a transaction that holds `instructions` besides the chunk's `write`.
pub(super) fn room_for_chunk(
    write: &chunk_buffer::Write,
    instructions: Vec<Instruction>,
    context: &PlanContext,
) -> Result<usize, PlanError> {
    let mut builder = TransactionBuilder::new(Stage::Prepare);
    builder.instructions = instructions;
    let max = context.version.max_len();
    // The length of a compact array of instruction data is written in as few bytes as it needs: ask with a full one.
    let probe = vec![0; max / 4];
    builder
        .add(write.instruction(chunk_buffer::WriteArgs { offset: 0, data: &probe }), ComputeUnits::default());
    let used = builder.build(context, 0).wire_len(&context.payer)? - probe.len();
    Ok(max.saturating_sub(used))
}

fn wire_len(message: VersionedMessage) -> Result<usize, CompileError> {
    let signers = usize::from(message.header().num_required_signatures);
    let transaction = VersionedTransaction { signatures: vec![Signature::default(); signers], message };
    let len = wincode::serialized_size(&transaction);
    len.map(|len| len as usize).map_err(|error| CompileError::Serialize(error.to_string()))
}

fn account_count(payer: &Address, instructions: &[Instruction]) -> u64 {
    let mut accounts: Vec<&Address> = instructions
        .iter()
        .flat_map(|instruction| {
            instruction.accounts.iter().map(|meta| &meta.pubkey).chain([&instruction.program_id])
        })
        .chain([payer])
        .collect();
    accounts.sort_unstable();
    accounts.dedup();
    accounts.len() as u64
}
