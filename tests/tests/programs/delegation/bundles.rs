//! How much fits one transaction of the v1 format: 64 instructions, 64 addresses, and 64 instructions counting those that
//! programs call.

use committor_sdk::digest::payload_digest;
use committor_tests::{BufferBytes, World, landed, pattern, refused, refused_as_a_whole};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;
use solana_transaction_error::TransactionError;

const LEN: usize = 1_000;

/// What one account of a bundle takes.
struct Part {
    account: Address,
    buffer: Address,
    rent: Instruction,
    seal: Instruction,
    commit: Instruction,
    undelegate: Instruction,
    close: Instruction,
}

/// A world whose payer is the authority, with delegated accounts of `len` bytes and a buffer of [`LEN`] for each.
fn bundle(accounts: u64, len: usize, sealed: bool) -> (World, Vec<Part>) {
    let mut world = World::new();
    world.payer = world.authority;
    let part = |world: &mut World, number: u64| {
        let account = world.delegated(number, &pattern(len, 1));
        let payload = pattern(LEN, number as u8 + 2);
        let digest = payload_digest(&payload);
        let make = if sealed { BufferBytes::sealed } else { BufferBytes::full };
        let buffer = make(world.authority, payload, LEN as u32);
        let buffer = world.forge_buffer(&number.to_string(), &buffer);
        let missing = world.rent(LEN) - world.rent(len);
        Part {
            account,
            buffer,
            rent: system::transfer(&world.payer, &account, missing),
            seal: world.seal(buffer, digest),
            commit: world.commit_buffer(account, 1, 7, buffer),
            undelegate: world.undelegate_buffer(account, 1, 7, buffer),
            close: world.close(buffer, world.payer),
        }
    };
    let parts = (0..accounts).map(|number| part(&mut world, number)).collect();
    (world, parts)
}

/// The instructions of all parts, one account after the other.
fn all<const N: usize>(parts: &[Part], of_one: impl Fn(&Part) -> [&Instruction; N]) -> Vec<Instruction> {
    parts.iter().flat_map(|part| of_one(part).map(Clone::clone)).collect()
}

#[track_caller]
fn is_done(world: &World, parts: &[Part]) {
    for (number, part) in parts.iter().enumerate() {
        assert_eq!(world.data(&part.account), pattern(LEN, number as u8 + 2));
        assert_eq!(world.lamports(&part.account), world.rent(LEN));
        assert_eq!(world.account(&part.buffer), None);
    }
}

#[test]
fn twenty_accounts_are_sealed_for_committed_to_and_cleaned_up_after() {
    let (mut world, parts) = bundle(20, LEN, false);
    let instructions = all(&parts, |part| [&part.seal, &part.commit, &part.close]);
    assert_eq!(instructions.len(), 60);
    landed(world.send(&instructions));
    is_done(&world, &parts);
}

#[test]
fn twenty_accounts_that_grow_are_committed_to_if_their_buffers_were_sealed_before() {
    let (mut world, parts) = bundle(20, 100, true);
    let instructions = all(&parts, |part| [&part.rent, &part.commit, &part.close]);
    assert_eq!(instructions.len(), 60);
    landed(world.send(&instructions));
    is_done(&world, &parts);
}

#[test]
fn of_accounts_that_grow_sixteen_are_sealed_for_committed_to_and_cleaned_up_after() {
    for accounts in [16, 17] {
        let (mut world, parts) = bundle(accounts, 100, false);
        let instructions = all(&parts, |part| [&part.rent, &part.seal, &part.commit, &part.close]);
        let outcome = world.send(&instructions);
        if accounts == 16 {
            assert_eq!(instructions.len(), 64);
            landed(outcome);
            is_done(&world, &parts);
        } else {
            refused_as_a_whole(outcome, TransactionError::SanitizeFailure);
        }
    }
}

/// The authority, two programs, and three addresses per account.
#[test]
fn twenty_one_accounts_have_too_many_addresses() {
    let (mut world, parts) = bundle(21, LEN, true);
    let commits = all(&parts, |part| [&part.commit]);
    // Without the chunk-buffer program among the addresses it is still one too many: 65.
    refused_as_a_whole(world.send(&commits), TransactionError::SanitizeFailure);
    let cleaned_up = all(&parts, |part| [&part.commit, &part.close]);
    refused_as_a_whole(world.send(&cleaned_up), TransactionError::SanitizeFailure);
    landed(world.send(&commits[..20]));
}

#[test]
fn twenty_accounts_come_back_with_their_buffers() {
    let (mut world, parts) = bundle(20, LEN, true);
    let before = world.lamports(&world.payer);
    let rents: u64 = parts.iter().map(|part| world.lamports(&part.buffer)).sum();
    let instructions = all(&parts, |part| [&part.undelegate, &part.close]);
    let fee = landed(world.send(&instructions)).fee;
    is_done(&world, &parts);
    let records = 20 * world.rent(committor_tests::RECORD_LEN);
    assert_eq!(world.lamports(&world.payer), before - fee + rents + records);
}

/// The call of the owner program counts as an instruction.
#[test]
fn of_accounts_that_grow_or_are_sealed_for_sixteen_come_back_with_their_buffers() {
    for grows in [true, false] {
        for accounts in [16, 17] {
            let (mut world, parts) = bundle(accounts, if grows { 100 } else { LEN }, grows);
            let instructions = all(&parts, |part| {
                [if grows { &part.rent } else { &part.seal }, &part.undelegate, &part.close]
            });
            let outcome = world.send(&instructions);
            if accounts == 16 {
                landed(outcome);
                is_done(&world, &parts);
            } else {
                // 17 × 4 = 68, of which the 65th is the call.
                let error = InstructionError::MaxInstructionTraceLengthExceeded;
                let last = outcome.as_ref().err().and_then(|failure| failure.instruction);
                refused(outcome, last.unwrap_or_default(), error);
            }
        }
    }
}

/// Nothing lands unless all of it does.
#[test]
fn one_account_with_a_wrong_nonce_stops_all_others() {
    let (mut world, mut parts) = bundle(20, LEN, false);
    let last = parts.len() - 1;
    parts[last].commit = world.commit_buffer(parts[last].account, 2, 7, parts[last].buffer);
    let before: Vec<_> =
        parts.iter().map(|part| (world.account(&part.account), world.account(&part.buffer))).collect();
    let instructions = all(&parts, |part| [&part.seal, &part.commit, &part.close]);
    refused(world.send(&instructions), 58, committor_sdk::delegation::DelegationError::WrongNonce);
    let after: Vec<_> =
        parts.iter().map(|part| (world.account(&part.account), world.account(&part.buffer))).collect();
    assert!(before == after);
}
