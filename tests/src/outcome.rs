//! What became of a transaction.

use committor_sdk::{ProgramError, chunk_buffer::ChunkBufferError, delegation::DelegationError};
use litesvm::types::{FailedTransactionMetadata, TransactionMetadata};
use solana_address::Address;
use solana_instruction_error::InstructionError;
use solana_transaction_error::TransactionError;

/// Custom code of the framework: an account is not writable, but must be.
pub const CONSTRAINT_MUT: u32 = 2000;
/// Custom code of the framework: one account in two places, one of them writable.
pub const DUPLICATE_MUTABLE_ACCOUNT: u32 = 2040;

/// A transaction that landed.
#[derive(Clone, Debug)]
pub struct Landed {
    /// What its instructions used.
    pub compute_units: u64,
    /// What its payer was charged for it, in lamports.
    pub fee: u64,
}

/// A transaction that failed, and so had no effect; if it ran, its payer was charged the fee.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Index of the top-level instruction that failed; `None` if the transaction as a whole was refused.
    pub instruction: Option<u8>,
    /// Why.
    pub reason: Reason,
    /// The program's log.
    pub logs: Vec<String>,
}

/// Why a transaction failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One of the two programs returned an error of its own.
    Program(ProgramError),
    /// Another error of an instruction.
    Instruction(InstructionError),
    /// An error of no single instruction.
    Transaction(TransactionError),
}

/// What became of a transaction.
pub type Outcome = Result<Landed, Failure>;

impl From<ChunkBufferError> for Reason {
    fn from(error: ChunkBufferError) -> Self {
        Self::Program(ProgramError::ChunkBuffer(error))
    }
}

impl From<DelegationError> for Reason {
    fn from(error: DelegationError) -> Self {
        Self::Program(ProgramError::Delegation(error))
    }
}

impl From<InstructionError> for Reason {
    fn from(error: InstructionError) -> Self {
        Self::Instruction(error)
    }
}

impl From<TransactionMetadata> for Landed {
    fn from(meta: TransactionMetadata) -> Self {
        Self { compute_units: meta.compute_units_consumed, fee: meta.fee }
    }
}

impl From<FailedTransactionMetadata> for Failure {
    fn from(failed: FailedTransactionMetadata) -> Self {
        let logs = failed.meta.logs;
        let (instruction, reason) = match failed.err {
            TransactionError::InstructionError(index, error) => (Some(index), decode(error, &logs)),
            error => (None, Reason::Transaction(error)),
        };
        Self { instruction, reason, logs }
    }
}

fn decode(error: InstructionError, logs: &[String]) -> Reason {
    let InstructionError::Custom(code) = error else { return Reason::Instruction(error) };
    let decoded = failed_program(logs).and_then(|program| ProgramError::decode(&program, code));
    decoded.map_or(Reason::Instruction(error), Reason::Program)
}

/// The program whose error it is. An error of a called program is that of its callers too, so the first to fail counts.
fn failed_program(logs: &[String]) -> Option<Address> {
    logs.iter().find_map(|line| line.strip_prefix("Program ")?.split_once(" failed: ")?.0.parse().ok())
}

/// Takes what landed.
///
/// # Panics
/// If the transaction failed.
#[track_caller]
pub fn landed(outcome: Outcome) -> Landed {
    match outcome {
        Ok(landed) => landed,
        Err(failure) => panic!("the transaction failed: {failure:#?}"),
    }
}

/// Demands that the top-level instruction with this index failed, for this reason.
///
/// # Panics
/// If it did not.
#[track_caller]
pub fn refused(outcome: Outcome, instruction: u8, reason: impl Into<Reason>) {
    expect(outcome, Some(instruction), reason.into());
}

/// Demands that the transaction as a whole was refused, for this reason.
///
/// # Panics
/// If it was not.
#[track_caller]
pub fn refused_as_a_whole(outcome: Outcome, reason: TransactionError) {
    expect(outcome, None, Reason::Transaction(reason));
}

#[track_caller]
fn expect(outcome: Outcome, instruction: Option<u8>, reason: Reason) {
    match outcome {
        Ok(_) => panic!("the transaction landed; expected {reason:?} of instruction {instruction:?}"),
        Err(failure) => assert_eq!(
            (&failure.instruction, &failure.reason),
            (&instruction, &reason),
            "the transaction failed otherwise: {:#?}",
            failure.logs
        ),
    }
}
