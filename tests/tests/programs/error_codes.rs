//! Every error that a program can return is one that a transaction can run into.

use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::{
    address,
    chunk_buffer::{self, ChunkBufferError},
    delegation::{self, DelegationError},
};
use committor_tests::{BufferBytes, Outcome, World, landed, patch, pattern, refused, signed};
use solana_address::Address;
use solana_instruction::Instruction;

/// Runs into an error, by the last instruction of the transaction whose outcome it returns.
type Way = fn(&mut World) -> Outcome;

fn init(world: &mut World, seed: &[u8], chunk_size: u32, account_len: usize, owner: Address) -> Outcome {
    let buffer = world.buffer_address("buffer");
    world.forge(buffer, owner, vec![0; account_len]);
    let args = chunk_buffer::InitArgs { seed, payload_len: 10, chunk_size };
    let init = chunk_buffer::Init { authority: world.authority, buffer }.instruction(args);
    world.send(&[init])
}

fn write(world: &mut World, offset: u32, len: usize) -> Outcome {
    let buffer = world.create_buffer("buffer", 20, 10);
    let write = world.write(buffer, offset, &pattern(len, 1));
    world.send(&[write])
}

fn seal(world: &mut World, buffer: BufferBytes) -> Outcome {
    let buffer = world.forge_buffer("buffer", &buffer);
    let seal = world.seal(buffer, [0; 32]);
    world.send(&[seal])
}

fn resize(world: &mut World, payload_len: u32) -> Outcome {
    let buffer = world.create_buffer("buffer", 20, 10);
    let resize = world.resize(buffer, payload_len, world.payer);
    world.send(&[resize])
}

/// What an account with a keypair, owned by `owner`, can do in the place of an owner program.
fn second_half(world: &mut World, owner: Address) -> Outcome {
    let account = world.signer("account");
    let reserve = world.reserve(account, 100);
    landed(world.send(&[reserve]));
    world.forge(account, owner, vec![0; 100]);
    let accounts = delegation::Delegate { payer: world.payer, account, record: address::record(&account) };
    let args = delegation::DelegateArgs { authority: world.authority };
    world.send(&[signed(&accounts.instruction(args), 1)])
}

fn first_half(world: &mut World, owner: Address, signs: bool) -> Outcome {
    let account = world.signer("account");
    world.forge(account, owner, vec![0; 100]);
    let accounts =
        delegation::BeginDelegate { payer: world.payer, account, record: address::record(&account) };
    let begin = accounts.instruction(delegation::BeginDelegateArgs { seeds: &world.seeds(1) });
    world.send(&[if signs { signed(&begin, 1) } else { begin }])
}

/// An instruction on a delegated account of 100 bytes, and on a sealed buffer of as many.
fn on_delegated(world: &mut World, make: fn(&World, Address, Address) -> Instruction) -> Outcome {
    let account = world.delegated(1, &pattern(100, 1));
    let buffer = world.forge_sealed("buffer", pattern(100, 2));
    let instruction = make(world, account, buffer);
    world.send(&[instruction])
}

const CHUNK_BUFFER: &[(ChunkBufferError, Way)] = &[
    (ChunkBufferError::WrongAuthority, |world| {
        let buffer = world.create_buffer("buffer", 10, 10);
        world.authority = world.signer("stranger");
        let close = world.close(buffer, world.payer);
        world.send(&[close])
    }),
    (ChunkBufferError::SeedTooLong, |world| init(world, &[b'x'; 33], 10, 107, chunk_buffer::ID)),
    (ChunkBufferError::AddressMismatch, |world| init(world, b"other", 10, 107, chunk_buffer::ID)),
    (ChunkBufferError::AlreadyInitialized, |world| {
        let buffer = world.create_buffer("buffer", 10, 10);
        let args = chunk_buffer::InitArgs { seed: b"buffer", payload_len: 10, chunk_size: 10 };
        let init = chunk_buffer::Init { authority: world.authority, buffer }.instruction(args);
        world.send(&[init])
    }),
    (ChunkBufferError::ZeroChunkSize, |world| init(world, b"buffer", 0, 107, chunk_buffer::ID)),
    (ChunkBufferError::LengthMismatch, |world| init(world, b"buffer", 10, 108, chunk_buffer::ID)),
    (ChunkBufferError::WrongOwner, |world| init(world, b"buffer", 10, 107, OWNER_PROGRAM_ID)),
    (ChunkBufferError::UnknownVersion, |world| {
        let buffer = BufferBytes { version: 2, ..BufferBytes::full(world.authority, pattern(10, 1), 10) };
        seal(world, buffer)
    }),
    (ChunkBufferError::Sealed, |world| seal(world, BufferBytes::sealed(world.authority, pattern(10, 1), 10))),
    (ChunkBufferError::UnalignedOffset, |world| write(world, 5, 10)),
    (ChunkBufferError::OffsetOutOfBounds, |world| write(world, 20, 10)),
    (ChunkBufferError::WrongChunkLength, |world| write(world, 0, 9)),
    (ChunkBufferError::Incomplete, |world| seal(world, BufferBytes::empty(world.authority, 10, 10))),
    (ChunkBufferError::DigestMismatch, |world| {
        seal(world, BufferBytes::full(world.authority, pattern(10, 1), 10))
    }),
    (ChunkBufferError::ZeroAuthority, |world| {
        let buffer = world.create_buffer("buffer", 10, 10);
        let set_authority = world.set_buffer_authority(buffer, Address::default());
        world.send(&[set_authority])
    }),
    (ChunkBufferError::TooLarge, |world| resize(world, u32::MAX)),
    (ChunkBufferError::TooMuchGrowth, |world| resize(world, 20_000)),
    (ChunkBufferError::NotRentExempt, |world| resize(world, 21)),
];

const DELEGATION: &[(DelegationError, Way)] = &[
    (DelegationError::WrongAuthority, |world| {
        let account = world.delegated(1, &[1]);
        world.authority = world.signer("stranger");
        let grow = world.grow(account, 1);
        world.send(&[grow])
    }),
    (DelegationError::RecordMismatch, |world| {
        let other = world.delegated(2, &[2]);
        let account = world.delegated(1, &[1]);
        let mut grow = world.grow(account, 1);
        grow.accounts[2].pubkey = address::record(&other);
        world.send(&[grow])
    }),
    (DelegationError::NotDelegated, |world| {
        let account = world.own(1, &[1]);
        let reserve = world.reserve(account, 1);
        landed(world.send(&[reserve]));
        let grow = world.grow(account, 1);
        world.send(&[grow])
    }),
    (DelegationError::AlreadyDelegated, |world| {
        world.delegated(1, &[1]);
        world.send(&[world.delegate(1)])
    }),
    (DelegationError::UnknownVersion, |world| {
        let account = world.delegated(1, &[1]);
        world.edit_record(&account, |record| record.version = 2);
        let grow = world.grow(account, 1);
        world.send(&[grow])
    }),
    (DelegationError::AccountNotSigner, |world| first_half(world, OWNER_PROGRAM_ID, false)),
    (DelegationError::NotOwnersAddress, |world| first_half(world, OWNER_PROGRAM_ID, true)),
    (DelegationError::NotOwned, |world| second_half(world, OWNER_PROGRAM_ID)),
    (DelegationError::RecordTooSmall, |world| {
        world.own(1, &pattern(9_993, 1));
        world.send(&[world.delegate(1)])
    }),
    (DelegationError::NotBegun, |world| second_half(world, delegation::ID)),
    (DelegationError::AlreadyApplied, |world| {
        let account = world.delegated(1, &[1]);
        let commit = world.commit(account, 1, 7, &[2]);
        landed(world.send(std::slice::from_ref(&commit)));
        world.send(&[commit])
    }),
    (DelegationError::WrongNonce, |world| {
        on_delegated(world, |world, account, _| world.commit(account, 2, 7, &[2]))
    }),
    (DelegationError::AlreadyStaged, |world| {
        let account = world.delegated(1, &[1]);
        let buffer = world.forge_sealed("buffer", vec![2]);
        let stage = world.stage(account, 1, 7, buffer);
        landed(world.send(std::slice::from_ref(&stage)));
        world.send(&[stage])
    }),
    (DelegationError::NothingStaged, |world| on_delegated(world, World::finalize)),
    (DelegationError::WrongBuffer, |world| {
        let account = world.delegated(1, &[1]);
        let buffer = world.forge_sealed("buffer", vec![2]);
        let stage = world.stage(account, 1, 7, buffer);
        landed(world.send(&[stage]));
        let finalize = world.finalize(account, chunk_buffer::ID);
        world.send(&[finalize])
    }),
    (DelegationError::NotABuffer, |world| {
        on_delegated(world, |world, account, _| world.commit_buffer(account, 1, 7, chunk_buffer::ID))
    }),
    (DelegationError::BufferNotSealed, |world| {
        world.create_buffer("open", 10, 10);
        on_delegated(world, |world, account, _| {
            world.commit_buffer(account, 1, 7, world.buffer_address("open"))
        })
    }),
    (DelegationError::ForeignBuffer, |world| {
        let stranger = world.signer("stranger");
        world.forge_buffer("foreign", &BufferBytes::sealed(stranger, pattern(10, 1), 10));
        on_delegated(world, |world, account, _| {
            world.commit_buffer(account, 1, 7, world.buffer_address("foreign"))
        })
    }),
    (DelegationError::TooMuchGrowth, |world| {
        let account = world.delegated(1, &[1]);
        world.give(account, world.rent(20_000));
        let buffer = world.forge_sealed("buffer", pattern(10_242, 2));
        let commit = world.commit_buffer(account, 1, 7, buffer);
        world.send(&[commit])
    }),
    (DelegationError::NotRentExempt, |world| {
        on_delegated(world, |world, account, _| world.grow(account, 101))
    }),
    (DelegationError::WrongOwnerProgram, |world| {
        on_delegated(world, |world, account, _| {
            let mut undelegate = world.undelegate(account);
            undelegate.accounts[3].pubkey = chunk_buffer::ID;
            undelegate
        })
    }),
    (DelegationError::WrongRentReceiver, |world| {
        on_delegated(world, |world, account, _| {
            let mut undelegate = world.undelegate(account);
            undelegate.accounts[4].pubkey = world.authority;
            undelegate
        })
    }),
    (DelegationError::TooLarge, |world| {
        on_delegated(world, |world, account, _| world.grow(account, u32::MAX))
    }),
    (DelegationError::WrongSession, |world| {
        on_delegated(world, |world, account, _| {
            let accounts =
                delegation::Commit { authority: world.authority, account, record: address::record(&account) };
            let session = world.session(account) + 1;
            accounts.instruction(delegation::CommitArgs { session, nonce: 1, commit_id: 7, data: &[2] })
        })
    }),
    (DelegationError::ZeroAuthority, |world| {
        on_delegated(world, |world, account, _| world.set_authority(account, Address::default()))
    }),
    (DelegationError::StagedContentChanged, |world| {
        let account = world.delegated(1, &[1]);
        let buffer = world.forge_sealed("buffer", vec![2]);
        let stage = world.stage(account, 1, 7, buffer);
        landed(world.send(&[stage]));
        world.forge_sealed("buffer", vec![3]);
        let finalize = world.finalize(account, buffer);
        world.send(&[finalize])
    }),
    (DelegationError::UnknownKind, |world| {
        on_delegated(world, |world, account, buffer| world.stage_as(2, account, 1, 7, buffer))
    }),
    (DelegationError::MalformedPatch, |world| {
        on_delegated(world, |world, account, _| world.commit_patch(account, 1, 7, &[]))
    }),
    (DelegationError::PatchOutOfOrder, |world| {
        on_delegated(world, |world, account, _| {
            world.commit_patch(account, 1, 7, &patch(100, &[(1, &[1]), (0, &[1])]))
        })
    }),
    (DelegationError::PatchOutOfBounds, |world| {
        on_delegated(world, |world, account, _| {
            world.commit_patch(account, 1, 7, &patch(100, &[(100, &[1])]))
        })
    }),
    (DelegationError::SameSlot, |world| {
        let account = world.own(1, &[1]);
        landed(world.send(&[world.delegate(1)]));
        let undelegate = world.undelegate(account);
        world.send(&[undelegate])
    }),
];

#[test]
fn every_error_code_is_reached() {
    let mut codes = Vec::new();
    for (error, way) in CHUNK_BUFFER {
        refused(way(&mut World::new()), 0, *error);
        codes.push(error.code());
    }
    codes.sort_unstable();
    assert_eq!(codes, ChunkBufferError::ALL.iter().map(|error| error.code()).collect::<Vec<_>>());

    let mut codes = Vec::new();
    for (error, way) in DELEGATION {
        refused(way(&mut World::new()), 0, *error);
        codes.push(error.code());
    }
    codes.sort_unstable();
    assert_eq!(codes, DelegationError::ALL.iter().map(|error| error.code()).collect::<Vec<_>>());
}
