use committor_sdk::{
    address,
    delegation::{self, DelegationError},
};
use committor_tests::{RECORD_LEN, RecordBytes, World, landed, patch, pattern, refused};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_instruction_error::InstructionError;

fn world() -> (World, Address, Address) {
    let mut world = World::new();
    let account = world.delegated(1, &pattern(100, 1));
    let heir = world.signer("heir");
    (world, account, heir)
}

#[test]
fn the_authority_changes_and_nothing_else() {
    let (mut world, account, heir) = world();
    let commit = world.commit(account, 1, 7, &pattern(100, 2));
    landed(world.send(&[commit]));
    let before = (world.account(&account), world.lamports(&address::record(&account)));
    let expected = RecordBytes { authority: heir, nonce: 1, commit_id: 7, ..world.record_bytes(account) };
    let set_authority = world.set_authority(account, heir);
    landed(world.send(&[set_authority]));
    assert_eq!(world.data(&address::record(&account)), expected.data());
    assert_eq!((world.account(&account), world.lamports(&address::record(&account))), before);
}

#[test]
fn the_old_authority_does_nothing_any_more() {
    let (mut world, account, heir) = world();
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let accounts = delegation::Reserve { payer: world.authority, account, record: address::record(&account) };
    let instructions = [
        world.commit(account, 1, 7, &pattern(100, 2)),
        world.commit_patch(account, 1, 7, &patch(100, &[])),
        world.commit_buffer(account, 1, 7, buffer),
        world.stage(account, 1, 7, buffer),
        world.finalize(account, buffer),
        world.unstage(account),
        world.grow(account, 100),
        world.withdraw(account, world.payer, 0),
        world.set_authority(account, world.authority),
        world.undelegate(account),
        world.undelegate_buffer(account, 1, 7, buffer),
        accounts.instruction(delegation::ReserveArgs { len: 100 }),
    ];
    let set_authority = world.set_authority(account, heir);
    for instruction in &instructions {
        // Not even in the same transaction.
        let outcome = world.send(&[set_authority.clone(), instruction.clone()]);
        refused(outcome, 1, DelegationError::WrongAuthority);
    }
    landed(world.send(&[set_authority]));
    for instruction in instructions {
        refused(world.send(&[instruction]), 0, DelegationError::WrongAuthority);
    }
}

#[test]
fn the_new_authority_does_everything() {
    let (mut world, account, heir) = world();
    let old = world.authority;
    let set_authority = world.set_authority(account, heir);
    landed(world.send(&[set_authority]));
    world.authority = heir;
    world.give(account, world.rent(200));
    let buffer = world.sealed_buffer("next", &pattern(100, 2), 100);
    let payer = world.lamports(&world.payer);
    let instructions = [
        world.commit(account, 1, 1, &pattern(100, 3)),
        world.commit_patch(account, 2, 2, &patch(100, &[(0, &[9])])),
        world.commit_buffer(account, 3, 3, buffer),
        world.stage(account, 4, 4, buffer),
        world.unstage(account),
        world.stage(account, 4, 4, buffer),
        world.finalize(account, buffer),
        world.grow(account, 200),
        world.withdraw(account, old, world.lamports(&account) - world.rent(200)),
        world.set_authority(account, old),
    ];
    let fee = landed(world.send(&instructions)).fee;
    world.authority = old;
    let undelegate = world.undelegate(account);
    let fee = fee + landed(world.send(&[undelegate])).fee;
    assert_eq!(world.data(&account), [pattern(100, 2), vec![0; 100]].concat());
    // The record's rent goes to who paid it, whoever the authority was.
    assert_eq!(world.lamports(&world.payer), payer - fee + world.rent(RECORD_LEN));
}

#[test]
fn the_session_and_the_nonces_go_on() {
    let (mut world, account, heir) = world();
    let commit = world.commit(account, 1, 7, &pattern(100, 2));
    let set_authority = world.set_authority(account, heir);
    landed(world.send(&[commit, set_authority]));
    world.authority = heir;
    let again = world.commit(account, 1, 7, &pattern(100, 2));
    refused(world.send(&[again]), 0, DelegationError::AlreadyApplied);
    let wrong = world.commit(account, 1, 8, &pattern(100, 2));
    refused(world.send(&[wrong]), 0, DelegationError::WrongNonce);
    let next = world.commit(account, 2, 8, &pattern(100, 3));
    landed(world.send(&[next]));
}

#[test]
fn a_buffer_of_the_old_authority_has_to_be_handed_on_too() {
    let (mut world, account, heir) = world();
    let buffer = world.sealed_buffer("next", &pattern(100, 2), 100);
    let hand_on: [Instruction; 2] =
        [world.set_authority(account, heir), world.set_buffer_authority(buffer, heir)];
    let [account_only, buffer_too] = hand_on;
    landed(world.send(&[account_only]));
    let old = std::mem::replace(&mut world.authority, heir);
    let takers = [
        world.commit_buffer(account, 1, 7, buffer),
        world.stage(account, 1, 7, buffer),
        world.undelegate_buffer(account, 1, 7, buffer),
    ];
    for taker in takers.clone() {
        refused(world.send(&[taker]), 0, DelegationError::ForeignBuffer);
    }
    landed(world.send(&[buffer_too]));
    let [commit, ..] = takers;
    landed(world.send(&[commit]));
    assert_eq!(world.data(&account), pattern(100, 2));
    assert_ne!(old, heir);
}

#[test]
fn nobody_can_be_the_authority_of_address_zero() {
    let (mut world, account, _) = world();
    let set_authority = world.set_authority(account, Address::default());
    refused(world.send(&[set_authority]), 0, DelegationError::ZeroAuthority);
}

/// What the old authority staged lies in a buffer of its own.
#[test]
fn nothing_may_be_staged() {
    let (mut world, account, heir) = world();
    let buffer = world.forge_sealed("next", pattern(100, 2));
    let stage = world.stage(account, 1, 7, buffer);
    landed(world.send(&[stage]));
    let set_authority = world.set_authority(account, heir);
    refused(world.send(std::slice::from_ref(&set_authority)), 0, DelegationError::AlreadyStaged);
    let unstage = world.unstage(account);
    landed(world.send(&[unstage, set_authority]));
    assert_eq!(world.record(&account).authority, heir);
}

#[test]
fn the_authority_can_stay_who_it_is() {
    let (mut world, account, _) = world();
    let before = world.account(&address::record(&account));
    let set_authority = world.set_authority(account, world.authority);
    landed(world.send(&[set_authority]));
    assert_eq!(world.account(&address::record(&account)), before);
}

#[test]
fn a_new_authority_of_less_than_32_bytes_is_refused() {
    let (mut world, account, heir) = world();
    let whole = world.set_authority(account, heir);
    for len in 0..whole.data.len() {
        let mut cut = whole.clone();
        cut.data.truncate(len);
        refused(world.send(&[cut]), 0, InstructionError::InvalidInstructionData);
    }
}
