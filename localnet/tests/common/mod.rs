//! What the tests share: starting a localnet, and sending transactions to it as a client would.

#![allow(dead_code, reason = "every test binary compiles this file and uses its part of it")]

use std::time::{Duration, Instant};

use committor_localnet::{Localnet, LocalnetBuilder};
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{Message, VersionedMessage, v1};
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;

pub(crate) const SYSTEM_PROGRAM: Address = Address::from_str_const("11111111111111111111111111111111");

pub(crate) async fn start(builder: LocalnetBuilder) -> (Localnet, RpcClient) {
    let localnet = builder.start().await.unwrap();
    let rpc = client(&localnet);
    (localnet, rpc)
}

pub(crate) fn client(localnet: &Localnet) -> RpcClient {
    RpcClient::new_with_commitment(localnet.rpc_url().to_owned(), CommitmentConfig::confirmed())
}

pub(crate) fn legacy(payer: &Keypair, instructions: &[Instruction], blockhash: Hash) -> VersionedTransaction {
    let message = Message::new_with_blockhash(instructions, Some(&payer.pubkey()), &blockhash);
    VersionedTransaction::try_new(VersionedMessage::Legacy(message), &[payer]).unwrap()
}

pub(crate) fn v1(
    payer: &Keypair,
    instructions: &[Instruction],
    blockhash: Hash,
    config: v1::TransactionConfig,
) -> VersionedTransaction {
    let message =
        v1::Message::try_compile_with_config(&payer.pubkey(), instructions, blockhash, config).unwrap();
    VersionedTransaction::try_new(VersionedMessage::V1(message), &[payer]).unwrap()
}

/// Waits until the transaction is `confirmed` and returns how it ended.
pub(crate) async fn confirmed(rpc: &RpcClient, signature: &Signature) -> Result<(), TransactionError> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        let statuses = rpc.get_signature_statuses(&[*signature]).await.unwrap().value;
        match statuses.into_iter().next().flatten() {
            Some(status) if status.satisfies_commitment(CommitmentConfig::confirmed()) => {
                return status.err.map_or(Ok(()), Err);
            }
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    panic!("{signature} was not confirmed in time");
}

pub(crate) async fn send(rpc: &RpcClient, transaction: &VersionedTransaction) {
    let signature = rpc.send_transaction(transaction).await.unwrap();
    confirmed(rpc, &signature).await.unwrap();
}
