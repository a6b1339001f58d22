//! Transactions that are planned but not signed, and the limits they must keep.

use committor_sdk::chunk_buffer;
use solana_address::Address;
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{VersionedMessage, v0, v1};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use thiserror::Error;

use super::{ComputeUnits, Limit, PlanError, cost};
use crate::types::{Stage, TransactionVersion};

/// Accounts that one transaction may lock, on clusters where `increase_tx_account_lock_limit` is not active.
const MAX_ACCOUNT_LOCKS: u64 = 64;
/// Instructions in one transaction's trace.
const MAX_INSTRUCTIONS: u64 = 64;
/// What the runtime adds to every loaded account's length, in bytes.
const LOADED_ACCOUNT_OVERHEAD: u64 = 64;
/// Room for the two programs and their program data, in bytes; they have less than a third of it.
const LOADED_PROGRAMS: u64 = 512 * 1024;
/// The unit in which loaded data is charged for, in bytes.
const LOADED_DATA_PAGE: u64 = 32 * 1024;
/// The most that a transaction may load, in bytes.
const MAX_LOADED_DATA: u64 = 64 * 1024 * 1024;

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
    /// Its compute-unit limit.
    pub compute_unit_limit: u32,
    /// Its limit on loaded accounts' data, in bytes.
    pub loaded_data_limit: u32,
}

/// Collects what a transaction does and costs.
#[derive(Clone, Debug)]
pub(super) struct TransactionBuilder {
    stage: Stage,
    commits: Vec<usize>,
    instructions: Vec<Instruction>,
    compute: ComputeUnits,
    loaded: u64,
}

impl TransactionBuilder {
    pub(super) fn new(stage: Stage) -> Self {
        let (commits, instructions) = (Vec::new(), Vec::new());
        Self { stage, commits, instructions, compute: ComputeUnits::default(), loaded: LOADED_PROGRAMS }
    }

    pub(super) fn serves(&mut self, commit: usize) -> &mut Self {
        if !self.commits.contains(&commit) {
            self.commits.push(commit);
        }
        self
    }

    pub(super) fn add(&mut self, instruction: Instruction, cost: ComputeUnits) -> &mut Self {
        self.instructions.push(instruction);
        self.compute = self.compute.plus(cost);
        self
    }

    /// Counts an account of `len` bytes that the transaction loads.
    pub(super) fn loads(&mut self, len: u64) -> &mut Self {
        self.loaded = self.loaded.saturating_add(len).saturating_add(LOADED_ACCOUNT_OVERHEAD);
        self
    }

    /// Fixes the limits. `variant` tells transactions apart that would else be identical and so have one signature.
    pub(super) fn build(self, version: TransactionVersion, variant: u32) -> PlannedTransaction {
        let budget = match version {
            TransactionVersion::V0 => cost::BUILTIN.plus(cost::BUILTIN),
            TransactionVersion::V1 => ComputeUnits::default(),
        };
        let limit = self.compute.plus(budget).with_margin().0 + u64::from(variant);
        let loaded = self.loaded.div_ceil(LOADED_DATA_PAGE) * LOADED_DATA_PAGE;
        PlannedTransaction {
            stage: self.stage,
            commits: self.commits,
            instructions: self.instructions,
            version,
            compute_unit_limit: u32::try_from(limit).unwrap_or(u32::MAX),
            loaded_data_limit: u32::try_from(loaded).unwrap_or(u32::MAX),
        }
    }
}

impl PlannedTransaction {
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
                instructions.extend_from_slice(&self.instructions);
                let message = v0::Message::try_compile(payer, &instructions, &[], blockhash);
                message.map(VersionedMessage::V0).map_err(CompileError::V0)
            }
            TransactionVersion::V1 => {
                // In this format an absent limit means zero.
                let config = v1::TransactionConfig::default()
                    .with_compute_unit_limit(self.compute_unit_limit)
                    .with_loaded_accounts_data_size_limit(self.loaded_data_limit);
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
        // Longer data can't even be serialized.
        let data_len: usize = self.instructions.iter().map(|instruction| instruction.data.len()).sum();
        refuse(Limit::TransactionLen, data_len as u64, self.version.max_len() as u64)?;
        let message = match self.message(payer, Hash::default()) {
            Ok(message) => message,
            // More accounts than an index can name.
            Err(_) => {
                let locks = account_count(payer, &self.instructions);
                refuse(Limit::AccountLocks, locks, MAX_ACCOUNT_LOCKS)?;
                self.message(payer, Hash::default())?
            }
        };
        refuse(Limit::AccountLocks, message.static_account_keys().len() as u64, MAX_ACCOUNT_LOCKS)?;
        refuse(Limit::Instructions, message.instructions().len() as u64, MAX_INSTRUCTIONS)?;
        refuse(Limit::LoadedData, u64::from(self.loaded_data_limit), MAX_LOADED_DATA)?;
        refuse(Limit::ComputeUnits, u64::from(self.compute_unit_limit), cost::MAX.0)?;
        refuse(Limit::TransactionLen, wire_len(message)? as u64, self.version.max_len() as u64)
    }
}

/// How many bytes of a chunk fit a transaction that holds `instructions` besides the chunk's `write`.
pub(super) fn room_for_chunk(
    payer: &Address,
    write: &chunk_buffer::Write,
    instructions: Vec<Instruction>,
    version: TransactionVersion,
) -> Result<usize, PlanError> {
    let mut builder = TransactionBuilder::new(Stage::Prepare);
    builder.instructions = instructions;
    // The length of a compact array of instruction data is written in as few bytes as it needs: ask with a full one.
    let probe = vec![0; version.max_len() / 4];
    builder
        .add(write.instruction(chunk_buffer::WriteArgs { offset: 0, data: &probe }), ComputeUnits::default());
    let used = builder.build(version, 0).wire_len(payer)? - probe.len();
    Ok(version.max_len().saturating_sub(used))
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
