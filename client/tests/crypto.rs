//! Signatures in bulk.

use std::sync::Arc;

use committor_client::crypto::{CryptoError, CryptoPool, CryptoSettings, Unsigned, verify};
use futures::executor::block_on_stream;
use solana_hash::Hash;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;

fn unsigned(payer: &Arc<Keypair>, other: &Arc<Keypair>, number: u64) -> Unsigned {
    // Every third asks for both signatures.
    let from = if number.is_multiple_of(3) { other } else { payer };
    let instruction = transfer(&from.pubkey(), &Keypair::new_from_array([9; 32]).pubkey(), number);
    let message = v0::Message::try_compile(&payer.pubkey(), &[instruction], &[], Hash::default()).unwrap();
    Unsigned { message: VersionedMessage::V0(message), keypairs: vec![other.clone(), payer.clone()] }
}

fn batch(count: u64) -> Vec<Unsigned> {
    let (payer, other) =
        (Arc::new(Keypair::new_from_array([1; 32])), Arc::new(Keypair::new_from_array([2; 32])));
    (0..count).map(|number| unsigned(&payer, &other, number)).collect()
}

fn signed(count: u64) -> Vec<VersionedTransaction> {
    batch(count).into_iter().map(|unsigned| unsigned.sign().unwrap()).collect()
}

#[test]
fn what_is_signed_in_bulk_is_what_is_signed_one_by_one_and_is_valid() {
    let pool = CryptoPool::new(CryptoSettings::default()).unwrap();
    let expected = signed(500);
    let outcomes: Vec<VersionedTransaction> =
        block_on_stream(pool.sign_stream(batch(500))).map(|(_, signed)| signed.unwrap()).collect();
    assert_eq!(outcomes, expected);
    assert!(block_on_stream(pool.verify_stream(outcomes)).all(|(_, outcome)| outcome.is_ok()));
}

#[test]
fn whatever_is_wrong_names_its_index_and_no_other_is_affected() {
    let pool = CryptoPool::new(CryptoSettings::default()).unwrap();
    let mut unsigned = batch(100);
    unsigned[42].keypairs.pop();
    let missing = Keypair::new_from_array([1; 32]).pubkey();
    for (index, outcome) in block_on_stream(pool.sign_stream(unsigned)) {
        match outcome {
            Err(CryptoError::MissingSigner(signer)) if index == 42 => assert_eq!(signer, missing),
            outcome => assert!(outcome.is_ok() && index != 42),
        }
    }
    let mut transactions = signed(100);
    let last = transactions[60].signatures.len() - 1;
    transactions[60].signatures[last] = Signature::default();
    transactions[61].signatures.push(Signature::default());
    transactions[62].signatures.clear();
    transactions[63].message.set_recent_blockhash(Hash::new_from_array([1; 32]));
    for (index, outcome) in block_on_stream(pool.verify_stream(transactions)) {
        match (index, outcome) {
            (60, Err(CryptoError::Invalid { position, .. })) => assert_eq!(position, last),
            (61, Err(CryptoError::SignatureCount { found, expected })) => assert_eq!(found, expected + 1),
            (62, Err(CryptoError::SignatureCount { found: 0, .. })) => (),
            (63, Err(CryptoError::Invalid { position: 0, signer })) => assert_eq!(signer, missing),
            (index, outcome) => {
                assert!(outcome.is_ok() && !(60..64).contains(&index), "{index}: {outcome:?}")
            }
        }
    }
}

/// A signature by a key of small order: the equation holds for any message, so a check that is not strict takes it.
#[test]
fn what_only_a_lax_check_would_take_is_refused() {
    let mut transaction = signed(2).pop().unwrap();
    let small_order = {
        let mut bytes = [0; 32];
        bytes[0] = 1;
        solana_address::Address::new_from_array(bytes)
    };
    let VersionedMessage::V0(message) = &mut transaction.message else { unreachable!("made above") };
    message.account_keys[0] = small_order;
    // R is the neutral element, s is zero: s·B = R + k·A for every k.
    let mut signature = [0; 64];
    signature[0] = 1;
    transaction.signatures[0] = Signature::from(signature);
    assert!(matches!(verify(&transaction), Err(CryptoError::Invalid { position: 0, .. })));
}
