//! Actions as they lie in the store.

use borsh::{BorshDeserialize, BorshSerialize};
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};

use super::StoreError;
use crate::types::Action;

/// The stored form, apart from the one in memory so that neither decides about the other.
#[derive(BorshSerialize, BorshDeserialize)]
struct StoredAction {
    program: [u8; 32],
    accounts: Vec<StoredMeta>,
    data: Vec<u8>,
    compute_units: Option<u32>,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct StoredMeta {
    address: [u8; 32],
    signer: bool,
    writable: bool,
}

/// The bytes of a bundle's actions; `None` if it has none.
pub(super) fn encode(actions: &[Action]) -> Option<Vec<u8>> {
    if actions.is_empty() {
        return None;
    }
    let stored = actions.iter().map(|action| StoredAction {
        program: action.instruction.program_id.to_bytes(),
        accounts: action
            .instruction
            .accounts
            .iter()
            .map(|meta| StoredMeta {
                address: meta.pubkey.to_bytes(),
                signer: meta.is_signer,
                writable: meta.is_writable,
            })
            .collect(),
        data: action.instruction.data.clone(),
        compute_units: action.compute_units,
    });
    // Writing to memory fails only beyond 4 GiB.
    borsh::to_vec(&stored.collect::<Vec<_>>()).ok()
}

/// The actions of a bundle.
pub(super) fn decode(bytes: Option<Vec<u8>>) -> Result<Vec<Action>, StoreError> {
    let Some(bytes) = bytes else { return Ok(Vec::new()) };
    let stored: Vec<StoredAction> = borsh::from_slice(&bytes)
        .map_err(|error| StoreError::Corrupt { what: "actions", found: error.to_string() })?;
    let action = |stored: StoredAction| Action {
        instruction: Instruction {
            program_id: Address::new_from_array(stored.program),
            accounts: stored
                .accounts
                .into_iter()
                .map(|meta| AccountMeta {
                    pubkey: Address::new_from_array(meta.address),
                    is_signer: meta.signer,
                    is_writable: meta.writable,
                })
                .collect(),
            data: stored.data,
        },
        compute_units: stored.compute_units,
    };
    Ok(stored.into_iter().map(action).collect())
}
