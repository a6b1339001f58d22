//! Transactions of every strategy, good ones and bad ones, on the accounts that they need.

use committor_sdk::{chunk_buffer, delegation, digest::payload_digest};
use committor_tests::{Format, Limits, PATCH, RECORD_LEN, World, patch, pattern, unsigned};
use solana_account::Account;
use solana_address::Address;
use solana_address_lookup_table_interface::state::{AddressLookupTable, LookupTableMeta};
use solana_instruction::{AccountMeta, Instruction};
use solana_message::{AddressLookupTableAccount, VersionedMessage, v0};
use solana_sdk_ids::{address_lookup_table, ed25519_program, system_program, sysvar};
use solana_signature::Signature;
use solana_system_interface::instruction as system;
use solana_transaction::versioned::VersionedTransaction;

use crate::bank::programs;

/// The slot in which all accounts were delegated.
const SESSION: u64 = 7;

/// A named transaction.
pub type Case = (String, VersionedTransaction);

/// All accounts, and the transactions.
pub fn cases() -> (Vec<(Address, Account)>, Vec<Case>) {
    let mut world = World::new();
    let lens = [0, 1, 40, 300, 900, 2_000, 5_000, 9_000, 20_000];
    let targets: Vec<Target> =
        lens.iter().enumerate().map(|(at, len)| target(&mut world, at, *len)).collect();
    let stranger = world.signer("stranger");
    let mut cases = Vec::new();
    for target in &targets {
        let instructions = instructions(&world, target, stranger);
        for (at, (name, instructions)) in instructions.into_iter().enumerate() {
            // Each in both formats where it fits.
            for format in [Format::V0, Format::V1] {
                let name = format!("{name} of {} bytes, {format:?}", target.len);
                if let Some(case) = case(&world, format, Limits::MAX, &instructions) {
                    cases.push((name.clone(), case));
                }
                if (at + target.len) % 5 == 0 {
                    let starved = Limits { compute_units: 700, ..Limits::MAX };
                    let case = case(&world, format, starved, &instructions);
                    cases.extend(case.map(|case| (format!("{name}, starved"), case)));
                }
            }
        }
    }
    let table = Address::new_from_array([0x77; 32]);
    cases.extend(others(&world, &targets, stranger, table));
    let mut accounts = programs();
    for owner in
        [chunk_buffer::ID, delegation::ID, committor_localnet::programs::OWNER_PROGRAM_ID, system_program::ID]
    {
        accounts.extend(world.accounts_of(&owner));
    }
    let listed: Vec<Address> = targets.iter().flat_map(|target| [target.account, target.record]).collect();
    accounts.push((table, lookup_table(&listed)));
    (accounts, cases)
}

/// An account with everything that can be done to it.
struct Target {
    account: Address,
    record: Address,
    /// Staged already.
    staged: Address,
    staged_buffer: Address,
    number: u64,
    len: usize,
    sealed: Address,
    sealed_patch: Address,
    open: Address,
    /// Does not exist.
    fresh: String,
}

fn target(world: &mut World, at: usize, len: usize) -> Target {
    let number = 10 * at as u64;
    let mut delegated = |number| {
        let account = world.delegated(number, &pattern(len, 1));
        world.edit_record(&account, |record| record.session = SESSION);
        account
    };
    let (account, staged) = (delegated(number), delegated(number + 1));
    let sealed = world.forge_sealed(&format!("sealed{at}"), pattern(len, 2));
    let change = if len > 0 { patch(len, &[(0, &[9])]) } else { patch(0, &[]) };
    let sealed_patch = world.forge_sealed(&format!("patch{at}"), change);
    let staged_buffer = world.forge_sealed(&format!("staged{at}"), pattern(len, 3));
    let stage = world.stage(staged, 1, 77, staged_buffer);
    committor_tests::landed(world.send(&[stage]));
    let open = world.create_buffer(&format!("open{at}"), 3_000, 1_000);
    let fill = world.write(open, 1_000, &pattern(1_000, 5));
    committor_tests::landed(world.send(&[fill]));
    Target {
        record: committor_sdk::address::record(&account),
        account,
        staged,
        staged_buffer,
        number,
        len,
        sealed,
        sealed_patch,
        open,
        fresh: format!("fresh{at}"),
    }
}

fn instructions(world: &World, target: &Target, stranger: Address) -> Vec<(&'static str, Vec<Instruction>)> {
    let Target { account, staged, staged_buffer, number, len, sealed, sealed_patch, open, .. } = *target;
    let payer = world.payer;
    let state = pattern(len, 2);
    let inline = |nonce, state: &[u8]| vec![world.commit(account, nonce, 5, state)];
    let by_stranger = |mut instruction: Instruction| {
        instruction.accounts[0] = AccountMeta::new(stranger, true);
        vec![instruction]
    };
    let create = world.create_buffer_instructions(&target.fresh, len, 1_000);
    let fresh = world.buffer_address(&target.fresh);
    let mut whole = create.clone();
    whole.extend(
        state.chunks(1_000).enumerate().map(|(at, chunk)| world.write(fresh, 1_000 * at as u32, chunk)),
    );
    whole.push(world.seal(fresh, payload_digest(&state)));
    let mut through_it = whole.clone();
    through_it.extend([world.commit_buffer(account, 1, 5, fresh), world.close(fresh, payer)]);
    vec![
        ("commit", inline(1, &state)),
        ("commit of a shorter state", inline(1, &state[..len / 2])),
        ("commit of a longer state without its rent", inline(1, &pattern(len + 50, 2))),
        (
            "commit of a longer state",
            [vec![system::transfer(&payer, &account, 10_000_000)], inline(1, &pattern(len + 50, 2))].concat(),
        ),
        ("commit with another nonce", inline(3, &state)),
        ("commit by a stranger", by_stranger(world.commit(account, 1, 5, &state))),
        ("commit that nobody signed", vec![unsigned(&world.commit(account, 1, 5, &state), 0)]),
        (
            "two commits",
            vec![world.commit(account, 1, 5, &pattern(10, 1)), world.commit(account, 2, 6, &pattern(20, 1))],
        ),
        (
            "patch",
            vec![world.commit_patch(account, 1, 5, &patch(len, if len > 1 { &[(1, b"x")] } else { &[] }))],
        ),
        ("patch beyond the end", vec![world.commit_patch(account, 1, 5, &patch(len, &[(len as u32, b"x")]))]),
        ("commit of a buffer", vec![world.commit_buffer(account, 1, 5, sealed)]),
        (
            "commit of a buffer that is a patch",
            vec![world.commit_buffer_as(PATCH, account, 1, 5, sealed_patch)],
        ),
        ("commit of an open buffer", vec![world.commit_buffer(account, 1, 5, open)]),
        (
            "commit of a buffer, and its end",
            vec![world.commit_buffer(account, 1, 5, sealed), world.close(sealed, payer)],
        ),
        ("stage", vec![world.stage(account, 1, 5, sealed)]),
        ("stage over what is staged", vec![world.stage(staged, 2, 5, sealed)]),
        ("unstage", vec![world.unstage(staged)]),
        ("finalize", vec![world.finalize(staged, staged_buffer)]),
        (
            "finalize, and its end",
            vec![world.finalize(staged, staged_buffer), world.close(staged_buffer, payer)],
        ),
        ("finalize of another buffer", vec![world.finalize(staged, sealed)]),
        ("undelegate", vec![world.undelegate(account)]),
        ("undelegate through a buffer", vec![world.undelegate_buffer(account, 1, 5, sealed)]),
        ("undelegate what is staged", vec![world.undelegate(staged)]),
        ("delegate again", vec![world.delegate(number)]),
        (
            "reserve",
            vec![
                system::transfer(&payer, &target.record, 90_000_000),
                world.reserve(account, (RECORD_LEN + len) as u32),
            ],
        ),
        (
            "grow",
            vec![system::transfer(&payer, &account, 90_000_000), world.grow(account, len as u32 + 5_000)],
        ),
        ("withdraw", vec![world.withdraw(account, stranger, 1)]),
        ("another authority", vec![world.set_authority(account, stranger)]),
        ("create a buffer", create),
        ("a buffer in one go", whole),
        ("a bundle in one go", through_it),
        ("write", vec![world.write(open, 0, &pattern(1_000, 1))]),
        ("write between chunks", vec![world.write(open, 500, &pattern(1_000, 1))]),
        ("write beyond the end", vec![world.write(open, 3_000, &pattern(1_000, 1))]),
        (
            "seal",
            vec![
                world
                    .seal(open, payload_digest(&[&[0; 1_000][..], &pattern(1_000, 5), &[0; 1_000]].concat())),
            ],
        ),
        ("seal with another digest", vec![world.seal(open, [4; 32])]),
        (
            "longer buffer",
            vec![system::transfer(&payer, &open, 50_000_000), world.resize(open, 8_000, payer)],
        ),
        ("shorter buffer", vec![world.resize(open, 500, payer)]),
        ("close", vec![world.close(open, stranger)]),
        ("another buffer authority", vec![world.set_buffer_authority(open, stranger)]),
    ]
}

/// Transactions that are not about one account.
fn others(world: &World, targets: &[Target], stranger: Address, table: Address) -> Vec<Case> {
    let payer = world.payer;
    let nowhere = Address::new_from_array([3; 32]);
    let call = |program_id| vec![Instruction { program_id, accounts: vec![], data: vec![1, 2, 3] }];
    let commits = |targets: &[Target]| -> Vec<Instruction> {
        targets.iter().take(4).map(|target| world.commit(target.account, 1, 5, &pattern(30, 8))).collect()
    };
    let small = Limits { loaded_data: 90_000, ..Limits::MAX };
    let all = [
        ("four commits", Limits::MAX, commits(targets)),
        ("a transfer", Limits::MAX, vec![system::transfer(&payer, &nowhere, 5_000_000_000)]),
        ("a transfer that leaves too little", Limits::MAX, vec![system::transfer(&payer, &nowhere, 1)]),
        ("a transfer of more than there is", Limits::MAX, vec![system::transfer(&payer, &nowhere, u64::MAX)]),
        (
            "a transfer of somebody else's",
            Limits::MAX,
            vec![system::transfer(&stranger, &nowhere, 5_000_000_000)],
        ),
        ("no instruction", Limits::MAX, vec![]),
        (
            "a sysvar",
            Limits::MAX,
            vec![with_accounts(
                world.undelegate(targets[2].account),
                &[sysvar::clock::ID, sysvar::slot_hashes::ID, sysvar::instructions::ID],
            )],
        ),
        (
            "an account that is not there",
            Limits::MAX,
            vec![with_accounts(world.undelegate(targets[2].account), &[nowhere])],
        ),
        ("a program that is not there", Limits::MAX, call(nowhere)),
        ("a program that is none", Limits::MAX, call(targets[1].account)),
        ("signatures that are checked before", Limits::MAX, call(ed25519_program::ID)),
        ("a nonce", Limits::MAX, vec![system::advance_nonce_account(&nowhere, &payer)]),
        ("more than may be loaded", small, commits(targets)),
    ];
    let formats = [Format::V0, Format::V1];
    let built = all.into_iter().flat_map(|(name, limits, instructions)| {
        formats
            .map(|format| Some((format!("{name}, {format:?}"), case(world, format, limits, &instructions)?)))
    });
    let mut built: Vec<Case> = built.flatten().collect();
    let tables = [AddressLookupTableAccount {
        key: table,
        addresses: targets.iter().flat_map(|target| [target.account, target.record]).collect(),
    }];
    let message = v0::Message::try_compile(&payer, &commits(targets), &tables, Default::default()).unwrap();
    assert_eq!(message.address_table_lookups.len(), 1);
    built.push((
        "commits with a lookup table".to_owned(),
        unsigned_transaction(VersionedMessage::V0(message)),
    ));
    let missing = [AddressLookupTableAccount { key: nowhere, addresses: tables[0].addresses.clone() }];
    let message =
        v0::Message::try_compile(&payer, &call(delegation::ID), &missing, Default::default()).unwrap();
    built.push(("a call with nothing".to_owned(), unsigned_transaction(VersionedMessage::V0(message))));
    // Nobody who could pay.
    let message = v0::Message::try_compile(&nowhere, &call(delegation::ID), &[], Default::default()).unwrap();
    built.push(("a payer that is not there".to_owned(), unsigned_transaction(VersionedMessage::V0(message))));
    built
}

fn case(
    world: &World,
    format: Format,
    limits: Limits,
    instructions: &[Instruction],
) -> Option<VersionedTransaction> {
    let transaction = world.unsigned_transaction(format, limits, instructions);
    let fits =
        wincode::serialized_size(&transaction).unwrap() <= if format == Format::V0 { 1_232 } else { 4_096 };
    fits.then_some(transaction)
}

fn unsigned_transaction(message: VersionedMessage) -> VersionedTransaction {
    let signatures = vec![Signature::default(); message.header().num_required_signatures.into()];
    VersionedTransaction { signatures, message }
}

fn with_accounts(mut instruction: Instruction, more: &[Address]) -> Instruction {
    instruction.accounts.extend(more.iter().map(|key| AccountMeta::new_readonly(*key, false)));
    instruction
}

pub fn lookup_table(addresses: &[Address]) -> Account {
    let table = AddressLookupTable { meta: LookupTableMeta::default(), addresses: addresses.into() };
    let data = table.serialize_for_tests().unwrap();
    Account {
        lamports: 1_000_000_000,
        data,
        owner: address_lookup_table::ID,
        executable: false,
        rent_epoch: u64::MAX,
    }
}
