//! How long a transaction can still land.

use std::collections::HashSet;

use solana_account::Account;
use solana_address::Address;
use solana_hash::Hash;
use solana_message::VersionedMessage;

/// The system program.
const SYSTEM_PROGRAM: Address = Address::new_from_array([0; 32]);
/// `SystemInstruction::AdvanceNonceAccount`, as bincode has it.
const ADVANCE_NONCE_ACCOUNT: [u8; 4] = [4, 0, 0, 0];
/// How an initialized nonce account of the current version begins: a version and a state, each of which is 1.
const INITIALIZED: [u8; 8] = [1, 0, 0, 0, 1, 0, 0, 0];
/// Where it holds its nonce: after these and its authority.
const NONCE: std::ops::Range<usize> = 40..72;

/// What ends the time in which a transaction can land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The block height passes this one.
    BlockHeight(u64),
    /// The nonce account holds another nonce, which any transaction that uses it sees to, one that fails included.
    Nonce {
        /// The nonce account.
        account: Address,
        /// The nonce that the transaction is signed with, in a blockhash's place.
        nonce: Hash,
    },
}

impl Lifetime {
    /// The lifetime of a message; `last_valid_block_height` counts unless the message uses a durable nonce.
    ///
    /// As the runtime has it, it does if its first instruction advances one.
    pub fn of(message: &VersionedMessage, last_valid_block_height: u64) -> Self {
        let nonce = || {
            let first = message.instructions().first()?;
            let keys = message.static_account_keys();
            let program = keys.get(usize::from(first.program_id_index))?;
            let account = usize::from(*first.accounts.first()?);
            let advances = *program == SYSTEM_PROGRAM
                && first.data.starts_with(&ADVANCE_NONCE_ACCOUNT)
                && message.is_maybe_writable_with_reserved_addresses(account, None::<&HashSet<Address>>);
            advances
                .then_some(Self::Nonce { account: *keys.get(account)?, nonce: *message.recent_blockhash() })
        };
        nonce().unwrap_or(Self::BlockHeight(last_valid_block_height))
    }
}

/// The nonce that an account holds; `None` if it is no nonce account, or not an initialized one.
pub fn stored_nonce(account: &Account) -> Option<Hash> {
    let nonce: [u8; 32] = account.data.get(NONCE)?.try_into().ok()?;
    let initialized = account.owner == SYSTEM_PROGRAM && account.data.starts_with(&INITIALIZED);
    initialized.then(|| Hash::new_from_array(nonce))
}

#[cfg(test)]
mod tests {
    use solana_instruction::Instruction;
    use solana_message::{Message, v0};
    use solana_system_interface::instruction::{advance_nonce_account, transfer};

    use super::*;

    fn address(byte: u8) -> Address {
        Address::new_from_array([byte; 32])
    }

    fn lifetime(instructions: &[Instruction]) -> Lifetime {
        let blockhash = Hash::new_from_array([9; 32]);
        let legacy = Message::new_with_blockhash(instructions, Some(&address(1)), &blockhash);
        let v0 = v0::Message::try_compile(&address(1), instructions, &[], blockhash).unwrap();
        let found = Lifetime::of(&VersionedMessage::Legacy(legacy), 7);
        assert_eq!(Lifetime::of(&VersionedMessage::V0(v0), 7), found);
        found
    }

    #[test]
    fn a_message_that_advances_a_nonce_first_lives_as_long_as_the_nonce() {
        let advance = advance_nonce_account(&address(2), &address(1));
        let other = transfer(&address(1), &address(3), 1);
        let nonce = Lifetime::Nonce { account: address(2), nonce: Hash::new_from_array([9; 32]) };
        assert_eq!(lifetime(&[advance.clone(), other.clone()]), nonce);
        assert_eq!(lifetime(&[other.clone(), advance]), Lifetime::BlockHeight(7));
        assert_eq!(lifetime(&[other]), Lifetime::BlockHeight(7));
        assert_eq!(lifetime(&[]), Lifetime::BlockHeight(7));
    }

    #[test]
    fn only_an_initialized_nonce_account_holds_a_nonce() {
        let mut account = Account { data: vec![0; 80], ..Account::default() };
        assert_eq!(stored_nonce(&account), None);
        account.data[..8].copy_from_slice(&INITIALIZED);
        account.data[NONCE].fill(5);
        assert_eq!(stored_nonce(&account), Some(Hash::new_from_array([5; 32])));
        account.owner = address(1);
        assert_eq!(stored_nonce(&account), None);
        assert_eq!(stored_nonce(&Account::default()), None);
    }
}
