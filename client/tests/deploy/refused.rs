//! What is refused, with nothing spent.

use std::sync::Arc;

use committor_client::{
    Lamports, SharedSigner,
    deploy::{DeployError, ProgramDeploy, ProgramDeployError, ProgramFileError, Watch},
    plan::{MAX_PROGRAM_LEN, ProgramGoal, UpgradeAuthority},
};
use committor_localnet::programs;
use insta::assert_snapshot;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_loader_v3_interface::instruction as loader;
use solana_signer::Signer;
use solana_system_interface::instruction as system;

use crate::world::{World, chunk_buffer_for, common, deploy};

/// The error of a deploy, which cost nothing.
async fn refused(world: &World, deploy: &ProgramDeploy) -> ProgramDeployError {
    let before = world.balance().await;
    let error = world.deployer().deploy_program(deploy, &Watch::default()).await.unwrap_err();
    assert_eq!(world.balance().await, before, "{error}");
    assert!(error.hint().unwrap().contains("nothing was spent"), "{error}");
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_no_programs() {
    let world = World::new().await;
    let keypair = Arc::new(Keypair::new());
    let program = chunk_buffer_for(keypair.pubkey());
    let mut x86 = program.to_vec();
    x86[18..20].copy_from_slice(&62u16.to_le_bytes());
    let mut unknown = program.to_vec();
    let at = unknown.windows(11).position(|window| window == b"sol_memcpy_").unwrap();
    unknown[at + 10] = b'X';
    let mut long = program.to_vec();
    long.resize(MAX_PROGRAM_LEN + 1, 0);
    let cases: [(&str, Vec<u8>); 6] = [
        ("the file is empty", vec![]),
        ("the file is no ELF", b"#!/bin/sh\n".to_vec()),
        ("the ELF is for x86_64", x86),
        ("the program calls `sol_memcpyX`", unknown),
        ("the ELF is cut off", program[..program.len() / 2].to_vec()),
        ("the program has 10485716 bytes", long),
    ];
    for (expected, elf) in cases {
        let error = refused(&world, &deploy(&elf.into(), &keypair)).await;
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_can_not_be_upgraded() {
    let world = World::new().await;
    let deployer = world.deployer();
    let owner_program: Arc<[u8]> = programs::OWNER_PROGRAM.to_vec().into();
    let upgrade = |keypair: &Arc<Keypair>| deploy(&programs::CHUNK_BUFFER.to_vec().into(), keypair);

    // Somebody else's.
    let (keypair, other) = (Arc::new(Keypair::new()), Keypair::new().pubkey());
    let mut given = deploy(&owner_program, &keypair);
    given.goal = ProgramGoal::Deployed(UpgradeAuthority::Other(other));
    deployer.deploy_program(&given, &Watch::default()).await.unwrap();
    let error = refused(&world, &upgrade(&keypair)).await;
    assert!(
        matches!(error, ProgramDeployError::WrongAuthority { authority, .. } if authority == other),
        "{error}"
    );
    // Not even with a buffer, unless that is handed to whoever can.
    let mut buffered = upgrade(&keypair);
    buffered.goal = ProgramGoal::InBuffer { handed_to: None };
    let error = refused(&world, &buffered).await;
    assert!(matches!(error, ProgramDeployError::WrongAuthority { .. }), "{error}");

    // Nobody's.
    let keypair = Arc::new(Keypair::new());
    let mut given = deploy(&owner_program, &keypair);
    given.goal = ProgramGoal::Deployed(UpgradeAuthority::Nobody);
    deployer.deploy_program(&given, &Watch::default()).await.unwrap();
    let error = refused(&world, &upgrade(&keypair)).await;
    assert!(matches!(error, ProgramDeployError::Immutable(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_are_no_programs() {
    let world = World::new().await;
    let keypair = Arc::new(Keypair::new());
    let first = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
    // No keypair, or that of another address.
    for wrong in [None, Some(Arc::new(Keypair::new()) as SharedSigner)] {
        let error = refused(&world, &ProgramDeploy { keypair: wrong, ..first.clone() }).await;
        assert!(matches!(error, ProgramDeployError::NoKeypair(_)), "{error}");
    }
    // An account of a program, instead of the program.
    let account = solana_loader_v3_interface::get_program_data_address(&programs::DELEGATION_ID);
    let error = refused(&world, &ProgramDeploy { program: account, ..first.clone() }).await;
    assert!(matches!(error, ProgramDeployError::NotAProgram { .. }), "{error}");
    // A program that was closed: its address is used up.
    let closed = deploy(&programs::OWNER_PROGRAM.to_vec().into(), &Arc::new(Keypair::new()));
    world.deployer().deploy_program(&closed, &Watch::default()).await.unwrap();
    let (data, authority) =
        (solana_loader_v3_interface::get_program_data_address(&closed.program), world.authority.pubkey());
    let close = loader::close_any(&data, &authority, Some(&authority), Some(&closed.program));
    world.send(&[close], &[&world.authority]).await.unwrap();
    let error = refused(&world, &closed).await;
    assert!(matches!(error, ProgramDeployError::Closed(_)), "{error}");
    // Too little room, or too much.
    for max_len in [first.elf.len() - 1, MAX_PROGRAM_LEN + 1] {
        let error = refused(&world, &ProgramDeploy { max_len: Some(max_len), ..first.clone() }).await;
        assert!(matches!(error, ProgramDeployError::MaxLen { .. }), "{error}");
    }
    // The account for the program's bytes has lamports, which the loader can't cope with.
    let data = solana_loader_v3_interface::get_program_data_address(&keypair.pubkey());
    let gift = system::transfer(&world.authority.pubkey(), &data, 1_000_000);
    world.send(&[gift], &[&world.authority]).await.unwrap();
    let error = refused(&world, &first).await;
    assert!(matches!(error, ProgramDeployError::DataExists { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_that_is_one_lamport_short() {
    let keypair = Arc::new(Keypair::new());
    let first = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
    let needed = World::new().await.deployer().quote_program(&first).await.unwrap().quote.needed.0;

    let world = World::with_lamports(needed - 1).await;
    let error = refused(&world, &first).await;
    assert!(matches!(common(&error), DeployError::Balance { missing: Lamports(1), .. }), "{error}");
    // With that one lamport it goes through, and leaves the payer what an account must keep.
    let world = World::with_lamports(needed).await;
    world.deployer().deploy_program(&first, &Watch::default()).await.unwrap();
    assert!(world.holds(keypair.pubkey(), &first.elf).await);
    assert_eq!(world.balance().await, 890_880);
}

#[test]
fn what_is_said_about_it() {
    let address = |byte: u8| Address::new_from_array([byte; 32]);
    let (program, other) = (address(1), address(2));
    let files = [
        ProgramFileError::Empty,
        ProgramFileError::NotElf { found: "7f454c00".to_owned() },
        ProgramFileError::Machine { found: 183 },
        ProgramFileError::Machine { found: 1 },
        ProgramFileError::Truncated { len: 100, expected: 200 },
        ProgramFileError::TooLong { len: MAX_PROGRAM_LEN + 1 },
        ProgramFileError::Syscall { name: "sol_new".to_owned() },
    ];
    let programs = [
        ProgramDeployError::NoKeypair(program),
        ProgramDeployError::NotAProgram { address: program, owner: other },
        ProgramDeployError::Closed(program),
        ProgramDeployError::DataExists { program, data: other },
        ProgramDeployError::Immutable(program),
        ProgramDeployError::WrongAuthority { program, authority: other, ours: address(3) },
        ProgramDeployError::MaxLen { max_len: 1, len: 2 },
        ProgramDeployError::Overtaken { program },
        ProgramDeployError::Deploy(DeployError::Stopped { left: 3 }),
    ];
    let said = |error: ProgramDeployError| {
        let again = if error.is_transient() { " (may pass)" } else { "" };
        format!("{error}{again}\n  hint: {}\n", error.hint().unwrap_or_default())
    };
    let text: String = files.map(ProgramDeployError::from).into_iter().chain(programs).map(said).collect();
    assert_snapshot!("messages", text);
}
