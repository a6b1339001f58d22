use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address, chunk_buffer,
    delegation::{self, DelegationError},
    digest::payload_digest,
};
use committor_tests::{
    BufferBytes, DUPLICATE_MUTABLE_ACCOUNT, RECORD_LEN, World, landed, patch, pattern, refused,
};
use solana_address::Address;
use solana_instruction::AccountMeta;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;

/// The longest payload in chunks of 3,856 bytes.
const MAX_PAYLOAD_LEN: usize = 10 * 1024 * 1024 - 96 - 340;

/// A delegated account of 100 bytes and a sealed buffer of as many.
fn world() -> (World, Address, Address) {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("last", pattern(100, 2));
    (world, account, buffer)
}

#[test]
fn the_owner_program_gets_the_account_back_with_the_payload() {
    for len in [0, 1, 99, 100, 101, 1_024, 9_992, 9_993, 10_240, 10_340] {
        let mut world = World::new();
        let account = world.delegated(1, &pattern(100, 1));
        world.give(account, world.rent(20_000));
        let payload = pattern(len, 2);
        let buffer = world.forge_sealed("last", payload.clone());
        let (lamports, before) = (world.lamports(&account), world.account(&buffer));
        let (payer, record) = (world.lamports(&world.payer), address::record(&account));

        let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
        let fee = landed(world.send(&[undelegate])).fee;
        let after = world.account(&account).unwrap();
        assert_eq!((after.owner, after.lamports), (OWNER_PROGRAM_ID, lamports));
        assert!(after.data == payload);
        assert_eq!(world.account(&buffer), before);
        assert_eq!(world.account(&record), None);
        assert_eq!(world.lamports(&world.payer), payer - fee + world.rent(RECORD_LEN));
    }
}

#[test]
fn an_account_of_any_length_comes_back_without_reservations() {
    for len in [10_240, 10_241, 30_000, 871_520, MAX_PAYLOAD_LEN] {
        let mut world = World::new();
        let account = world.delegated(1, &[]);
        world.edit(account, |data| *data = pattern(len, 1));
        world.give(account, world.rent(len));
        let buffer = world.forge_sealed("last", pattern(len, 2));
        let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
        landed(world.send(&[undelegate]));
        assert!(world.data(&account) == pattern(len, 2));
        assert_eq!(world.account(&account).unwrap().owner, OWNER_PROGRAM_ID);
    }
}

#[test]
fn an_account_that_grew_for_it_comes_back_in_the_same_transaction() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("last", pattern(30_000, 2));
    let rent = world.rent(30_000) - world.rent(100);
    let buffer_rent = world.lamports(&buffer);
    let mut instructions = vec![system::transfer(&world.payer, &account, rent)];
    instructions.extend(vec![world.grow(account, 30_000); 2]);
    instructions.push(world.undelegate_buffer(account, 1, 7, buffer));
    instructions.push(world.close(buffer, world.payer));
    let before = world.lamports(&world.payer);
    let fee = landed(world.send(&instructions)).fee;
    assert!(world.data(&account) == pattern(30_000, 2));
    assert_eq!(world.account(&account).unwrap().owner, OWNER_PROGRAM_ID);
    assert_eq!(world.lamports(&world.payer), before - fee - rent + buffer_rent + world.rent(RECORD_LEN));
}

#[test]
fn sealing_undelegating_and_closing_share_a_transaction() {
    let (mut world, account, _) = world();
    let buffer = world.create_buffer("next", 100, 100);
    world.fill(buffer, &pattern(100, 3));
    let instructions = [
        world.seal(buffer, payload_digest(&pattern(100, 3))),
        world.undelegate_buffer(account, 1, 7, buffer),
        world.close(buffer, world.payer),
    ];
    landed(world.send(&instructions));
    assert_eq!(world.data(&account), pattern(100, 3));
}

#[test]
fn an_account_grows_by_10_240_bytes_at_once_and_no_more() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    world.give(account, world.rent(20_000));
    let buffer = world.forge_sealed("last", pattern(10_341, 2));
    let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
    refused(world.send(std::slice::from_ref(&undelegate)), 0, DelegationError::TooMuchGrowth);
    let grow = world.grow(account, 101);
    landed(world.send(&[grow, undelegate]));
    assert!(world.data(&account) == pattern(10_341, 2));
}

#[test]
fn growing_takes_the_rent_of_the_new_length_to_the_lamport() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("last", pattern(101, 2));
    let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
    let missing = world.rent(101) - world.rent(100);
    let short = system::transfer(&world.payer, &account, missing - 1);
    refused(world.send(&[short, undelegate.clone()]), 1, DelegationError::NotRentExempt);
    let enough = system::transfer(&world.payer, &account, missing);
    landed(world.send(&[enough, undelegate]));
    assert_eq!(world.lamports(&account), world.rent(101));
}

#[test]
fn only_the_next_nonce_is_accepted() {
    let (mut world, account, buffer) = world();
    world.edit_record(&account, |record| (record.nonce, record.commit_id) = (4, 40));
    for nonce in [0, 3, 4, 6, u64::MAX] {
        let undelegate = world.undelegate_buffer(account, nonce, 7, buffer);
        refused(world.send(&[undelegate]), 0, DelegationError::WrongNonce);
    }
    let applied = world.undelegate_buffer(account, 4, 40, buffer);
    refused(world.send(&[applied]), 0, DelegationError::AlreadyApplied);
    let next = world.undelegate_buffer(account, 5, 7, buffer);
    landed(world.send(&[next]));
}

#[test]
fn another_session_is_refused() {
    let (mut world, account, buffer) = world();
    let session = world.session(account);
    for other in [0, session - 1, session + 1, u64::MAX] {
        let accounts = delegation::UndelegateBuffer {
            authority: world.authority,
            account,
            record: address::record(&account),
            owner_program: OWNER_PROGRAM_ID,
            rent_payer: world.payer,
            buffer,
        };
        if other != session {
            let args = delegation::UndelegateBufferArgs { session: other, nonce: 1, commit_id: 7 };
            refused(world.send(&[accounts.instruction(args)]), 0, DelegationError::WrongSession);
        }
    }
}

#[test]
fn the_slot_of_the_delegation_is_too_early() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let buffer = world.forge_sealed("last", pattern(100, 2));
    landed(world.send(&[world.delegate(1)]));
    let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
    refused(world.send(std::slice::from_ref(&undelegate)), 0, DelegationError::SameSlot);
    world.next_slot();
    landed(world.send(&[undelegate]));
}

#[test]
fn an_account_for_which_something_is_staged_is_kept() {
    let (mut world, account, buffer) = world();
    let stage = world.stage(account, 1, 7, buffer);
    landed(world.send(&[stage]));
    for nonce in [1, 2] {
        let undelegate = world.undelegate_buffer(account, nonce, 7, buffer);
        refused(world.send(&[undelegate]), 0, DelegationError::AlreadyStaged);
    }
}

#[test]
fn a_buffer_that_is_open_foreign_or_none_is_refused() {
    let (mut world, account, _) = world();
    let stranger = world.signer("stranger");
    let sealed = BufferBytes::sealed(world.authority, pattern(100, 2), 10);
    let cases = [
        (BufferBytes::empty(world.authority, 100, 10), DelegationError::BufferNotSealed),
        (BufferBytes::full(world.authority, pattern(100, 2), 10), DelegationError::BufferNotSealed),
        (BufferBytes::sealed(stranger, pattern(100, 2), 10), DelegationError::ForeignBuffer),
        (BufferBytes { version: 2, ..sealed.clone() }, DelegationError::NotABuffer),
    ];
    for (bytes, error) in cases {
        let buffer = world.forge_buffer("case", &bytes);
        let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
        refused(world.send(&[undelegate]), 0, error);
    }
    // What looks like one: a delegated account, an account of nobody, a program.
    let forgery = world.delegated(2, &sealed.data());
    let nobody = Address::new_from_array([9; 32]);
    world.forge(nobody, Address::default(), sealed.data());
    for buffer in [forgery, nobody, chunk_buffer::ID, OWNER_PROGRAM_ID] {
        let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
        refused(world.send(&[undelegate]), 0, DelegationError::NotABuffer);
    }
    for buffer in [account, address::record(&account)] {
        let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
        let error = InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT);
        refused(world.send(&[undelegate]), 0, error);
    }
    assert_eq!(world.data(&account), pattern(100, 1));
}

#[test]
fn a_buffer_that_was_closed_is_refused() {
    let (mut world, account, buffer) = world();
    let instructions = [world.close(buffer, world.payer), world.undelegate_buffer(account, 1, 7, buffer)];
    refused(world.send(&instructions), 1, DelegationError::NotABuffer);
}

#[test]
fn a_payload_is_always_a_state() {
    let (mut world, account, _) = world();
    let payload = patch(100, &[(0, &[200])]);
    let buffer = world.forge_sealed("patch", payload.clone());
    let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
    landed(world.send(&[undelegate]));
    assert_eq!(world.data(&account), payload);
}

#[test]
fn another_owner_program_and_another_receiver_of_the_rent_are_refused() {
    let (mut world, account, buffer) = world();
    let whole = world.undelegate_buffer(account, 1, 7, buffer);
    for program in [chunk_buffer::ID, delegation::ID, Address::new_from_array([9; 32])] {
        let mut other = whole.clone();
        other.accounts[3].pubkey = program;
        refused(world.send(&[other]), 0, DelegationError::WrongOwnerProgram);
    }
    for receiver in [world.authority, Address::new_from_array([9; 32])] {
        let mut other = whole.clone();
        other.accounts[4].pubkey = receiver;
        refused(world.send(&[other]), 0, DelegationError::WrongRentReceiver);
    }
    landed(world.send(&[whole]));
}

#[test]
fn an_owner_program_that_fails_loses_nothing_and_the_account_comes_back_later() {
    let (mut world, account, buffer) = world();
    world.give(account, world.rent(1_000));
    // A program that knows no such instruction.
    world.edit_record(&account, |record| record.owner_program = chunk_buffer::ID);
    let longer = world.forge_sealed("longer", pattern(500, 3));
    let all = [account, address::record(&account), longer];
    let before = all.map(|address| world.account(&address));
    let mut undelegate = world.undelegate_buffer(account, 1, 7, longer);
    undelegate.accounts[3].pubkey = chunk_buffer::ID;
    refused(world.send(&[undelegate]), 0, InstructionError::InvalidInstructionData);
    assert_eq!(all.map(|address| world.account(&address)), before);

    // Commits go on, and once the program is what it was, the account comes back.
    let commit = world.commit_buffer(account, 1, 8, longer);
    landed(world.send(&[commit]));
    assert_eq!(world.data(&account), pattern(500, 3));
    world.edit_record(&account, |record| record.owner_program = OWNER_PROGRAM_ID);
    let commit = world.commit_buffer(account, 2, 9, buffer);
    let undelegate = world.undelegate(account);
    landed(world.send(&[commit, undelegate]));
    assert_eq!(world.data(&account), pattern(100, 2));
    assert_eq!(world.account(&account).unwrap().owner, OWNER_PROGRAM_ID);
}

#[test]
fn further_accounts_are_accepted_signers_among_them() {
    let (mut world, account, buffer) = world();
    let mut undelegate = world.undelegate_buffer(account, 1, 7, buffer);
    undelegate.accounts.extend([
        AccountMeta::new_readonly(buffer, false),
        AccountMeta::new(Address::new_from_array([9; 32]), false),
        AccountMeta::new(world.authority, true),
        AccountMeta::new(world.payer, true),
    ]);
    landed(world.send(&[undelegate]));
    assert_eq!(world.data(&account), pattern(100, 2));
}

#[test]
fn an_account_that_came_back_is_delegated_anew_and_starts_over() {
    let (mut world, account, buffer) = world();
    let undelegate = world.undelegate_buffer(account, 1, 7, buffer);
    landed(world.send(&[undelegate.clone(), world.delegate(1)]));
    let record = world.record_bytes(account);
    assert_eq!(world.data(&address::record(&account)), record.data());
    world.next_slot();
    refused(world.send(&[undelegate]), 0, DelegationError::WrongSession);
    let again = world.undelegate_buffer(account, 1, 7, buffer);
    landed(world.send(&[again]));
    assert_eq!(world.data(&account), pattern(100, 2));
}
