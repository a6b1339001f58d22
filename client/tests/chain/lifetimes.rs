//! How long a transaction can land: by its blockhash, or by a durable nonce.

use committor_client::chain::{Chain, ChainError, FaultKind, Lifetime, RpcChain, SignedTransaction};
use committor_faults::{Fault, Rule};
use committor_localnet::{Validator, on_each_validator};
use solana_address::Address;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_signer::Signer;
use solana_system_interface::instruction::{advance_nonce_account, create_nonce_account, transfer};

use crate::world::{LAMPORTS, World};

const SEND: &str = "sendTransaction";
const STATUSES: &str = "getSignatureStatuses";

/// A nonce account of the payer's.
async fn nonce_account(world: &World, chain: &RpcChain) -> Address {
    let (payer, account) = (world.payer().pubkey(), Keypair::new());
    let rent = chain.rent().await.unwrap();
    let lamports = rent.empty_account_lamports + 80 * rent.lamports_per_byte;
    let instructions = create_nonce_account(&payer, &account.pubkey(), &payer, lamports);
    let recent = chain.recent_blockhash().await.unwrap();
    let transaction = world.sign(&instructions, recent.blockhash, &[&account]);
    let last_valid_block_height = recent.last_valid_block_height;
    chain.land(SignedTransaction { transaction, last_valid_block_height, preflight: true }).await.unwrap();
    account.pubkey()
}

/// A transaction that advances a nonce first. Its block height says that it is long over, which must not matter.
fn with_nonce(world: &World, account: Address, nonce: Hash, then: Instruction) -> SignedTransaction {
    let advance = advance_nonce_account(&account, &world.payer().pubkey());
    let transaction = world.sign(&[advance, then], nonce, &[]);
    let signed = SignedTransaction { transaction, last_valid_block_height: 0, preflight: true };
    assert_eq!(signed.lifetime(), Lifetime::Nonce { account, nonce });
    signed
}

async fn a_transaction_that_was_lost_for_good_expires_and_not_before_its_time(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    world.proxy.add(Rule::new(Fault::DropSend).on(SEND));
    let mut transaction = world.transfer(world.address(1)).await;
    // As if its blockhash were old.
    transaction.last_valid_block_height = chain.block_height().await.unwrap() + 10;
    let (last, signature) = (transaction.last_valid_block_height, transaction.signature());
    let error = chain.land(transaction).await.unwrap_err();
    assert!(matches!(error, ChainError::Expired { .. }), "{error}");
    assert_eq!(error.signature(), Some(signature));
    assert!(chain.block_height().await.unwrap() > last);
    assert_eq!(chain.stats().expired, 1);
    assert!(chain.stats().resent > 0, "it was sent as long as it lived");
}

async fn a_status_that_the_node_has_forgotten_is_found_in_its_history(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    let mut transaction = world.transfer(world.address(1)).await;
    transaction.last_valid_block_height = 1;
    world.proxy.add(Rule::new(Fault::ForgottenStatuses).on(STATUSES));
    chain.land(transaction).await.unwrap();
    assert_eq!(world.balance(world.address(1)).await, LAMPORTS);
}

async fn one_look_in_vain_is_no_proof_of_absence(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    let transaction = world.transfer(world.address(1)).await;
    let signature = transaction.signature();
    chain.land(transaction.clone()).await.unwrap();
    // The first question about what is past its time finds nothing, in the history neither.
    world.proxy.add(Rule::new(Fault::NullStatuses).on(STATUSES).times(2));
    let again = SignedTransaction { last_valid_block_height: 1, ..transaction };
    chain.land(again).await.unwrap();
    assert!(chain.find(signature).await.unwrap().unwrap().is_ok());
}

async fn a_blockhash_that_nobody_knows_ends_as_expired_and_not_as_refused(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.chain();
    let pay = transfer(&world.payer().pubkey(), &world.address(1), LAMPORTS);
    let transaction = world.sign(&[pay], Hash::new_from_array([9; 32]), &[]);
    let last_valid_block_height = chain.block_height().await.unwrap() + 10;
    let error = chain
        .land(SignedTransaction { transaction, last_valid_block_height, preflight: true })
        .await
        .unwrap_err();
    assert!(matches!(error, ChainError::Expired { .. }) && error.is_transient(), "{error}");
}

async fn a_refused_blockhash_is_not_handed_out_again(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.chain();
    let recent = chain.recent_blockhash().await.unwrap();
    let pay = transfer(&world.payer().pubkey(), &world.address(1), LAMPORTS);
    world.proxy.add(Rule::new(Fault::blockhash_not_found()).on(SEND).times(1));
    let transaction = world.sign(&[pay], recent.blockhash, &[]);
    let last_valid_block_height = recent.last_valid_block_height;
    chain.land(SignedTransaction { transaction, last_valid_block_height, preflight: true }).await.unwrap();
    let asked = chain.stats().requests_of("getLatestBlockhash");
    chain.recent_blockhash().await.unwrap();
    assert_eq!(chain.stats().requests_of("getLatestBlockhash"), asked + 1);
}

async fn a_transaction_with_a_nonce_lives_as_long_as_the_nonce(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    let account = nonce_account(&world, &chain).await;
    let nonce = chain.nonce(account).await.unwrap().unwrap();
    let pay = |to| transfer(&world.payer().pubkey(), &to, LAMPORTS);
    // Its first tries are lost, and its block height has passed: neither ends it.
    world.proxy.add(Rule::new(Fault::DropSend).on(SEND).times(3));
    let first = with_nonce(&world, account, nonce, pay(world.address(1)));
    chain.land(first.clone()).await.unwrap();
    assert_eq!(world.balance(world.address(1)).await, LAMPORTS);
    assert!(chain.stats().resent >= 3);
    assert_ne!(chain.nonce(account).await.unwrap(), Some(nonce), "it is used");

    // One that was signed with the same nonce can't land any more; the one that did is found.
    world.proxy.add(Rule::new(Fault::DropSend).on(SEND));
    let error = chain.land(with_nonce(&world, account, nonce, pay(world.address(2)))).await.unwrap_err();
    assert!(matches!(error, ChainError::Expired { .. }), "{error}");
    assert_eq!(world.balance(world.address(2)).await, 0);
    chain.land(first).await.unwrap();
}

async fn a_nonce_that_can_not_be_read_ends_nothing(validator: Validator) {
    let world = World::new(validator).await;
    let chain = world.polling();
    let account = nonce_account(&world, &chain).await;
    let nonce = chain.nonce(account).await.unwrap().unwrap();
    assert_eq!(chain.nonce(world.payer().pubkey()).await.unwrap(), None, "no nonce account");
    world.proxy.add(Rule::new(Fault::DropSend).on(SEND).times(2));
    world.proxy.add(Rule::new(Fault::Status(500)).on("getMultipleAccounts").times(20));
    let pay = transfer(&world.payer().pubkey(), &world.address(1), LAMPORTS);
    chain.land(with_nonce(&world, account, nonce, pay)).await.unwrap();
    assert!(chain.stats().faults_of(FaultKind::ServerError) > 0);
}

on_each_validator!(
    a_transaction_that_was_lost_for_good_expires_and_not_before_its_time,
    a_status_that_the_node_has_forgotten_is_found_in_its_history,
    one_look_in_vain_is_no_proof_of_absence,
    a_blockhash_that_nobody_knows_ends_as_expired_and_not_as_refused,
    a_refused_blockhash_is_not_handed_out_again,
    a_transaction_with_a_nonce_lives_as_long_as_the_nonce,
    a_nonce_that_can_not_be_read_ends_nothing,
);
