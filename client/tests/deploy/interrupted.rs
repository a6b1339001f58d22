//! Deploys that end early, and go on where they ended.

use std::sync::Arc;

use committor_client::{
    deploy::{DeployError, ProgramAction, Watch},
    types::TransactionVersion,
};
use committor_localnet::programs;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::world::{Told, World, changed, chunk_buffer_for, common, deploy};

#[tokio::test(flavor = "multi_thread")]
async fn whenever_it_is_stopped_it_goes_on_with_what_is_missing() {
    let world = World::new().await;
    let deployer = world.deployer_of(world.authority.clone(), Some(TransactionVersion::V0));
    let undisturbed = {
        let keypair = Arc::new(Keypair::new());
        let first = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
        deployer.deploy_program(&first, &Watch::default()).await.unwrap().transactions
    };
    // After the first transaction, which makes the buffer; among the writes; after all of them.
    for after in [1, 2, undisturbed / 2, undisturbed - 1] {
        let keypair = Arc::new(Keypair::new());
        let first = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
        let (told, before) = (Arc::new(Told::default()), world.balance().await);
        let one_by_one = world.deployer_in_flight(1);
        let error = one_by_one.deploy_program(&first, &told.stopping(after)).await.unwrap_err();
        assert!(matches!(common(&error), DeployError::Stopped { .. }), "{error}");
        assert_eq!(told.landed(), after);
        let again = Arc::new(Told::default());
        let one_by_one = world.deployer_in_flight(1);
        let done = one_by_one.deploy_program(&first, &again.watch()).await.unwrap();
        assert_eq!(done.action, ProgramAction::Deploy);
        assert_eq!(again.landed() + after, undisturbed, "after {after}");
        world.run_chunk_buffer(keypair.pubkey()).await;
        assert!(world.balance().await < before && world.lamports(done.buffer).await == 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_was_stopped_before_its_last_transaction_goes_on() {
    let world = World::new().await;
    let deployer = world.deployer();
    let keypair = Arc::new(Keypair::new());
    let first = deploy(&chunk_buffer_for(keypair.pubkey()), &keypair);
    deployer.deploy_program(&first, &Watch::default()).await.unwrap();
    let longer = deploy(&programs::DELEGATION.to_vec().into(), &keypair);
    let transactions = deployer.quote_program(&longer).await.unwrap().quote.price.transactions;
    // The extension has landed, the upgrade has not.
    let told = Arc::new(Told::default());
    deployer.deploy_program(&longer, &told.stopping(transactions - 1)).await.unwrap_err();
    assert_eq!(world.program_data(keypair.pubkey()).await.len(), programs::DELEGATION.len());
    // The program is extended, not upgraded: it still runs.
    world.run_chunk_buffer(keypair.pubkey()).await;
    let done = deployer.deploy_program(&longer, &Watch::default()).await.unwrap();
    assert_eq!((done.action, done.transactions), (ProgramAction::Upgrade, 1));
    assert!(world.holds(keypair.pubkey(), programs::DELEGATION).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_in_between_is_another_file() {
    let world = World::new().await;
    let deployer = world.deployer_in_flight(1);
    let keypair = Arc::new(Keypair::new());
    let program = keypair.pubkey();
    let first = deploy(&chunk_buffer_for(program), &keypair);
    let told = Arc::new(Told::default());
    deployer.deploy_program(&first, &told.stopping(2)).await.unwrap_err();
    // As long, with other content.
    let other = deploy(&changed(&first.elf), &keypair);
    let left = deployer.quote_program(&first).await.unwrap().buffer;
    let done = deployer.deploy_program(&other, &Watch::default()).await.unwrap();
    assert_ne!(done.buffer, left);
    assert!(world.holds(program, &other.elf).await);
    // What the first one left is found, and closed.
    let found = world.buffers().of_loader(world.authority.pubkey()).await.unwrap();
    assert_eq!(found.iter().map(|buffer| buffer.pubkey).collect::<Vec<_>>(), [left]);
    let closed = deployer.close(&[left], world.authority.pubkey(), &Watch::default()).await;
    assert_eq!(closed[0].outcome.as_ref().unwrap().0, found[0].lamports.0);
    assert_eq!(world.lamports(left).await, 0);
}
