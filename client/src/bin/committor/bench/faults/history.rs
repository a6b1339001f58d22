//! What the validator did, by its own account.

use std::{collections::HashMap, sync::Arc};

use committor_client::{
    chain::{Chain, RpcChain},
    deploy::Buffers,
};
use committor_sdk::{address, delegation};
use solana_account::Account;
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;
use solana_message::compiled_instruction::CompiledInstruction;
use solana_rpc_client::{
    nonblocking::rpc_client::RpcClient, rpc_client::GetConfirmedSignaturesForAddress2Config,
};
use solana_rpc_client_api::config::RpcTransactionConfig;
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction_status_client_types::{UiTransactionEncoding, option_serializer::OptionSerializer};

use super::work::Work;
use crate::exit::{CommandError, Kind};

/// Signatures that one `getSignaturesForAddress` gives at most.
const PAGE: usize = 1_000;
/// Where a commit's instruction names its nonce and its commit id: after the discriminator and the session.
const NONCE: usize = 9;
const COMMIT_ID: usize = 17;
/// Which account of an instruction is the delegated one.
const ACCOUNT: usize = 1;

/// A commit that a transaction has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    pub account: Address,
    pub nonce: u64,
    pub commit_id: u64,
}

/// What the validator did, and how things stand.
pub struct History {
    /// In the order of the chain.
    pub applied: Vec<Applied>,
    pub accounts: HashMap<Address, Option<Account>>,
    pub records: HashMap<Address, delegation::Delegation>,
    pub buffers: usize,
}

impl History {
    pub async fn read(chain: &Arc<RpcChain>, work: &Work) -> Result<Self, CommandError> {
        let cluster = |error| CommandError::new(Kind::Cluster, error);
        let authority = work.authority.pubkey();
        let found = chain.accounts(&work.accounts).await.map_err(cluster)?;
        let accounts = work.accounts.iter().copied().zip(found).collect();
        let addresses: Vec<Address> = work.accounts.iter().map(address::record).collect();
        let found = chain.accounts(&addresses).await.map_err(cluster)?;
        let record = |(account, found): (&Address, Option<Account>)| {
            Some((*account, delegation::Delegation::read(&found?.data).ok()?))
        };
        let records = work.accounts.iter().zip(found).filter_map(record).collect();
        let buffers = Buffers::new(chain.clone()).of(authority).await;
        let buffers = buffers.map_err(|error| CommandError::new(Kind::Cluster, error))?.len();
        let applied = applied(&transactions(&chain.client(), &authority).await?);
        Ok(Self { applied, accounts, records, buffers })
    }
}

/// A transaction that had an effect.
struct Transaction {
    /// Its accounts, those of lookup tables after those that it names itself.
    keys: Vec<Address>,
    instructions: Vec<CompiledInstruction>,
}

/// All transactions of an authority that had an effect, in the order of the chain.
async fn transactions(client: &RpcClient, authority: &Address) -> Result<Vec<Transaction>, CommandError> {
    let cluster = |error| CommandError::new(Kind::Cluster, error);
    let mut signatures: Vec<Signature> = Vec::new();
    let mut before = None;
    loop {
        let config = GetConfirmedSignaturesForAddress2Config {
            before,
            until: None,
            limit: Some(PAGE),
            commitment: Some(CommitmentConfig::confirmed()),
        };
        let page = client.get_signatures_for_address_with_config(authority, config).await;
        let page = page.map_err(cluster)?;
        let landed = page.iter().filter(|found| found.err.is_none());
        signatures.extend(landed.filter_map(|found| found.signature.parse::<Signature>().ok()));
        before = page.last().and_then(|found| found.signature.parse().ok());
        if page.len() < PAGE {
            break;
        }
    }
    let mut transactions = Vec::with_capacity(signatures.len());
    for signature in signatures.into_iter().rev() {
        let config = RpcTransactionConfig {
            encoding: Some(UiTransactionEncoding::Base64),
            commitment: Some(CommitmentConfig::confirmed()),
            max_supported_transaction_version: Some(1),
        };
        let found = client.get_transaction_with_config(&signature, config).await.map_err(cluster)?;
        let found = found.transaction;
        let unreadable = || CommandError::new(Kind::Cluster, format!("{signature} can't be decoded"));
        let message = found.transaction.decode().ok_or_else(unreadable)?.message;
        let mut keys = message.static_account_keys().to_vec();
        if let Some(OptionSerializer::Some(loaded)) = found.meta.map(|meta| meta.loaded_addresses) {
            let loaded = loaded.writable.iter().chain(&loaded.readonly);
            keys.extend(loaded.filter_map(|key| key.parse::<Address>().ok()));
        }
        transactions.push(Transaction { keys, instructions: message.instructions().to_vec() });
    }
    Ok(transactions)
}

/// The commits that transactions applied. One that is staged counts once it is finalized.
fn applied(transactions: &[Transaction]) -> Vec<Applied> {
    let mut staged: HashMap<Address, Applied> = HashMap::new();
    let mut all = Vec::new();
    for Transaction { keys, instructions } in transactions {
        let key = |index: u8| keys.get(usize::from(index)).copied();
        for instruction in instructions {
            let Some(account) = instruction.accounts.get(ACCOUNT).and_then(|index| key(*index)) else {
                continue;
            };
            if key(instruction.program_id_index) != Some(delegation::ID) {
                continue;
            }
            let data = &instruction.data;
            let is = |discriminator: &[u8]| data.starts_with(discriminator);
            let commit = || {
                let (nonce, commit_id) = (number(data, NONCE)?, number(data, COMMIT_ID)?);
                Some(Applied { account, nonce, commit_id })
            };
            if is(delegation::Stage::DISCRIMINATOR) {
                staged.extend(commit().map(|commit| (account, commit)));
            } else if is(delegation::Finalize::DISCRIMINATOR) {
                all.extend(staged.remove(&account));
            } else if is(delegation::Commit::DISCRIMINATOR)
                || is(delegation::CommitBuffer::DISCRIMINATOR)
                || is(delegation::CommitPatch::DISCRIMINATOR)
                || is(delegation::UndelegateBuffer::DISCRIMINATOR)
            {
                all.extend(commit());
            }
        }
    }
    all
}

fn number(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use committor_sdk::delegation::{Commit, CommitArgs, Finalize, Stage, StageArgs};
    use solana_instruction::Instruction;
    use solana_message::{VersionedMessage, v0};

    use super::*;

    fn address(byte: u8) -> Address {
        Address::new_from_array([byte; 32])
    }

    fn transaction(instructions: &[Instruction]) -> Transaction {
        let message = v0::Message::try_compile(&address(1), instructions, &[], Default::default());
        let message = VersionedMessage::V0(message.unwrap());
        let keys = message.static_account_keys().to_vec();
        Transaction { keys, instructions: message.instructions().to_vec() }
    }

    #[test]
    fn a_commit_counts_as_often_as_it_was_applied_and_a_staged_one_once_it_is_finalized() {
        let (authority, account, other, record) = (address(1), address(2), address(3), address(4));
        let commit = Commit { authority, account, record };
        let commit = commit.instruction(CommitArgs { session: 9, nonce: 1, commit_id: 77, data: &[] });
        let stage = Stage { authority, account: other, record, buffer: address(5) };
        let stage = stage.instruction(StageArgs { session: 9, nonce: 4, commit_id: 78, kind: 0 });
        let finalize = Finalize { authority, account: other, record, buffer: address(5) }.instruction();
        let twice = [transaction(&[commit.clone(), stage]), transaction(&[commit])];
        let once = Applied { account, nonce: 1, commit_id: 77 };
        assert_eq!(applied(&twice), [once, once]);
        let [first, second] = twice;
        let finalized =
            [first, second, transaction(std::slice::from_ref(&finalize)), transaction(&[finalize])];
        assert_eq!(applied(&finalized), [once, once, Applied { account: other, nonce: 4, commit_id: 78 }]);
    }
}
