//! Files in buffers, on a local validator.

mod closing;
mod world;

use std::sync::Arc;

use committor_client::{
    chain::Chain,
    deploy::{ContentKind, DeployError, DeploySettings, Deployer, Watch},
    types::{Lamports, TransactionVersion},
};
use committor_localnet::{Validator, on_each_validator};
use committor_sdk::{BufferView, chunk_buffer, digest::payload_digest};
use solana_keypair::Keypair;
use solana_signer::Signer;
use solana_system_interface::instruction as system;
use world::{Told, World, content};

/// The longest payload that fits an account with chunks that fill a v1 transaction which one key signs: 2,707 of them.
const LONGEST: usize = 10 * 1024 * 1024 - 96 - 339;

async fn files_of_any_length_come_back_as_they_were_and_a_second_upload_sends_nothing(validator: Validator) {
    let world = World::new(validator).await;
    for version in [TransactionVersion::V0, TransactionVersion::V1] {
        let deployer = world.deployer_on(Some(version));
        // No bytes, one, all in one transaction, a chunk in one of its own, several, two segments of the digest.
        let lengths: &[usize] = match version {
            TransactionVersion::V0 => &[500, 1_011, 1_012, 1_013, 10_240],
            TransactionVersion::V1 => &[0, 1, 500, 3_855, 3_856, 3_857, 10_240, 2 * 1024 * 1024 + 1],
        };
        for len in lengths.iter().copied() {
            let file = content(len, version as u64);
            let quote = deployer.quote_upload(&file).await.unwrap();
            let before = world.lamports(world.authority.pubkey()).await;
            let uploaded = deployer.upload(&file, &Watch::default()).await.unwrap();
            let found = world.buffers().download(uploaded.buffer).await.unwrap();
            assert_eq!(found.kind, ContentKind::File { sealed: true });
            assert!(found.payload[..] == file[..], "{len}");
            assert_eq!(uploaded.digest, payload_digest(&file));
            // The price that was named is the price that was paid.
            assert_eq!(uploaded.transactions, quote.price.transactions, "{len}");
            let paid = before - world.lamports(world.authority.pubkey()).await;
            assert_eq!(
                paid,
                quote.price.fee_lamports.0 + quote.price.rent_locked_lamports.0,
                "{len} in {version}"
            );
            assert_eq!(world.lamports(uploaded.buffer).await, quote.price.rent_returned_lamports.0);
            let told = Arc::new(Told::default());
            let again = deployer.upload(&file, &told.watch()).await.unwrap();
            assert_eq!((again.buffer, again.transactions, told.landed()), (uploaded.buffer, 0, 0));
        }
    }
}

async fn zeroes_are_not_sent_and_the_longest_file_is_the_longest(validator: Validator) {
    let world = World::new(validator).await;
    let deployer = world.deployer();
    // Zeroes alone: a buffer, and the seals.
    let uploaded = deployer.upload(&vec![0; LONGEST].into(), &Watch::default()).await.unwrap();
    assert_eq!(uploaded.transactions, 1 + 5);
    assert_eq!(world.buffers().download(uploaded.buffer).await.unwrap().payload, vec![0; LONGEST]);
    // Zeroes in the middle, and at the end.
    let mut file = vec![0; LONGEST];
    file[..10_000].fill(7);
    file[5_000_000] = 1;
    let file: Arc<[u8]> = file.into();
    let uploaded = deployer.upload(&file, &Watch::default()).await.unwrap();
    assert!(uploaded.transactions <= 1 + 4 + 5, "{}", uploaded.transactions);
    assert!(world.buffers().download(uploaded.buffer).await.unwrap().payload[..] == file[..]);

    let before = world.lamports(world.authority.pubkey()).await;
    let longer: Arc<[u8]> = vec![0; LONGEST + 1].into();
    let error = deployer.upload(&longer, &Watch::default()).await.unwrap_err();
    assert!(matches!(error, DeployError::TooLong { len, .. } if len == LONGEST + 1), "{error}");
    assert_eq!(world.lamports(world.authority.pubkey()).await, before);
}

async fn a_stopped_upload_goes_on_with_what_is_missing(validator: Validator) {
    let world = World::new(validator).await;
    for version in [TransactionVersion::V0, TransactionVersion::V1] {
        let signers = || committor_client::Signers {
            payer: world.authority.clone(),
            authority: world.authority.clone(),
        };
        let settings =
            DeploySettings { version: Some(version), transactions_in_flight: 4, ..DeploySettings::default() };
        let deployer = Deployer::new(world.chain.clone(), signers(), settings);
        let fresh = deployer.quote_upload(&content(100_000, 0)).await.unwrap().price.transactions;
        for stop_after in [1, 2, 3, 10, fresh - 2, fresh - 1] {
            let file = content(100_000, 2 * stop_after + version as u64);
            let told = Arc::new(Told::default());
            let error = deployer.upload(&file, &told.stopping(stop_after)).await.unwrap_err();
            assert!(matches!(error, DeployError::Stopped { .. }), "{error}");
            assert!(error.is_transient());
            let landed = told.landed();
            let rest = Arc::new(Told::default());
            let uploaded = deployer.upload(&file, &rest.watch()).await.unwrap();
            assert_eq!(
                landed + uploaded.transactions,
                fresh,
                "stopped after {landed} of {fresh} in {version}"
            );
            assert!(world.buffers().download(uploaded.buffer).await.unwrap().payload[..] == file[..]);
        }
    }
}

async fn a_file_that_changed_in_between_is_another_file(validator: Validator) {
    let world = World::new(validator).await;
    let deployer = world.deployer();
    let file = content(50_000, 2);
    let told = Arc::new(Told::default());
    deployer.upload(&file, &told.stopping(3)).await.unwrap_err();
    let (mut longer, mut other) = (file.to_vec(), file.to_vec());
    longer.extend([9; 300]);
    other[25_000] ^= 0x80;
    let changed: [Arc<[u8]>; 3] = [longer.into(), file[..49_700].into(), other.into()];
    let mut buffers = vec![deployer.file_address(&file).unwrap()];
    for changed in changed {
        let uploaded = deployer.upload(&changed, &Watch::default()).await.unwrap();
        assert!(world.buffers().download(uploaded.buffer).await.unwrap().payload[..] == changed[..]);
        assert!(!buffers.contains(&uploaded.buffer));
        buffers.push(uploaded.buffer);
    }
    // What was begun is still there, can be found, and can be gone on with.
    let open: Vec<_> = world
        .buffers()
        .of(world.authority.pubkey())
        .await
        .unwrap()
        .into_iter()
        .filter(|b| !b.sealed)
        .collect();
    assert_eq!(open.iter().map(|buffer| buffer.pubkey).collect::<Vec<_>>(), [buffers[0]]);
    let uploaded = deployer.upload(&file, &Watch::default()).await.unwrap();
    assert_eq!(uploaded.buffer, buffers[0]);
}

async fn wrong_bytes_in_a_chunk_that_counts_as_written_are_found_and_replaced(validator: Validator) {
    let world = World::new(validator).await;
    let deployer = world.deployer();
    let file = content(50_000, 2);
    deployer.upload(&file, &Arc::new(Told::default()).stopping(8)).await.unwrap_err();
    let buffer = deployer.file_address(&file).unwrap();
    let account = world.chain.accounts(&[buffer]).await.unwrap().pop().unwrap().unwrap();
    let view = BufferView::parse(&account.data).unwrap();
    let written = (0..view.layout().chunk_count()).find(|chunk| view.is_written(*chunk)).unwrap();
    let offset = view.layout().chunk(written).unwrap().start as u32;
    let wrong = vec![0xee; view.layout().chunk(written).unwrap().len()];
    let write = chunk_buffer::Write { authority: world.authority.pubkey(), buffer };
    world.send(&[write.instruction(chunk_buffer::WriteArgs { offset, data: &wrong })]).await;
    deployer.upload(&file, &Watch::default()).await.unwrap();
    assert!(world.buffers().download(buffer).await.unwrap().payload[..] == file[..]);
}

async fn a_stranger_who_sent_lamports_to_the_address_is_no_hindrance(validator: Validator) {
    let world = World::new(validator).await;
    let deployer = world.deployer();
    let file = content(5_000, 2);
    let buffer = deployer.file_address(&file).unwrap();
    let full = deployer.quote_upload(&file).await.unwrap().price;
    world.send(&[system::transfer(&world.authority.pubkey(), &buffer, 1_000_000)]).await;
    let quote = deployer.quote_upload(&file).await.unwrap();
    assert_eq!(quote.price.rent_locked_lamports.0, full.rent_locked_lamports.0 - 1_000_000);
    deployer.upload(&file, &Watch::default()).await.unwrap();
    assert_eq!(world.lamports(buffer).await, full.rent_locked_lamports.0);
}

async fn a_payer_that_is_one_lamport_short_spends_nothing_and_one_that_is_not_lands(validator: Validator) {
    let world = World::new(validator).await;
    let file = content(50_000, 2);
    let payer = Arc::new(Keypair::new());
    let deployer = world.paid_by(payer.clone());
    let needed = deployer.quote_upload(&file).await.unwrap().needed.0;
    world.send(&[system::transfer(&world.authority.pubkey(), &payer.pubkey(), needed - 1)]).await;
    let error = deployer.upload(&file, &Watch::default()).await.unwrap_err();
    assert!(matches!(error, DeployError::Balance { missing: Lamports(1), .. }), "{error}");
    assert_eq!(world.lamports(payer.pubkey()).await, needed - 1);
    world.send(&[system::transfer(&world.authority.pubkey(), &payer.pubkey(), 1)]).await;
    deployer.upload(&file, &Watch::default()).await.unwrap();
    // What an account without data has to keep.
    let rent = world.chain.rent().await.unwrap();
    assert_eq!(world.lamports(payer.pubkey()).await, rent.empty_account_lamports);
}

async fn two_who_upload_the_same_file_at_once_both_end_well(validator: Validator) {
    let world = World::new(validator).await;
    let file = content(300_000, 2);
    let (one, other) = (world.deployer(), world.deployer());
    let watch = Watch::default();
    let (one, other) = tokio::join!(one.upload(&file, &watch), other.upload(&file, &watch));
    assert_eq!(one.unwrap().buffer, other.unwrap().buffer);
    assert_eq!(world.buffers().of(world.authority.pubkey()).await.unwrap().len(), 1);
}

async fn a_buffer_that_was_handed_on_is_refused_by_name(validator: Validator) {
    let world = World::new(validator).await;
    let deployer = world.deployer();
    let file = content(5_000, 2);
    let buffer = deployer.upload(&file, &Watch::default()).await.unwrap().buffer;
    let other = Arc::new(Keypair::new());
    deployer.set_authority(buffer, other.pubkey(), &Watch::default()).await.unwrap();
    let error = deployer.upload(&file, &Watch::default()).await.unwrap_err();
    let (ours, theirs) = (world.authority.pubkey(), other.pubkey());
    assert!(
        matches!(error, DeployError::WrongAuthority { authority, ours: found, .. } if (authority, found) == (theirs, ours)),
        "{error}"
    );
    assert_eq!(world.buffers().of(theirs).await.unwrap().len(), 1);
    assert!(world.buffers().of(ours).await.unwrap().is_empty());
}

on_each_validator!(
    files_of_any_length_come_back_as_they_were_and_a_second_upload_sends_nothing,
    zeroes_are_not_sent_and_the_longest_file_is_the_longest,
    a_stopped_upload_goes_on_with_what_is_missing,
    a_file_that_changed_in_between_is_another_file,
    wrong_bytes_in_a_chunk_that_counts_as_written_are_found_and_replaced,
    a_stranger_who_sent_lamports_to_the_address_is_no_hindrance,
    a_payer_that_is_one_lamport_short_spends_nothing_and_one_that_is_not_lands,
    two_who_upload_the_same_file_at_once_both_end_well,
    a_buffer_that_was_handed_on_is_refused_by_name,
);

committor_localnet::on_agave!(world::prepare; scenarios, closing::scenarios);
