//! What is not run here, because the answer might differ from the node's.

use std::collections::HashSet;

use litesvm::LiteSVM;
use solana_account::ReadableAccount;
use solana_address::Address;
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_message::VersionedMessage;
use solana_sdk_ids::{
    bpf_loader, bpf_loader_deprecated, bpf_loader_upgradeable, compute_budget, ed25519_program,
    native_loader, secp256k1_program, secp256r1_program, sysvar,
};
use solana_transaction::versioned::VersionedTransaction;

use super::{Fallback, needs};
use crate::chain::Lifetime;

/// What every account that a transaction loads counts for, beside its data.
const ACCOUNT_BASE_LEN: u64 = 64;
/// What every lookup table counts for.
const TABLE_LEN: u64 = 8_248;
/// What a transaction of an older format may load if it does not say.
const DEFAULT_LOADED_LIMIT: u64 = 64 << 20;
/// The system call that tells of validators' stake: by name, as programs of the older formats have it, and by its hash.
const EPOCH_STAKE: &[u8] = b"sol_get_epoch_stake";
const EPOCH_STAKE_HASH: [u8; 4] = 0x5be9_2f4a_u32.to_le_bytes();
/// Programs whose work is done before the virtual machine.
const PRECOMPILES: [Address; 3] = [ed25519_program::ID, secp256k1_program::ID, secp256r1_program::ID];

/// What shows before any account is known.
pub(super) fn before(transaction: &VersionedTransaction) -> Result<(), Fallback> {
    match Lifetime::of(&transaction.message, 0) {
        Lifetime::Nonce { .. } => Err(Fallback::DurableNonce),
        Lifetime::BlockHeight(_) => Ok(()),
    }
}

/// Whether a program may ask for what is in no account.
pub(super) fn asks_for_stake(code: &[u8]) -> bool {
    let holds = |needle: &[u8]| code.windows(needle.len()).any(|window| window == needle);
    holds(EPOCH_STAKE) || holds(&EPOCH_STAKE_HASH)
}

/// Whether the virtual machine can run a transaction as the node does, and how many bytes of accounts that loads.
pub(super) fn on_accounts(
    transaction: &VersionedTransaction,
    keys: &[Address],
    svm: &LiteSVM,
) -> Result<u64, Fallback> {
    let message = &transaction.message;
    let accounts = svm.accounts_db();
    for instruction in message.instructions() {
        let program = keys.get(usize::from(instruction.program_id_index)).copied().unwrap_or_default();
        let account = accounts.get_account_ref(&program).filter(|account| account.executable());
        let owner = account.map(|account| *account.owner()).ok_or(Fallback::NoProgram(program))?;
        let loaders =
            [native_loader::ID, bpf_loader::ID, bpf_loader_deprecated::ID, bpf_loader_upgradeable::ID];
        if !loaders.contains(&owner) {
            return Err(Fallback::NoProgram(program));
        }
    }
    for key in keys {
        let is_builtin =
            accounts.get_account_ref(key).is_some_and(|account| *account.owner() == native_loader::ID);
        if PRECOMPILES.contains(key) || is_builtin && accounts.programs_cache.find(key).is_none() {
            return Err(Fallback::Builtin(*key));
        }
    }
    let (loads, allows) = (loaded_len(message, keys, svm), loaded_limit(message));
    if loads > allows { Err(Fallback::LoadedData { loads, allows }) } else { Ok(loads) }
}

/// Bytes of accounts that a transaction loads, as the chain counts them: the code of programs too, once.
fn loaded_len(message: &VersionedMessage, keys: &[Address], svm: &LiteSVM) -> u64 {
    let accounts = svm.accounts_db();
    let tables = message.address_table_lookups().unwrap_or_default().len() as u64;
    let len = |key: &Address| accounts.get_account_ref(key).map(|account| account.data().len() as u64);
    let mut counted: HashSet<Address> = keys.iter().copied().collect();
    let mut total = tables * TABLE_LEN;
    for key in keys.iter().filter(|key| **key != sysvar::instructions::ID) {
        total += len(key).map_or(0, |len| ACCOUNT_BASE_LEN + len);
        let code = accounts.get_account_ref(key).and_then(needs::code_of);
        if let Some(code) = code.filter(|code| counted.insert(*code)) {
            total += len(&code).map_or(0, |len| ACCOUNT_BASE_LEN + len);
        }
    }
    total
}

/// How many bytes of accounts a transaction may load.
fn loaded_limit(message: &VersionedMessage) -> u64 {
    if let VersionedMessage::V1(message) = message {
        return message.config.loaded_accounts_data_size_limit.unwrap_or_default().into();
    }
    let keys = message.static_account_keys();
    let mut limits = message.instructions().iter().filter_map(|instruction| {
        let program = keys.get(usize::from(instruction.program_id_index))?;
        if *program != compute_budget::ID {
            return None;
        }
        match borsh::from_slice(&instruction.data).ok()? {
            ComputeBudgetInstruction::SetLoadedAccountsDataSizeLimit(limit) => Some(u64::from(limit)),
            _ => None,
        }
    });
    limits.next_back().unwrap_or(DEFAULT_LOADED_LIMIT).min(DEFAULT_LOADED_LIMIT)
}
