//! Which transactions land, and how a client learns of it.

mod common;

use committor_localnet::{Localnet, features};
use futures::{StreamExt as _, future::join_all};
use serde_json::{Value, json};
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;
use solana_instruction::{AccountMeta, Instruction};
use solana_keypair::Keypair;
use solana_message::{AddressLookupTableAccount, VersionedMessage, v0, v1::TransactionConfig};
use solana_pubsub_client::nonblocking::pubsub_client::PubsubClient;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::{
    client_error::Error,
    config::{RpcSendTransactionConfig, RpcSignatureSubscribeConfig, RpcTransactionConfig},
    request::RpcRequest,
    response::RpcSignatureResult,
};
use solana_signer::Signer;
use solana_system_interface::instruction as system;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;
use solana_transaction_status_client_types::{UiTransactionEncoding, option_serializer::OptionSerializer};

use common::{SYSTEM_PROGRAM, confirmed, legacy, send, start, v1};

const MEMO_PROGRAM: Address = Address::from_str_const("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
const LOOKUP_TABLE_PROGRAM: Address = Address::from_str_const("AddressLookupTab1e1111111111111111111111111");

const ACCOUNT_LOCKS: usize = 64;
const V1_TRANSACTION_BYTES: usize = 4_096;
const LARGEST_ACCOUNT_BYTES: u64 = 10 * 1024 * 1024;

fn memo(bytes: usize) -> Instruction {
    Instruction { program_id: MEMO_PROGRAM, accounts: Vec::new(), data: vec![b'm'; bytes] }
}

/// In v1 an absent limit means none of it.
fn limits() -> TransactionConfig {
    TransactionConfig::default()
        .with_compute_unit_limit(200_000)
        .with_loaded_accounts_data_size_limit(1 << 20)
}

fn wire_bytes(transaction: &VersionedTransaction) -> usize {
    wincode::serialize(transaction).unwrap().len()
}

/// A v1 transaction as large as they can be.
fn largest_v1(payer: &Keypair, blockhash: Hash) -> VersionedTransaction {
    let overhead = wire_bytes(&v1(payer, &[memo(0)], blockhash, limits()));
    let transaction = v1(payer, &[memo(V1_TRANSACTION_BYTES - overhead)], blockhash, limits());
    assert_eq!(wire_bytes(&transaction), V1_TRANSACTION_BYTES);
    transaction
}

#[tokio::test]
async fn the_largest_v1_transaction_is_simulated_lands_and_can_be_read() {
    let (localnet, rpc) = start(Localnet::builder()).await;
    let blockhash = rpc.get_latest_blockhash().await.unwrap();
    let transaction = largest_v1(localnet.payer(), blockhash);

    let simulated = rpc.simulate_transaction(&transaction).await.unwrap().value;
    assert_eq!(simulated.err, None);

    send(&rpc, &transaction).await;

    let config = RpcTransactionConfig {
        encoding: Some(UiTransactionEncoding::Base64),
        commitment: Some(CommitmentConfig::confirmed()),
        max_supported_transaction_version: Some(1),
    };
    let read = rpc.get_transaction_with_config(&transaction.signatures[0], config).await.unwrap();
    let meta = read.transaction.meta.unwrap();
    assert_eq!(meta.fee, 5_000);
    assert_eq!(OptionSerializer::Some(simulated.units_consumed.unwrap()), meta.compute_units_consumed);
}

#[tokio::test]
async fn a_cluster_without_v1_transactions_refuses_them_and_no_others() {
    let (localnet, rpc) = start(Localnet::builder().without_v1_transactions()).await;
    let payer = localnet.payer();
    assert_eq!(rpc.get_multiple_accounts(&[features::ENABLE_TX_V1]).await.unwrap(), [None]);

    let blockhash = rpc.get_latest_blockhash().await.unwrap();
    let refused = v1(payer, &[memo(10)], blockhash, limits());
    for skip_preflight in [false, true] {
        let config = RpcSendTransactionConfig { skip_preflight, ..RpcSendTransactionConfig::default() };
        let error = rpc.send_transaction_with_config(&refused, config).await.unwrap_err();
        assert_eq!(error.get_transaction_error(), Some(TransactionError::UnsupportedVersion));
    }
    send(&rpc, &legacy(payer, &[memo(10)], blockhash)).await;

    let statuses = rpc.get_signature_statuses(&refused.signatures).await.unwrap().value;
    assert_eq!(statuses, [None]);
}

#[tokio::test]
async fn a_subscription_hears_of_a_confirmed_transfer() {
    let (localnet, rpc) = start(Localnet::builder()).await;
    let payer = localnet.payer();
    let blockhash = rpc.get_latest_blockhash().await.unwrap();
    let transfer = system::transfer(&payer.pubkey(), &Address::new_unique(), 1_000_000);
    let transaction = legacy(payer, &[transfer], blockhash);

    let pubsub = PubsubClient::new(localnet.ws_url()).await.unwrap();
    let config = RpcSignatureSubscribeConfig {
        commitment: Some(CommitmentConfig::confirmed()),
        enable_received_notification: None,
    };
    let (mut notifications, unsubscribe) =
        pubsub.signature_subscribe(&transaction.signatures[0], Some(config)).await.unwrap();
    rpc.send_transaction(&transaction).await.unwrap();

    match notifications.next().await.unwrap().value {
        RpcSignatureResult::ProcessedSignature(result) => assert_eq!(result.err, None),
        other => panic!("{other:?}"),
    }
    drop(notifications);
    unsubscribe().await;
}

#[tokio::test]
async fn an_account_of_ten_mebibytes_takes_one_transaction() {
    let (localnet, rpc) = start(Localnet::builder()).await;
    let payer = localnet.payer();
    let owner = committor_localnet::CHUNK_BUFFER_ID;
    let account = Address::create_with_seed(&payer.pubkey(), "large", &owner).unwrap();
    let rent = rpc.get_minimum_balance_for_rent_exemption(LARGEST_ACCOUNT_BYTES as usize).await.unwrap();
    let create = [
        system::transfer(&payer.pubkey(), &account, rent),
        system::allocate_with_seed(&account, &payer.pubkey(), "large", LARGEST_ACCOUNT_BYTES, &owner),
    ];
    let blockhash = rpc.get_latest_blockhash().await.unwrap();

    send(&rpc, &legacy(payer, &create, blockhash)).await;

    let created = rpc.get_account(&account).await.unwrap();
    assert_eq!((created.owner, created.data.len() as u64), (owner, LARGEST_ACCOUNT_BYTES));
}

/// Version 1 cannot name more than 64 accounts; version 0 can, through a lookup table.
#[tokio::test]
async fn sixty_four_accounts_can_be_locked_and_no_more() {
    let (localnet, rpc) = start(Localnet::builder()).await;
    let (at_limit, above) = lock(&localnet, &rpc).await;
    at_limit.unwrap();
    assert_eq!(above.unwrap_err().get_transaction_error(), Some(TransactionError::TooManyAccountLocks));

    let raised = Localnet::builder().activate_feature(features::INCREASE_TX_ACCOUNT_LOCK_LIMIT);
    let (localnet, rpc) = start(raised).await;
    let (_, above) = lock(&localnet, &rpc).await;
    above.unwrap();
}

/// Sends a transaction that locks 64 accounts, and one that locks 65.
async fn lock(localnet: &Localnet, rpc: &RpcClient) -> (Result<(), Error>, Result<(), Error>) {
    let payer = localnet.payer();
    let table = AddressLookupTableAccount {
        key: Address::new_unique(),
        addresses: (0..ACCOUNT_LOCKS).map(|_| Address::new_unique()).collect(),
    };
    write_lookup_table(rpc, &table).await;
    let blockhash = rpc.get_latest_blockhash().await.unwrap();

    let mut outcomes = Vec::new();
    for locks in [ACCOUNT_LOCKS, ACCOUNT_LOCKS + 1] {
        // The payer, and the system program, which does not mind accounts that it has no use for.
        let looked_up = locks - 2;
        let mut transfer = system::transfer(&payer.pubkey(), &payer.pubkey(), 1);
        transfer.accounts.extend(
            table.addresses[..looked_up].iter().map(|address| AccountMeta::new_readonly(*address, false)),
        );
        let message =
            v0::Message::try_compile(&payer.pubkey(), &[transfer], std::slice::from_ref(&table), blockhash)
                .unwrap();
        let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), &[payer]).unwrap();
        outcomes.push(match rpc.send_transaction(&transaction).await {
            Ok(signature) => {
                confirmed(rpc, &signature).await.unwrap();
                Ok(())
            }
            Err(error) => Err(error),
        });
    }
    let above = outcomes.pop().unwrap();
    (outcomes.pop().unwrap(), above)
}

/// Writes a table that is ready for use at once.
async fn write_lookup_table(rpc: &RpcClient, table: &AddressLookupTableAccount) {
    let mut data = Vec::new();
    data.extend(1u32.to_le_bytes()); // a table
    data.extend(u64::MAX.to_le_bytes()); // not deactivated
    data.extend([0; 8 + 1 + 1 + 32 + 2]); // extended in slot 0, without an authority
    data.extend(table.addresses.iter().flat_map(|address| address.to_bytes()));
    let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();

    let account = json!({
        "lamports": 1_000_000_000,
        "owner": LOOKUP_TABLE_PROGRAM.to_string(),
        "data": hex,
    });
    let request = RpcRequest::Custom { method: "surfnet_setAccount" };
    rpc.send::<Value>(request, json!([table.key.to_string(), account])).await.unwrap();
}

#[tokio::test]
async fn a_failed_preflight_comes_with_the_error_and_the_logs() {
    let (localnet, rpc) = start(Localnet::builder()).await;
    let payer = localnet.payer();
    let blockhash = rpc.get_latest_blockhash().await.unwrap();
    let unaffordable = system::transfer(&payer.pubkey(), &SYSTEM_PROGRAM, u64::MAX);

    let error = rpc.send_transaction(&legacy(payer, &[unaffordable], blockhash)).await.unwrap_err();

    assert!(
        matches!(error.get_transaction_error(), Some(TransactionError::InstructionError(0, _))),
        "{error:?}"
    );
    assert!(error.to_string().contains("insufficient lamports"), "{error}");
}

#[tokio::test]
async fn fifty_transactions_at_once_all_land() {
    let (localnet, rpc) = start(Localnet::builder()).await;
    let (payer, rpc) = (localnet.payer(), &rpc);
    let blockhash = rpc.get_latest_blockhash().await.unwrap();

    let outcomes = join_all((0..50).map(|index| async move {
        let transaction = v1(payer, &[memo(500 + index)], blockhash, limits());
        let signature = rpc.send_transaction(&transaction).await.unwrap();
        confirmed(rpc, &signature).await
    }))
    .await;

    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}
