//! Transfers that no two runs share.

use committor_client::chain::{RecentBlockhash, SignedTransaction};
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;

use crate::exit::{CommandError, Kind};

/// Enough for a new account to be kept.
const LAMPORTS: u64 = 1_000_000;

/// A transfer to `receiver`, different for each number.
pub fn signed(
    payer: &Keypair,
    receiver: &Address,
    number: u64,
    recent: RecentBlockhash,
) -> Result<SignedTransaction, CommandError> {
    let instruction = transfer(&payer.pubkey(), receiver, LAMPORTS + number);
    let message = v0::Message::try_compile(&payer.pubkey(), &[instruction], &[], recent.blockhash);
    let message = VersionedMessage::V0(message.map_err(other)?);
    let transaction = VersionedTransaction::try_new(message, &[payer]).map_err(other)?;
    let last_valid_block_height = recent.last_valid_block_height;
    Ok(SignedTransaction { transaction, last_valid_block_height, preflight: true })
}

pub fn cluster(error: impl std::error::Error + Send + Sync + 'static) -> CommandError {
    CommandError::new(Kind::Cluster, error)
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> CommandError {
    CommandError::new(Kind::Other, error)
}
