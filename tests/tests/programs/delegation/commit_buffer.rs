use committor_localnet::{OWNER_PROGRAM_ID, owner_program};
use committor_sdk::{
    address, chunk_buffer,
    delegation::{self, DelegationError},
};
use committor_tests::{BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, RecordBytes, World, landed, pattern, refused};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;

const MAX_PAYLOAD_LEN: usize = 10 * 1024 * 1024 - 96 - 340;

#[test]
fn the_payload_becomes_the_accounts_state_and_the_record_says_so() {
    for len in [0, 1, 99, 100, 101, 3_000, 3_001, 9_000, 10_240, 10_340] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(10_340));
        let payload = pattern(len, 2);
        let buffer = world.sealed_buffer("next", &payload, 3_000);
        let before = (world.account(&buffer), world.lamports(&account));
        let expected = RecordBytes { nonce: 1, commit_id: 7, ..world.record_bytes(account) };
        let commit = world.commit_buffer(account, 1, 7, buffer);
        landed(world.send(&[commit]));
        assert_eq!(world.data(&account), payload);
        assert_eq!(world.data(&address::record(&account)), expected.data());
        assert_eq!((world.account(&buffer), world.lamports(&account)), before);
    }
}

#[test]
fn an_account_grows_by_10_240_bytes_at_once_and_by_more_after_grow() {
    for old_len in [0, 100, 10_144, 10_240] {
        for growth in [10_239, 10_240, 10_241, 20_480] {
            let mut world = World::new();
            let account = world.delegated(1, &pattern(old_len, 1));
            let payload = pattern(old_len + growth, 2);
            let buffer = world.forge_sealed("next", payload.clone());
            world.give(account, world.rent(payload.len()));
            let commit = world.commit_buffer(account, 1, 7, buffer);
            if growth > 10_240 {
                let outcome = world.send(std::slice::from_ref(&commit));
                refused(outcome, 0, DelegationError::TooMuchGrowth);
                let grow = world.grow(account, payload.len() as u32);
                landed(world.send(&[grow, commit]));
            } else {
                landed(world.send(&[commit]));
            }
            assert!(world.data(&account) == payload);
        }
    }
}

#[test]
fn growing_takes_the_rent_of_the_new_length_to_the_lamport() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(5_000, 2));
    let commit = world.commit_buffer(account, 1, 7, buffer);
    let missing = world.rent(5_000) - world.rent(100);
    let short = system::transfer(&world.payer, &account, missing - 1);
    refused(world.send(&[short, commit.clone()]), 1, DelegationError::NotRentExempt);
    let enough = system::transfer(&world.payer, &account, missing);
    landed(world.send(&[enough, commit]));
}

#[test]
fn accounts_of_any_size_are_committed_to_by_one_transaction() {
    for len in [871_520, MAX_PAYLOAD_LEN] {
        let mut world = World::new();
        let account = world.delegated(1, &[]);
        world.edit(account, |data| data.resize(len, 9));
        world.give(account, world.rent(len));
        let payload = pattern(len, 2);
        let buffer = world.forge_sealed("next", payload.clone());
        let commit = world.commit_buffer(account, 1, 7, buffer);
        landed(world.send(&[commit]));
        assert!(world.data(&account) == payload);
        // And shrunk to nothing by the next.
        let empty = world.forge_sealed("empty", Vec::new());
        let commit = world.commit_buffer(account, 2, 8, empty);
        landed(world.send(&[commit]));
        assert!(world.data(&account).is_empty());
    }
}

#[test]
fn twenty_accounts_are_committed_to_by_one_transaction() {
    let mut world = World::new();
    world.payer = world.authority;
    let commits: Vec<(Address, Instruction)> = (0..20)
        .map(|number| {
            let account = world.delegated(number, &pattern(10_000, 1));
            let buffer = world.forge_sealed(&number.to_string(), pattern(10_000, 2));
            (account, world.commit_buffer(account, 1, 7, buffer))
        })
        .collect();
    let instructions: Vec<Instruction> = commits.iter().map(|(_, commit)| commit.clone()).collect();
    landed(world.send(&instructions));
    for (account, _) in &commits {
        assert!(world.data(account) == pattern(10_000, 2));
    }
}

#[test]
fn one_buffer_serves_several_accounts() {
    let mut world = World::new();
    let accounts = [1, 2, 3].map(|number| world.delegated(number, &pattern(100, 1)));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let commits = accounts.map(|account| world.commit_buffer(account, 1, 7, buffer));
    landed(world.send(&commits));
    for account in &accounts {
        assert_eq!(world.data(account), pattern(100, 2));
    }
}

#[test]
fn uploading_sealing_committing_and_closing_share_a_transaction() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(1_500, 1));
    let payload = pattern(1_500, 2);
    let buffer = world.buffer_address("next");
    let mut instructions = world.create_buffer_instructions("next", 1_500, 1_500);
    instructions.extend([
        world.write(buffer, 0, &payload),
        world.seal(buffer, committor_sdk::digest::payload_digest(&payload)),
        world.commit_buffer(account, 1, 7, buffer),
        world.close(buffer, world.payer),
    ]);
    let before = world.lamports(&world.payer);
    let fee = landed(world.send(&instructions)).fee;
    assert_eq!(world.data(&account), payload);
    assert_eq!(world.account(&buffer), None);
    assert_eq!(world.lamports(&world.payer), before - fee);
}

#[test]
fn only_the_next_nonce_is_accepted_and_a_commit_that_landed_is_known() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    world.edit_record(&account, |record| record.nonce = 4);
    for nonce in [0, 3, 4, 6, u64::MAX] {
        let commit = world.commit_buffer(account, nonce, 7, buffer);
        refused(world.send(&[commit]), 0, DelegationError::WrongNonce);
    }
    let commit = world.commit_buffer(account, 5, 7, buffer);
    landed(world.send(std::slice::from_ref(&commit)));
    refused(world.send(&[commit]), 0, DelegationError::AlreadyApplied);
    // The way it came makes no difference.
    let inline = world.commit(account, 5, 7, &pattern(100, 2));
    refused(world.send(&[inline]), 0, DelegationError::AlreadyApplied);
    let other = world.commit_buffer(account, 5, 8, buffer);
    refused(world.send(&[other]), 0, DelegationError::WrongNonce);
}

#[test]
fn nothing_is_committed_while_a_state_is_staged() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let instructions = [world.stage(account, 1, 7, buffer), world.commit_buffer(account, 2, 8, buffer)];
    refused(world.send(&instructions), 1, DelegationError::AlreadyStaged);
}

/// The instructions that take a buffer, made for an account with nothing committed.
fn takers(world: &World, account: Address, buffer: Address) -> [Instruction; 2] {
    [world.commit_buffer(account, 1, 7, buffer), world.stage(account, 1, 7, buffer)]
}

#[test]
fn a_buffer_that_is_not_sealed_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let authority = world.authority;
    let buffers = [
        world.forge_buffer("empty", &BufferBytes::empty(authority, 100, 10)),
        world.forge_buffer("full", &BufferBytes::full(authority, pattern(100, 2), 10)),
        world.create_buffer("of nothing", 0, 10),
    ];
    for buffer in buffers {
        for instruction in takers(&world, account, buffer) {
            refused(world.send(&[instruction]), 0, DelegationError::BufferNotSealed);
        }
    }
}

#[test]
fn a_buffer_of_another_authority_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let honest = world.authority;
    world.authority = world.signer("stranger");
    let buffer = world.sealed_buffer("next", &pattern(100, 2), 100);
    world.authority = honest;
    for instruction in takers(&world, account, buffer) {
        refused(world.send(&[instruction]), 0, DelegationError::ForeignBuffer);
    }
}

#[test]
fn an_account_that_is_no_buffer_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let sealed = BufferBytes::sealed(world.authority, pattern(100, 2), 10);
    let data = sealed.data();
    let of_another_kind = [vec![1; 8], data[8..].to_vec()].concat();
    let cases = [
        (OWNER_PROGRAM_ID, data.clone()),
        (delegation::ID, data.clone()),
        (Address::default(), data.clone()),
        (chunk_buffer::ID, vec![0; data.len()]),
        (chunk_buffer::ID, of_another_kind),
        (chunk_buffer::ID, data[..95].to_vec()),
        (chunk_buffer::ID, Vec::new()),
        (chunk_buffer::ID, BufferBytes { version: 2, ..sealed.clone() }.data()),
    ];
    let buffer = world.buffer_address("next");
    for (owner, data) in cases {
        world.forge(buffer, owner, data);
        for instruction in takers(&world, account, buffer) {
            refused(world.send(&[instruction]), 0, DelegationError::NotABuffer);
        }
    }
    for other in [Address::new_from_array([9; 32]), owner_program::account(&world.payer, 7), chunk_buffer::ID]
    {
        for instruction in takers(&world, account, other) {
            refused(world.send(&[instruction]), 0, DelegationError::NotABuffer);
        }
    }
}

/// A delegated account's content is whatever its authority commits.
#[test]
fn a_delegated_account_with_the_content_of_a_buffer_is_no_buffer() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let sealed = BufferBytes::sealed(world.authority, pattern(100, 2), 10);
    let forgery = world.delegated(2, &sealed.data());
    for instruction in takers(&world, account, forgery) {
        refused(world.send(&[instruction]), 0, DelegationError::NotABuffer);
    }
}

#[test]
fn an_account_that_is_its_own_buffer_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let commit = world.commit_buffer(account, 1, 7, account);
    refused(world.send(&[commit]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
    let record = world.commit_buffer(account, 1, 7, address::record(&account));
    refused(world.send(&[record]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn a_buffer_closed_earlier_in_the_transaction_is_refused_revived_or_not() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.sealed_buffer("next", &pattern(100, 2), 100);
    let rent = world.lamports(&buffer);
    let close = world.close(buffer, world.payer);
    let revive = system::transfer(&world.payer, &buffer, rent);
    for instruction in takers(&world, account, buffer) {
        let outcome = world.send(&[close.clone(), instruction.clone()]);
        refused(outcome, 1, DelegationError::NotABuffer);
        let outcome = world.send(&[close.clone(), revive.clone(), instruction.clone()]);
        refused(outcome, 2, DelegationError::NotABuffer);

        let mut anew = vec![close.clone(), revive.clone()];
        anew.extend(world.create_buffer_instructions("next", 100, 100));
        anew.push(instruction);
        let last = anew.len() as u8 - 1;
        refused(world.send(&anew), last, DelegationError::BufferNotSealed);
    }
}
