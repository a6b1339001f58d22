//! Programs through the upgradeable loader, on a local validator that runs them.

mod interrupted;
mod refused;
mod world;

use std::sync::Arc;

use committor_client::{
    deploy::{ProgramAction, ProgramDeployError, Watch},
    plan::{ProgramGoal, UpgradeAuthority},
    types::TransactionVersion,
};
use committor_localnet::programs;
use solana_keypair::Keypair;
use solana_loader_v3_interface::instruction as loader;
use solana_signer::Signer;
use solana_system_interface::instruction as system;

use world::{Told, World, changed, chunk_buffer_for, deploy};

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_deployed_runs_and_is_upgraded_to_longer_and_shorter_ones() {
    let world = World::new().await;
    for version in [TransactionVersion::V0, TransactionVersion::V1] {
        let deployer = world.deployer_of(world.authority.clone(), Some(version));
        let keypair = Arc::new(Keypair::new());
        let program = keypair.pubkey();
        let first = deploy(&chunk_buffer_for(program), &keypair);
        let (quoted, before) = (deployer.quote_program(&first).await.unwrap(), world.balance().await);
        let done = deployer.deploy_program(&first, &Watch::default()).await.unwrap();
        assert_eq!((quoted.action, done.action), (ProgramAction::Deploy, ProgramAction::Deploy));
        assert_eq!(done.authority, Some(world.authority.pubkey()));
        // The price that was named is the price that was paid, and the buffer's rent is back.
        let price = quoted.quote.price;
        assert_eq!(done.transactions, price.transactions, "{version}");
        let paid = price.fee_lamports.0 + price.rent_locked_lamports.0 - price.rent_returned_lamports.0;
        assert_eq!(before - world.balance().await, paid, "{version}");
        assert_eq!(world.lamports(done.buffer).await, 0);
        world.run_chunk_buffer(program).await;

        // The same bytes again, with the program's address alone: nothing is sent.
        let told = Arc::new(Told::default());
        let mut again = first.clone();
        again.keypair = None;
        let done = deployer.deploy_program(&again, &told.watch()).await.unwrap();
        assert_eq!((done.action, done.transactions, told.landed()), (ProgramAction::Nothing, 0, 0));

        // Longer than there is room for: the account grows first.
        let longer = deploy(&programs::DELEGATION.to_vec().into(), &keypair);
        let (quoted, before) = (deployer.quote_program(&longer).await.unwrap(), world.balance().await);
        let done = deployer.deploy_program(&longer, &Watch::default()).await.unwrap();
        assert_eq!((done.action, quoted.action), (ProgramAction::Upgrade, ProgramAction::Upgrade));
        let price = quoted.quote.price;
        let paid = price.fee_lamports.0 + price.rent_locked_lamports.0 - price.rent_returned_lamports.0;
        assert_eq!(before - world.balance().await, paid, "{version}");
        assert!(world.holds(program, programs::DELEGATION).await);
        assert_eq!(world.program_data(program).await.len(), programs::DELEGATION.len());

        // Shorter: the room stays, and what was behind is zeroes.
        let done = deployer.deploy_program(&first, &Watch::default()).await.unwrap();
        assert_eq!(done.action, ProgramAction::Upgrade);
        assert!(world.holds(program, &first.elf).await);
        assert_eq!(world.program_data(program).await.len(), programs::DELEGATION.len());
        world.run_chunk_buffer(program).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_grows_by_no_less_than_the_loader_allows() {
    let world = World::new().await;
    let deployer = world.deployer();
    let keypair = Arc::new(Keypair::new());
    let short = deploy(&programs::OWNER_PROGRAM.to_vec().into(), &keypair);
    deployer.deploy_program(&short, &Watch::default()).await.unwrap();
    // 1,752 bytes longer.
    let longer = deploy(&programs::CHUNK_BUFFER.to_vec().into(), &keypair);
    deployer.deploy_program(&longer, &Watch::default()).await.unwrap();
    assert_eq!(world.program_data(keypair.pubkey()).await.len(), programs::OWNER_PROGRAM.len() + 10_240);
    assert!(world.holds(keypair.pubkey(), programs::CHUNK_BUFFER).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn room_is_made_ahead_of_time() {
    let world = World::new().await;
    let deployer = world.deployer();
    let keypair = Arc::new(Keypair::new());
    let mut with_room = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
    with_room.max_len = Some(200_000);
    deployer.deploy_program(&with_room, &Watch::default()).await.unwrap();
    assert_eq!(world.program_data(keypair.pubkey()).await.len(), 200_000);
    let longer = deploy(&programs::DELEGATION.to_vec().into(), &keypair);
    let quote = deployer.quote_program(&longer).await.unwrap().quote;
    // Nothing but the buffer's rent, which comes back.
    assert_eq!(quote.price.rent_locked_lamports, quote.price.rent_returned_lamports);
    deployer.deploy_program(&longer, &Watch::default()).await.unwrap();
    assert!(world.holds(keypair.pubkey(), programs::DELEGATION).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn lamports_that_strangers_sent_ahead_do_no_harm() {
    let world = World::new().await;
    let deployer = world.deployer();
    let keypair = Arc::new(Keypair::new());
    let first = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
    let payer = world.authority.pubkey();
    let buffer = deployer.quote_program(&first).await.unwrap().buffer;
    let gifts = [
        system::transfer(&payer, &buffer, 5_000_000_000),
        system::transfer(&payer, &keypair.pubkey(), 1_000_000),
    ];
    world.send(&gifts, &[&world.authority]).await.unwrap();
    let (quoted, before) = (deployer.quote_program(&first).await.unwrap(), world.balance().await);
    deployer.deploy_program(&first, &Watch::default()).await.unwrap();
    // What lay at the buffer's address is the payer's now: more than it all took.
    assert!(world.balance().await > before);
    assert_eq!(quoted.quote.price.rent_returned_lamports, quoted.quote.price.rent_locked_lamports);
    world.run_chunk_buffer(keypair.pubkey()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_given_away_or_made_immutable_when_it_is_deployed_or_later() {
    let world = World::new().await;
    let deployer = world.deployer();
    let other = Keypair::new().pubkey();
    for (goal, expected) in [(UpgradeAuthority::Other(other), Some(other)), (UpgradeAuthority::Nobody, None)]
    {
        let keypair = Arc::new(Keypair::new());
        let mut given = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
        given.goal = ProgramGoal::Deployed(goal);
        let done = deployer.deploy_program(&given, &Watch::default()).await.unwrap();
        assert_eq!(done.authority, expected);
        world.run_chunk_buffer(keypair.pubkey()).await;
        // Again: it is as it was to be.
        let done = deployer.deploy_program(&given, &Watch::default()).await.unwrap();
        assert_eq!((done.action, done.authority), (ProgramAction::Nothing, expected));

        // A program that is there already, with the same bytes and with others.
        let keypair = Arc::new(Keypair::new());
        let same = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
        deployer.deploy_program(&same, &Watch::default()).await.unwrap();
        let mut given = same.clone();
        given.goal = ProgramGoal::Deployed(goal);
        let done = deployer.deploy_program(&given, &Watch::default()).await.unwrap();
        assert_eq!((done.action, done.authority, done.transactions), (ProgramAction::Settle, expected, 1));
        let keypair = Arc::new(Keypair::new());
        deployer
            .deploy_program(&deploy(&programs::OWNER_PROGRAM.to_vec().into(), &keypair), &Watch::default())
            .await
            .unwrap();
        let mut upgraded = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
        upgraded.goal = ProgramGoal::Deployed(goal);
        let done = deployer.deploy_program(&upgraded, &Watch::default()).await.unwrap();
        assert_eq!((done.action, done.authority), (ProgramAction::Upgrade, expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buffer_is_written_for_somebody_else_who_upgrades_with_it() {
    let world = World::new().await;
    let vault = Arc::new(Keypair::new());
    world
        .send(
            &[system::transfer(&world.authority.pubkey(), &vault.pubkey(), 1_000_000_000)],
            &[&world.authority],
        )
        .await
        .unwrap();
    let keypair = Arc::new(Keypair::new());
    let program = keypair.pubkey();
    let mut first = deploy(&programs::OWNER_PROGRAM.to_vec().into(), &keypair);
    first.goal = ProgramGoal::Deployed(UpgradeAuthority::Other(vault.pubkey()));
    let deployer = world.deployer();
    deployer.deploy_program(&first, &Watch::default()).await.unwrap();

    let mut buffered = deploy(&chunk_buffer_for(program), &keypair);
    (buffered.keypair, buffered.goal) = (None, ProgramGoal::InBuffer { handed_to: Some(vault.pubkey()) });
    let done = deployer.deploy_program(&buffered, &Watch::default()).await.unwrap();
    assert_eq!((done.action, done.authority), (ProgramAction::Buffer, Some(vault.pubkey())));
    // The room is there, the program is as it was, and a second call has nothing to do.
    assert!(world.holds(program, programs::OWNER_PROGRAM).await);
    let again = deployer.deploy_program(&buffered, &Watch::default()).await.unwrap();
    assert_eq!((again.action, again.transactions), (ProgramAction::Nothing, 0));

    let (spill, vault_key) = (world.authority.pubkey(), vault.pubkey());
    let upgrade = loader::upgrade(&program, &done.buffer, &vault_key, &spill);
    let (rent, before) = (world.lamports(done.buffer).await, world.balance().await);
    world.send(&[upgrade], &[&vault]).await.unwrap();
    assert_eq!(world.balance().await - before, rent);
    world.run_chunk_buffer(program).await;
    assert!(world.holds(program, &buffered.elf).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_deploy_the_same_at_once_both_succeed() {
    let world = World::new().await;
    let keypair = Arc::new(Keypair::new());
    let program = keypair.pubkey();
    let first = deploy(&chunk_buffer_for(program), &keypair);
    let (one, other) = (world.deployer(), world.deployer());
    let watch = Watch::default();
    let (one, other) = tokio::join!(one.deploy_program(&first, &watch), other.deploy_program(&first, &watch));
    assert_eq!(one.unwrap().authority, other.unwrap().authority);
    world.run_chunk_buffer(program).await;

    // An upgrade, with room to be made.
    let longer = deploy(&programs::DELEGATION.to_vec().into(), &keypair);
    let (one, other) = (world.deployer(), world.deployer());
    let (one, other) =
        tokio::join!(one.deploy_program(&longer, &watch), other.deploy_program(&longer, &watch));
    one.unwrap();
    other.unwrap();
    assert!(world.holds(program, programs::DELEGATION).await);
    assert_eq!(world.buffers().of_loader(world.authority.pubkey()).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_upgrade_to_different_bytes_at_once_none_is_told_a_lie() {
    let world = World::new().await;
    let keypair = Arc::new(Keypair::new());
    let program = keypair.pubkey();
    let first = deploy(&programs::OWNER_PROGRAM.to_vec().into(), &keypair);
    world.deployer().deploy_program(&first, &Watch::default()).await.unwrap();
    let one = deploy(&chunk_buffer_for(program), &keypair);
    let other = deploy(&changed(&one.elf), &keypair);
    let (deployer, watch) = (world.deployer(), Watch::default());
    let (first, second) =
        tokio::join!(deployer.deploy_program(&one, &watch), deployer.deploy_program(&other, &watch));
    let mut holds = 0;
    for (elf, outcome) in [(&one.elf, &first), (&other.elf, &second)] {
        match outcome {
            // It held the bytes when that was looked at; the other one may have come after.
            Ok(_) => (),
            Err(error) => assert!(matches!(error, ProgramDeployError::Overtaken { .. }), "{error}"),
        }
        if world.holds(program, elf).await {
            assert!(outcome.is_ok());
            holds += 1;
        }
    }
    assert_eq!(holds, 1);
    assert_eq!(world.buffers().of_loader(world.authority.pubkey()).await.unwrap(), []);
}
