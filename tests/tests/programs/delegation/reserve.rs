use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address,
    delegation::{self, DelegationError},
};
use committor_tests::{
    DUPLICATE_MUTABLE_ACCOUNT, LAMPORTS, RECORD_LEN, RecordBytes, World, every_flag_is_required, landed,
    pattern, refused, refused_as_a_whole,
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;
use solana_transaction_error::TransactionError;

fn reserve(payer: Address, account: Address, len: u32) -> Instruction {
    let accounts = delegation::Reserve { payer, account, record: address::record(&account) };
    accounts.instruction(delegation::ReserveArgs { len })
}

#[test]
fn the_first_call_makes_a_pending_record_of_up_to_10_240_bytes() {
    let lens = [(0, 248), (1, 249), (9_991, 10_239), (9_992, 10_240), (9_993, 10_240), (30_000, 10_240)];
    for (len, record_len) in lens {
        let mut world = World::new();
        let account = world.own(1, &pattern(100, 1));
        let funder = world.signer("funder");
        landed(world.send(&[reserve(funder, account, len)]));
        let record = world.account(&address::record(&account)).unwrap();
        let mut expected = RecordBytes::pending(account, funder).data();
        expected.resize(record_len, 0);
        assert_eq!(record.data, expected);
        assert_eq!(record.owner, delegation::ID);
        assert_eq!(record.lamports, world.rent(record_len));
        assert_eq!(world.lamports(&funder), LAMPORTS - record.lamports);
        assert_eq!(world.data(&account), pattern(100, 1));
    }
}

#[test]
fn each_further_call_adds_up_to_10_240_bytes() {
    let mut world = World::new();
    let account = world.own(1, &pattern(30_000, 1));
    let record = address::record(&account);
    world.give(record, world.rent(40_000));
    for expected in [10_240, 20_480, 30_248, 30_248] {
        let reserve = world.reserve(account, 30_000);
        landed(world.send(&[reserve]));
        assert_eq!(world.data(&record).len(), expected);
    }
    // Never less than there is.
    for len in [0, 100, 29_999] {
        let reserve = world.reserve(account, len);
        landed(world.send(&[reserve]));
        assert_eq!(world.data(&record).len(), 30_248);
    }
    let mut expected = RecordBytes::pending(account, world.payer).data();
    expected.resize(30_248, 0);
    assert_eq!(world.data(&record), expected);
}

#[test]
fn several_calls_share_a_transaction() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100_000, 1));
    let instructions = world.reserve_instructions(account, RECORD_LEN + 100_000);
    assert_eq!(instructions.len(), 1 + 10);
    landed(world.send(&instructions));
    assert_eq!(world.data(&address::record(&account)).len(), RECORD_LEN + 100_000);
}

#[test]
fn a_record_to_whose_address_a_stranger_sent_lamports_is_made_all_the_same() {
    let rent = World::new().rent(RECORD_LEN + 100);
    for lamports in [World::new().rent(0), rent, 2 * rent] {
        let mut world = World::new();
        let account = world.own(1, &pattern(100, 1));
        let (funder, stranger) = (world.signer("funder"), world.signer("stranger"));
        let record = address::record(&account);
        landed(world.send(&[system::transfer(&stranger, &record, lamports)]));
        landed(world.send(&[reserve(funder, account, 100)]));
        let mut expected = RecordBytes::pending(account, funder).data();
        expected.resize(RECORD_LEN + 100, 0);
        assert_eq!(world.data(&record), expected);
        assert_eq!(world.lamports(&record), rent.max(lamports));
        assert_eq!(world.lamports(&funder), LAMPORTS - rent.saturating_sub(lamports));
    }
}

#[test]
fn growing_a_record_without_its_rent_is_refused_by_the_chain() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let first = world.reserve(account, 100);
    landed(world.send(&[first]));
    let second = world.reserve(account, 101);
    let missing = TransactionError::InsufficientFundsForRent { account_index: 1 };
    refused_as_a_whole(world.send(&[second]), missing);
}

#[test]
fn a_record_is_as_long_as_an_account_can_be_and_no_longer() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let most = 10 * 1024 * 1024 - RECORD_LEN as u32;
    for len in [most + 1, u32::MAX] {
        let reserve = world.reserve(account, len);
        refused(world.send(&[reserve]), 0, DelegationError::TooLarge);
    }
    let mut record = RecordBytes::pending(account, world.payer).data();
    record.resize(10 * 1024 * 1024 - 1, 0);
    world.forge(address::record(&account), delegation::ID, record);
    world.give(address::record(&account), 6_960);
    let reserve = world.reserve(account, most);
    landed(world.send(&[reserve]));
    assert_eq!(world.data(&address::record(&account)).len(), 10 * 1024 * 1024);
}

#[test]
fn the_record_of_a_delegated_account_is_for_its_authority_to_grow() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let record = address::record(&account);
    let before = world.data(&record);
    world.give(record, world.rent(20_000));
    for payer in [world.payer, world.signer("stranger")] {
        let outcome = world.send(&[reserve(payer, account, 200)]);
        refused(outcome, 0, DelegationError::WrongAuthority);
    }
    landed(world.send(&[reserve(world.authority, account, 200)]));
    assert_eq!(world.data(&record), [before, vec![0; 200]].concat());
    // And it can be committed to as before.
    let commit = world.commit(account, 1, 7, &pattern(100, 2));
    landed(world.send(&[commit]));
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let funder = world.signer("funder");
    every_flag_is_required(&mut world, &reserve(funder, account, 100));
}

#[test]
fn an_address_that_is_not_the_records_is_refused() {
    let mut world = World::new();
    let (account, other) = (world.own(1, &pattern(100, 1)), world.own(2, &pattern(100, 1)));
    let mut instruction = world.reserve(account, 100);
    for record in [address::record(&other), Address::new_from_array([9; 32])] {
        instruction.accounts[2].pubkey = record;
        let outcome = world.send(std::slice::from_ref(&instruction));
        refused(outcome, 0, DelegationError::RecordMismatch);
    }
    let reserve_other = world.reserve(other, 100);
    landed(world.send(&[reserve_other]));
    instruction.accounts[2].pubkey = address::record(&other);
    refused(world.send(std::slice::from_ref(&instruction)), 0, DelegationError::RecordMismatch);
    // A delegated account, which has the records' owner.
    let delegated = world.delegated(3, &pattern(300, 1));
    instruction.accounts[2].pubkey = delegated;
    refused(world.send(&[instruction]), 0, DelegationError::RecordMismatch);
}

#[test]
fn an_account_that_is_its_own_record_is_refused() {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(300, 1));
    let mut instruction = reserve(world.authority, account, 100);
    instruction.accounts[2].pubkey = account;
    refused(world.send(&[instruction]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn another_system_program_is_refused() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let mut instruction = world.reserve(account, 100);
    instruction.accounts[3].pubkey = OWNER_PROGRAM_ID;
    refused(world.send(&[instruction]), 0, InstructionError::IncorrectProgramId);
}

#[test]
fn a_layout_of_another_version_is_refused() {
    let mut world = World::new();
    let account = world.own(1, &pattern(100, 1));
    let reserve = world.reserve(account, 100);
    landed(world.send(std::slice::from_ref(&reserve)));
    world.edit_record(&account, |record| record.version = 2);
    refused(world.send(&[reserve]), 0, DelegationError::UnknownVersion);
}
