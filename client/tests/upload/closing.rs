//! Closing buffers.

use std::sync::Arc;

use committor_client::{
    Signers,
    deploy::{DeployError, DeploySettings, Deployer, Watch},
};
use committor_localnet::{Validator, on_each_validator};
use solana_address::Address;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::world::{Told, World, content};

async fn of_many_buffers_each_is_closed_for_itself_and_says_why_if_not(validator: Validator) {
    let world = World::new(validator).await;
    let deployer = world.deployer();
    let mut buffers = Vec::new();
    for salt in 0..6 {
        let uploaded = deployer.upload(&content(2_000, salt), &Watch::default()).await.unwrap();
        buffers.push(uploaded.buffer);
    }
    // One that is not sealed is closed as well.
    let file = content(50_000, 2);
    deployer.upload(&file, &Arc::new(Told::default()).stopping(2)).await.unwrap_err();
    buffers.push(deployer.file_address(&file).unwrap());
    let stranger = Keypair::new().pubkey();
    deployer.set_authority(buffers[1], stranger, &Watch::default()).await.unwrap();
    let gone = Address::new_from_array([9; 32]);
    let system = world.authority.pubkey();
    let all: Vec<Address> = buffers.iter().copied().chain([gone, system]).collect();
    let receiver = Keypair::new().pubkey();
    let locked: u64 = {
        let reports = world.buffers().of(world.authority.pubkey()).await.unwrap();
        reports.iter().map(|report| report.lamports.0).sum()
    };
    let closed = deployer.close(&all, receiver, &Watch::default()).await;
    assert_eq!(closed.iter().map(|closed| closed.buffer).collect::<Vec<_>>(), all);
    for (index, closed) in closed.iter().enumerate() {
        match index {
            1 => assert!(matches!(closed.outcome, Err(DeployError::WrongAuthority { .. }))),
            7 => assert!(matches!(closed.outcome, Err(DeployError::NoAccount(_)))),
            8 => assert!(matches!(closed.outcome, Err(DeployError::NotABuffer { .. }))),
            _ => assert!(closed.outcome.is_ok(), "{:?}", closed.outcome),
        }
    }
    assert_eq!(world.lamports(receiver).await, locked);
    assert!(world.buffers().of(world.authority.pubkey()).await.unwrap().is_empty());
    // Again: they are gone.
    let again = deployer.close(&buffers[..1], receiver, &Watch::default()).await;
    assert!(matches!(again[0].outcome, Err(DeployError::NoAccount(_))));
}

async fn nobody_closes_or_hands_on_what_is_not_theirs(validator: Validator) {
    let world = World::new(validator).await;
    let deployer = world.deployer();
    let buffer = deployer.upload(&content(2_000, 2), &Watch::default()).await.unwrap().buffer;
    let authority = Arc::new(Keypair::new());
    let signers = Signers { payer: world.authority.clone(), authority: authority.clone() };
    let thief = Deployer::new(world.chain.clone(), signers, DeploySettings::default());
    let before = world.lamports(world.authority.pubkey()).await;
    let closed = thief.close(&[buffer], authority.pubkey(), &Watch::default()).await;
    assert!(matches!(closed[0].outcome, Err(DeployError::WrongAuthority { .. })));
    let handed = thief.set_authority(buffer, authority.pubkey(), &Watch::default()).await;
    assert!(matches!(handed, Err(DeployError::WrongAuthority { .. })));
    assert_eq!(world.lamports(world.authority.pubkey()).await, before);
}

on_each_validator!(
    of_many_buffers_each_is_closed_for_itself_and_says_why_if_not,
    nobody_closes_or_hands_on_what_is_not_theirs,
);
