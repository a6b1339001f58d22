//! What every instruction on a delegated account checks of the account and its record.

use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address,
    delegation::{self, DelegationError},
    digest::payload_digest,
};
use committor_tests::{
    DUPLICATE_MUTABLE_ACCOUNT, NO_ADDRESS, PENDING, RECORD_LEN, RecordBytes, World, every_flag_is_required,
    landed, pattern, refused,
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;

/// All instructions on a delegated account, by name, made for one that has 100 bytes and nothing committed or staged.
fn instructions(world: &World, account: Address, buffer: Address) -> Vec<(&'static str, Instruction)> {
    vec![
        ("grow", world.grow(account, 100)),
        ("commit", world.commit(account, 1, 7, &[1; 100])),
        ("commit_buffer", world.commit_buffer(account, 1, 7, buffer)),
        ("stage", world.stage(account, 1, 7, buffer)),
        ("finalize", world.finalize(account, buffer)),
        ("undelegate", world.undelegate(account)),
        ("undelegate_buffer", world.undelegate_buffer(account, 1, 7, buffer)),
        ("commit_patch", world.commit_patch(account, 1, 7, &100u32.to_le_bytes())),
        ("unstage", world.unstage(account)),
        ("set_authority", world.set_authority(account, Address::new_from_array([5; 32]))),
        ("withdraw", world.withdraw(account, Address::new_from_array([9; 32]), 0)),
    ]
}

/// Index of the record among the accounts of each of them.
const RECORD: usize = 2;

fn world() -> (World, Address, Address) {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    (world, account, buffer)
}

fn each_is_refused(world: &mut World, all: Vec<(&'static str, Instruction)>, error: DelegationError) {
    for (name, instruction) in all {
        println!("{name}");
        refused(world.send(&[instruction]), 0, error);
    }
}

#[test]
fn nobody_but_the_authority_does_anything() {
    let (mut world, account, buffer) = world();
    world.authority = world.signer("stranger");
    let all = instructions(&world, account, buffer);
    each_is_refused(&mut world, all, DelegationError::WrongAuthority);
}

#[test]
fn the_record_of_another_account_is_refused() {
    let (mut world, account, buffer) = world();
    let other = world.delegated(2, &pattern(100, 3));
    let mut all = instructions(&world, account, buffer);
    for (_, instruction) in &mut all {
        instruction.accounts[RECORD].pubkey = address::record(&other);
    }
    each_is_refused(&mut world, all, DelegationError::RecordMismatch);
}

#[test]
fn an_account_that_is_only_reserved_for_is_refused() {
    let (mut world, _, buffer) = world();
    let account = world.own(2, &pattern(100, 1));
    let reserve = world.reserve(account, 100);
    landed(world.send(&[reserve]));
    let all = instructions(&world, account, buffer);
    each_is_refused(&mut world, all, DelegationError::NotDelegated);
}

#[test]
fn a_layout_of_another_version_is_refused() {
    for version in [0, 2, 0xff] {
        let (mut world, account, buffer) = world();
        world.edit_record(&account, |record| record.version = version);
        let all = instructions(&world, account, buffer);
        each_is_refused(&mut world, all, DelegationError::UnknownVersion);
    }
}

#[test]
fn an_account_that_the_program_does_not_own_is_refused() {
    let (mut world, account, buffer) = world();
    world.edit_record(&account, |record| {
        (record.staged_buffer, record.staged_nonce) = (buffer, 1);
        record.staged_digest = payload_digest(&pattern(100, 2));
        record.staged_len = 100;
    });
    world.own(1, &pattern(100, 1));
    let finalize = world.finalize(account, buffer);
    refused(world.send(&[finalize]), 0, DelegationError::NotOwned);
    world.edit_record(&account, |record| {
        (record.staged_buffer, record.staged_nonce) = (NO_ADDRESS, 0);
    });
    for (name, instruction) in instructions(&world, account, buffer) {
        if !matches!(name, "stage" | "finalize" | "unstage" | "set_authority") {
            println!("{name}");
            refused(world.send(&[instruction]), 0, DelegationError::NotOwned);
        }
    }
}

#[test]
fn an_account_that_is_no_record_is_refused() {
    let (mut world, account, buffer) = world();
    let record = address::record(&account);
    let whole = world.data(&record);
    let of_another_kind = [vec![1; 8], whole[8..].to_vec()].concat();
    let cases = [
        (OWNER_PROGRAM_ID, whole.clone(), InstructionError::IllegalOwner),
        (committor_sdk::chunk_buffer::ID, whole.clone(), InstructionError::IllegalOwner),
        (delegation::ID, of_another_kind, InstructionError::InvalidAccountData),
        (delegation::ID, whole[..RECORD_LEN - 1].to_vec(), InstructionError::AccountDataTooSmall),
        (delegation::ID, Vec::new(), InstructionError::AccountDataTooSmall),
    ];
    for (owner, data, error) in cases {
        world.forge(record, owner, data);
        for (name, instruction) in instructions(&world, account, buffer) {
            println!("{name}");
            let outcome = world.send(&[instruction]);
            match name {
                "undelegate" | "undelegate_buffer" => refused(outcome, 0, DelegationError::RecordMismatch),
                _ => refused(outcome, 0, error.clone()),
            }
        }
    }
}

#[test]
fn an_account_that_is_its_own_record_is_refused() {
    let (mut world, account, buffer) = world();
    for (name, mut instruction) in instructions(&world, account, buffer) {
        println!("{name}");
        instruction.accounts[RECORD].pubkey = account;
        let outcome = world.send(&[instruction]);
        refused(outcome, 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
    }
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let names = {
        let (world, account, buffer) = world();
        instructions(&world, account, buffer).into_iter().map(|(name, _)| name)
    };
    for wanted in names {
        println!("{wanted}");
        let (mut world, account, buffer) = world();
        // The fee payer would be writable whatever the instruction says.
        let rent_payer = world.signer("rent payer");
        world.edit_record(&account, |record| record.rent_payer = rent_payer);
        if matches!(wanted, "finalize" | "unstage") {
            let stage = world.stage(account, 1, 7, buffer);
            landed(world.send(&[stage]));
        }
        let all = instructions(&world, account, buffer);
        let (_, mut instruction) = all.into_iter().find(|(name, _)| *name == wanted).unwrap();
        if matches!(wanted, "undelegate" | "undelegate_buffer") {
            instruction.accounts[4].pubkey = rent_payer;
        }
        every_flag_is_required(&mut world, &instruction);
    }
}

#[test]
fn a_record_is_at_the_address_that_the_sdk_derives() {
    let (world, account, _) = world();
    assert_eq!(world.data(&address::record(&account)), world.record_bytes(account).data());
}

#[test]
fn malformed_instruction_data_is_refused() {
    let (mut world, account, buffer) = world();
    for (name, whole) in instructions(&world, account, buffer) {
        for len in 0..whole.data.len() {
            println!("{name}: {len} bytes");
            let mut cut = whole.clone();
            cut.data.truncate(len);
            refused(world.send(&[cut]), 0, InstructionError::InvalidInstructionData);
        }
    }
    let mut unknown = world.grow(account, 100);
    for discriminator in [0, 15, 0xff] {
        unknown.data[0] = discriminator;
        let outcome = world.send(std::slice::from_ref(&unknown));
        refused(outcome, 0, InstructionError::InvalidInstructionData);
    }
}

/// A delegated account belongs to the same program as the records, and its content is whatever its authority commits.
#[test]
fn a_delegated_account_with_the_content_of_a_record_is_no_record() {
    let (mut world, victim, _) = world();
    let attacker = world.signer("attacker");
    let honest = std::mem::replace(&mut world.authority, attacker);
    let forged = RecordBytes { authority: attacker, ..world.record_bytes(victim) };
    let forgery = world.delegated(2, &forged.data());
    let buffer = world.forge_sealed("next", pattern(100, 9));
    let mut all = instructions(&world, victim, buffer);
    all.push((
        "reserve",
        delegation::Reserve { payer: attacker, account: victim, record: forgery }
            .instruction(delegation::ReserveArgs { len: 200 }),
    ));
    for (name, mut instruction) in all {
        println!("{name}");
        instruction.accounts[RECORD].pubkey = forgery;
        let outcome = world.send(&[instruction]);
        refused(outcome, 0, DelegationError::RecordMismatch);
    }
    // Whatever bump it names.
    let mut commit = world.commit(victim, 1, 7, &[9; 100]);
    commit.accounts[RECORD].pubkey = forgery;
    for bump in 0..=u8::MAX {
        world.edit(forgery, |data| data[RECORD_LEN - 6] = bump);
        assert_eq!(delegation::Delegation::read(&world.data(&forgery)).unwrap().bump, bump);
        let outcome = world.send(std::slice::from_ref(&commit));
        refused(outcome, 0, DelegationError::RecordMismatch);
    }
    world.authority = honest;
    assert_eq!(world.data(&victim), pattern(100, 1));
    assert_ne!(world.record(&victim).state, PENDING);
}
