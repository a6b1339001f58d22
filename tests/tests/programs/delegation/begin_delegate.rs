//! Only an owner program makes this call; here signatures that nobody verifies stand for it.

use committor_localnet::{OWNER_PROGRAM_ID, owner_program};
use committor_sdk::{
    address,
    delegation::{self, DelegationError},
};
use committor_tests::{
    CONSTRAINT_MUT, DELEGATED, DUPLICATE_MUTABLE_ACCOUNT, LAMPORTS, MAX_STATE_LEN, RECORD_LEN, RecordBytes,
    World, landed, pattern, read_only, refused, signed, unsigned,
};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;
use solana_system_interface::instruction as system;

fn begin_with(payer: Address, account: Address, seeds: &[u8]) -> Instruction {
    let accounts = delegation::BeginDelegate { payer, account, record: address::record(&account) };
    signed(&accounts.instruction(delegation::BeginDelegateArgs { seeds }), 1)
}

/// The call for the account of [`owned`].
fn begin(world: &World, payer: Address) -> Instruction {
    begin_with(payer, owner_program::account(&world.payer, 1), &world.seeds(1))
}

/// An account that the owner program owns and that seems to sign for itself.
fn owned(world: &mut World, state: &[u8]) -> Address {
    world.without_verification();
    world.own(1, state)
}

#[test]
fn the_state_is_copied_into_the_record_and_the_account_stays_as_it_is() {
    for len in [0, 1, 100, 9_991, 9_992] {
        let mut world = World::new();
        let account = owned(&mut world, &pattern(len, 1));
        let before = world.account(&account);
        let funder = world.signer("funder");
        landed(world.send(&[begin(&world, funder)]));
        let header = RecordBytes { owner_program: OWNER_PROGRAM_ID, ..RecordBytes::pending(account, funder) };
        let record = world.account(&address::record(&account)).unwrap();
        assert_eq!(record.data, [header.data(), pattern(len, 1)].concat());
        assert_eq!(record.owner, delegation::ID);
        assert_eq!(record.lamports, world.rent(RECORD_LEN + len));
        assert_eq!(world.lamports(&funder), LAMPORTS - record.lamports);
        assert_eq!(world.account(&account), before);
    }
}

#[test]
fn a_state_of_more_than_9_992_bytes_needs_a_reservation() {
    for len in [9_993, 10_240, 30_000] {
        let mut world = World::new();
        let account = owned(&mut world, &pattern(len, 1));
        let begin = begin(&world, world.payer);
        refused(world.send(std::slice::from_ref(&begin)), 0, DelegationError::RecordTooSmall);

        // The call itself adds 10,240 bytes and no more.
        let room = len.saturating_sub(10_240);
        if room > 0 {
            let short = world.reserve_instructions(account, RECORD_LEN + room - 1);
            landed(world.send(&short));
            refused(world.send(std::slice::from_ref(&begin)), 0, DelegationError::RecordTooSmall);
        }
        let mut enough = world.reserve_instructions(account, RECORD_LEN + room);
        enough.push(begin);
        landed(world.send(&enough));
        let record = world.account(&address::record(&account)).unwrap();
        assert!(record.data[RECORD_LEN..] == pattern(len, 1));
        assert_eq!(record.lamports, world.rent(RECORD_LEN + len));
    }
}

#[test]
fn a_second_call_copies_the_state_again() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let begin = begin(&world, world.payer);
    landed(world.send(std::slice::from_ref(&begin)));
    world.edit(account, |data| *data = pattern(90, 2));
    landed(world.send(&[begin]));
    assert_eq!(world.data(&address::record(&account))[RECORD_LEN..][..90], pattern(90, 2));
}

#[test]
fn a_record_to_whose_address_a_stranger_sent_lamports_is_made_all_the_same() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let record = address::record(&account);
    let stranger = world.signer("stranger");
    landed(world.send(&[system::transfer(&stranger, &record, world.rent(0))]));
    let begin = begin(&world, world.payer);
    landed(world.send(&[begin]));
    assert_eq!(world.lamports(&record), world.rent(RECORD_LEN + 100));
}

#[test]
fn an_account_of_the_system_program_is_refused() {
    let mut world = World::new();
    let account = world.signer("account");
    for seeds in [Vec::new(), world.seeds(1), account.as_ref().to_vec()] {
        let instruction = begin_with(world.payer, account, &seeds);
        refused(world.send(&[instruction]), 0, DelegationError::NotOwnersAddress);
    }
}

/// Everybody can make an account of a keypair and give it to an owner program, and then sign for it.
#[test]
fn an_account_of_a_keypair_is_refused() {
    let mut world = World::new();
    let account = world.signer("account");
    world.put(account, solana_account::Account::default());
    let rent = world.rent(100);
    let create = system::create_account(&world.payer, &account, rent, 100, &OWNER_PROGRAM_ID);
    landed(world.send(&[create]));
    assert_eq!(world.account(&account).unwrap().owner, OWNER_PROGRAM_ID);
    for seeds in [Vec::new(), world.seeds(1), account.as_ref().to_vec(), vec![1; 512]] {
        let instruction = begin_with(world.payer, account, &seeds);
        refused(world.send(&[instruction]), 0, DelegationError::NotOwnersAddress);
    }
    assert_eq!(world.account(&address::record(&account)), None);
}

/// Nor one whose address a key's owner chose by `create_with_seed`, should it ever sign.
#[test]
fn an_address_that_is_made_with_a_seed_is_refused() {
    let mut world = World::new();
    world.without_verification();
    let account = Address::create_with_seed(&world.payer, "seed", &OWNER_PROGRAM_ID).unwrap();
    world.forge(account, OWNER_PROGRAM_ID, pattern(100, 1));
    for seeds in [[world.payer.as_ref(), b"seed"].concat(), b"seed".to_vec()] {
        let instruction = begin_with(world.payer, account, &seeds);
        refused(world.send(&[instruction]), 0, DelegationError::NotOwnersAddress);
    }
}

#[test]
fn other_seeds_than_those_of_the_address_are_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let right = world.seeds(1);
    let mut other_bump = right.clone();
    *other_bump.last_mut().unwrap() ^= 1;
    let wrong = [
        Vec::new(),
        world.seeds(2),
        right[..right.len() - 1].to_vec(),
        right[1..].to_vec(),
        [right.as_slice(), &[0]].concat(),
        [right.as_slice(), OWNER_PROGRAM_ID.as_ref()].concat(),
        other_bump,
    ];
    for seeds in wrong {
        let instruction = begin_with(world.payer, account, &seeds);
        refused(world.send(&[instruction]), 0, DelegationError::NotOwnersAddress);
    }
    // Where one seed ends and the next begins is nowhere written, and makes no difference.
    landed(world.send(&[begin_with(world.payer, account, &right)]));
}

#[test]
fn an_account_that_another_program_owns_by_now_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    for owner in [committor_sdk::chunk_buffer::ID, Address::default(), Address::new_from_array([9; 32])] {
        world.forge(account, owner, pattern(100, 1));
        let begin = begin(&world, world.payer);
        refused(world.send(&[begin]), 0, DelegationError::NotOwnersAddress);
    }
}

#[test]
fn a_reserved_record_is_taken_over_with_what_rent_it_lacks() {
    // Room reserved, length of the state.
    for (room, len) in [(0, 0), (0, 100), (0, 10_240), (100, 100), (100, 10_340), (500, 100), (9_992, 1)] {
        let mut world = World::new();
        let account = owned(&mut world, &pattern(len, 1));
        let record = address::record(&account);
        let (funder, stranger) = (world.signer("funder"), world.signer("stranger"));
        let accounts = delegation::Reserve { payer: stranger, account, record };
        landed(world.send(&[accounts.instruction(delegation::ReserveArgs { len: room as u32 })]));
        let begin = begin(&world, funder);
        landed(world.send(&[begin]));

        let header = RecordBytes { owner_program: OWNER_PROGRAM_ID, ..RecordBytes::pending(account, funder) };
        let mut expected = [header.data(), pattern(len, 1)].concat();
        expected.resize(RECORD_LEN + room.max(len), 0);
        assert!(world.data(&record) == expected, "{room} {len}");
        let rent = world.rent(RECORD_LEN + room.max(len));
        assert_eq!(world.lamports(&record), rent);
        assert_eq!(world.lamports(&stranger), LAMPORTS - world.rent(RECORD_LEN + room));
        assert_eq!(world.lamports(&funder), LAMPORTS - (rent - world.rent(RECORD_LEN + room)));
    }
}

#[test]
fn a_state_that_no_record_can_hold_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &[]);
    let record = address::record(&account);
    for len in [MAX_STATE_LEN, MAX_STATE_LEN + 1] {
        world.forge(account, OWNER_PROGRAM_ID, pattern(len, 1));
        let mut data = RecordBytes::pending(account, world.payer).data();
        data.resize(RECORD_LEN + MAX_STATE_LEN, 0);
        world.forge(record, delegation::ID, data);
        let begin = begin(&world, world.payer);
        if len > MAX_STATE_LEN {
            refused(world.send(&[begin]), 0, DelegationError::TooLarge);
        } else {
            landed(world.send(&[begin]));
            assert!(world.data(&record)[RECORD_LEN..] == pattern(len, 1));
        }
    }
}

#[test]
fn a_delegated_account_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &[]);
    let instruction = begin(&world, world.payer);
    world.forge(account, delegation::ID, pattern(100, 1));
    refused(world.send(std::slice::from_ref(&instruction)), 0, DelegationError::AlreadyDelegated);
    // By its record alone, too.
    world.forge(account, OWNER_PROGRAM_ID, pattern(100, 1));
    let record = RecordBytes { state: DELEGATED, ..RecordBytes::pending(account, world.payer) };
    world.forge(address::record(&account), delegation::ID, [record.data(), vec![0; 100]].concat());
    refused(world.send(&[instruction]), 0, DelegationError::AlreadyDelegated);
}

#[test]
fn an_address_that_is_not_the_records_is_refused() {
    let mut world = World::new();
    owned(&mut world, &pattern(100, 1));
    let other = world.own(2, &pattern(100, 1));
    let mut instruction = begin(&world, world.payer);
    instruction.accounts[2].pubkey = address::record(&other);
    refused(world.send(std::slice::from_ref(&instruction)), 0, DelegationError::RecordMismatch);
    let reserve = world.reserve(other, 100);
    landed(world.send(&[reserve]));
    refused(world.send(&[instruction]), 0, DelegationError::RecordMismatch);
}

#[test]
fn every_signature_and_write_permission_is_required() {
    let mut world = World::new();
    owned(&mut world, &pattern(100, 1));
    let funder = world.signer("funder");
    let whole = begin(&world, funder);
    // The framework checks both flags of a writable signer at once and calls it a missing signature.
    for weaker in [unsigned(&whole, 0), read_only(&whole, 0)] {
        refused(world.send(&[weaker]), 0, InstructionError::MissingRequiredSignature);
    }
    refused(world.send(&[read_only(&whole, 2)]), 0, InstructionError::Custom(CONSTRAINT_MUT));
    refused(world.send(&[unsigned(&whole, 1)]), 0, DelegationError::AccountNotSigner);
    landed(world.send(&[whole]));
}

#[test]
fn an_account_that_is_its_own_record_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(300, 1));
    let mut instruction = begin(&world, world.payer);
    instruction.accounts[2].pubkey = account;
    refused(world.send(&[instruction]), 0, InstructionError::Custom(DUPLICATE_MUTABLE_ACCOUNT));
}

#[test]
fn another_system_program_is_refused() {
    let mut world = World::new();
    owned(&mut world, &pattern(100, 1));
    let mut instruction = begin(&world, world.payer);
    instruction.accounts[3].pubkey = OWNER_PROGRAM_ID;
    refused(world.send(&[instruction]), 0, InstructionError::IncorrectProgramId);
}

#[test]
fn a_layout_of_another_version_is_refused() {
    let mut world = World::new();
    let account = owned(&mut world, &pattern(100, 1));
    let begin = begin(&world, world.payer);
    landed(world.send(std::slice::from_ref(&begin)));
    world.edit_record(&account, |record| record.version = 0);
    refused(world.send(&[begin]), 0, DelegationError::UnknownVersion);
}
