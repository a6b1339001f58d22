//! Accounts of the upgradeable loader (loader-v3).

use solana_account::Account;
use solana_address::Address;
use solana_loader_v3_interface::state::UpgradeableLoaderState;
use solana_sdk_ids::bpf_loader_upgradeable;

use crate::plan::{LOADER_BUFFER_HEADER, PROGRAM_DATA_HEADER};

/// What an account of the loader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoaderAccount<'a> {
    /// A buffer.
    Buffer { authority: Option<Address>, content: &'a [u8] },
    /// A program, whose bytes are in another account.
    Program { data: Address },
    /// The bytes of a program, followed by zeroes.
    ProgramData { slot: u64, authority: Option<Address>, content: &'a [u8] },
}

impl<'a> LoaderAccount<'a> {
    /// Reads an account; `None` if it is not the loader's, or nothing yet.
    pub(super) fn of(account: &'a Account) -> Option<Self> {
        if account.owner != bpf_loader_upgradeable::ID {
            return None;
        }
        let content = |header: usize| account.data.get(header..).unwrap_or_default();
        match bincode::deserialize(&account.data).ok()? {
            UpgradeableLoaderState::Uninitialized => None,
            UpgradeableLoaderState::Buffer { authority_address: authority } => {
                Some(Self::Buffer { authority, content: content(LOADER_BUFFER_HEADER) })
            }
            UpgradeableLoaderState::Program { programdata_address: data } => Some(Self::Program { data }),
            UpgradeableLoaderState::ProgramData { slot, upgrade_authority_address: authority } => {
                Some(Self::ProgramData { slot, authority, content: content(PROGRAM_DATA_HEADER) })
            }
        }
    }
}
