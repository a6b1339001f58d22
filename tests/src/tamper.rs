//! Instructions with one thing about them changed.

use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;

use crate::{CONSTRAINT_MUT, World, landed, refused};

/// The instruction without the signature of its account `index`.
pub fn unsigned(instruction: &Instruction, index: usize) -> Instruction {
    let mut changed = instruction.clone();
    changed.accounts[index].is_signer = false;
    changed
}

/// The instruction with the signature of its account `index`.
pub fn signed(instruction: &Instruction, index: usize) -> Instruction {
    let mut changed = instruction.clone();
    changed.accounts[index].is_signer = true;
    changed
}

/// The instruction with its account `index` read-only.
pub fn read_only(instruction: &Instruction, index: usize) -> Instruction {
    let mut changed = instruction.clone();
    changed.accounts[index].is_writable = false;
    changed
}

/// Demands that the instruction is refused without any one of the signatures and write permissions that it names, and
/// lands with all of them.
///
/// No account of it may be the fee payer, which signs and is writable whatever an instruction says.
///
/// # Panics
/// If it is not so.
#[track_caller]
pub fn every_flag_is_required(world: &mut World, instruction: &Instruction) {
    for (index, meta) in instruction.accounts.iter().enumerate() {
        assert_ne!(meta.pubkey, world.payer, "account {index} is the fee payer");
        if meta.is_signer {
            let outcome = world.send(&[unsigned(instruction, index)]);
            refused(outcome, 0, InstructionError::MissingRequiredSignature);
        }
        if meta.is_writable {
            // The framework checks both flags of a writable signer at once and calls it a missing signature.
            let error = match meta.is_signer {
                true => InstructionError::MissingRequiredSignature,
                false => InstructionError::Custom(CONSTRAINT_MUT),
            };
            refused(world.send(&[read_only(instruction, index)]), 0, error);
        }
    }
    landed(world.send(std::slice::from_ref(instruction)));
}
