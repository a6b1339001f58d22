//! The virtual machine, its signers, and sending.

use std::{
    collections::BTreeMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use committor_localnet::{features, programs};
use litesvm::LiteSVM;
use sha2::{Digest, Sha256};
use solana_account::Account;
use solana_address::Address;
use solana_clock::Clock;
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0, v1};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use crate::Outcome;

/// Lamports of every signer at the start: a million SOL.
pub const LAMPORTS: u64 = 1_000_000_000_000_000;

/// A virtual machine with the three programs loaded.
pub struct World {
    pub(crate) svm: LiteSVM,
    keypairs: BTreeMap<Address, Keypair>,
    /// Pays all fees.
    pub payer: Address,
    /// The authority of buffers and delegated accounts. Not the payer.
    pub authority: Address,
}

/// The format of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// At most 1,232 bytes, limits in instructions.
    V0,
    /// At most 4,096 bytes, limits in the message.
    V1,
}

impl Format {
    const fn max_len(self) -> usize {
        match self {
            Self::V0 => 1_232,
            Self::V1 => 4_096,
        }
    }
}

/// What a transaction may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Compute units.
    pub compute_units: u32,
    /// Bytes of the accounts that it loads.
    pub loaded_data: u32,
}

impl Limits {
    /// The most that the chain allows.
    pub const MAX: Self = Self { compute_units: 1_400_000, loaded_data: 64 * 1024 * 1024 };
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A new world, in which nothing has happened yet.
    pub fn new() -> Self {
        // Loading verifies the programs, which takes longer than most tests: done once, then copied.
        static EMPTY: LazyLock<Mutex<LiteSVM>> = LazyLock::new(|| Mutex::new(empty()));
        let svm = EMPTY.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let none = Address::default();
        let mut world = Self { svm, keypairs: BTreeMap::new(), payer: none, authority: none };
        world.payer = world.signer("payer");
        world.authority = world.signer("authority");
        world
    }

    /// The somebody of this name, the same in every run, with [`LAMPORTS`]. Signs whatever needs the signature.
    pub fn signer(&mut self, name: &str) -> Address {
        let keypair = Keypair::new_from_array(Sha256::digest(name).into());
        let address = keypair.pubkey();
        if self.keypairs.insert(address, keypair).is_none() {
            self.give(address, LAMPORTS);
        }
        address
    }

    /// Sends a v1 transaction with the highest limits.
    ///
    /// # Errors
    /// [`crate::Failure`] if it fails.
    pub fn send(&mut self, instructions: &[Instruction]) -> Outcome {
        self.send_as(Format::V1, Limits::MAX, instructions)
    }

    /// Sends a transaction, signed by everybody whose signature it needs and paid for by [`Self::payer`].
    ///
    /// The next one is never a duplicate of it: the blockhash changes.
    ///
    /// # Errors
    /// [`crate::Failure`] if it fails.
    ///
    /// # Panics
    /// If it is no transaction at all: too long, or to be signed by somebody unknown.
    #[track_caller]
    pub fn send_as(&mut self, format: Format, limits: Limits, instructions: &[Instruction]) -> Outcome {
        let message = self.message(format, limits, instructions);
        let transaction = match self.svm.get_sigverify() {
            true => self.sign(message),
            false => unsigned(message),
        };
        let len = wincode::serialized_size(&transaction).expect("a transaction can be serialized");
        assert!(len as usize <= format.max_len(), "a {format:?} transaction of {len} bytes");
        let outcome = self.svm.send_transaction(transaction);
        self.svm.expire_blockhash();
        outcome.map(Into::into).map_err(Into::into)
    }

    /// A transaction as [`Self::send_as`] makes it, without signatures, however long it is.
    pub fn unsigned_transaction(
        &self,
        format: Format,
        limits: Limits,
        instructions: &[Instruction],
    ) -> VersionedTransaction {
        unsigned(self.message(format, limits, instructions))
    }

    fn sign(&self, message: VersionedMessage) -> VersionedTransaction {
        let signers = usize::from(message.header().num_required_signatures);
        let signers: Vec<&Keypair> = message.static_account_keys()[..signers]
            .iter()
            .map(|address| {
                self.keypairs
                    .get(address)
                    .unwrap_or_else(|| panic!("{address} can't sign: it has no keypair"))
            })
            .collect();
        VersionedTransaction::try_new(message, &signers).expect("all signers are there")
    }

    fn message(&self, format: Format, limits: Limits, instructions: &[Instruction]) -> VersionedMessage {
        let blockhash = self.svm.latest_blockhash();
        match format {
            Format::V0 => {
                let mut all = vec![
                    ComputeBudgetInstruction::set_compute_unit_limit(limits.compute_units),
                    ComputeBudgetInstruction::set_loaded_accounts_data_size_limit(limits.loaded_data),
                ];
                all.extend_from_slice(instructions);
                let message = v0::Message::try_compile(&self.payer, &all, &[], blockhash);
                VersionedMessage::V0(message.expect("no v0 message"))
            }
            Format::V1 => {
                let config = v1::TransactionConfig::default()
                    .with_compute_unit_limit(limits.compute_units)
                    .with_loaded_accounts_data_size_limit(limits.loaded_data);
                let message =
                    v1::Message::try_compile_with_config(&self.payer, instructions, blockhash, config);
                VersionedMessage::V1(message.expect("no v1 message"))
            }
        }
    }

    /// Goes on to `slot`.
    pub fn warp_to(&mut self, slot: u64) {
        self.svm.warp_to_slot(slot);
    }

    /// The slot that transactions run in.
    pub fn slot(&self) -> u64 {
        self.svm.get_sysvar::<Clock>().slot
    }

    /// Goes on to the next slot.
    pub fn next_slot(&mut self) {
        self.warp_to(self.slot() + 1);
    }

    /// Lets everybody sign from now on, also addresses that are derived from a program: stands for calls that the program
    /// signs.
    pub fn without_verification(&mut self) {
        let svm = std::mem::take(&mut self.svm);
        self.svm = svm.with_sigverify(false);
    }

    /// The rent-exempt minimum of an account of `len` bytes, in lamports.
    pub fn rent(&self, len: usize) -> u64 {
        self.svm.minimum_balance_for_rent_exemption(len)
    }

    /// The account at `address`, if there is one.
    pub fn account(&self, address: &Address) -> Option<Account> {
        self.svm.get_account(address).filter(|account| account.lamports > 0)
    }

    /// All accounts of an owner.
    pub fn accounts_of(&self, owner: &Address) -> Vec<(Address, Account)> {
        self.svm.get_program_accounts(owner)
    }

    /// The data of the account at `address`.
    ///
    /// # Panics
    /// If there is no account.
    #[track_caller]
    pub fn data(&self, address: &Address) -> Vec<u8> {
        self.account(address).unwrap_or_else(|| panic!("no account at {address}")).data
    }

    /// The lamports at `address`.
    pub fn lamports(&self, address: &Address) -> u64 {
        self.account(address).map_or(0, |account| account.lamports)
    }

    /// Gives `lamports` to an address, out of nowhere.
    pub fn give(&mut self, address: Address, lamports: u64) {
        let mut account = self.account(&address).unwrap_or_default();
        account.lamports += lamports;
        self.put(address, account);
    }

    /// Puts an account at `address`, whatever was there.
    pub fn put(&mut self, address: Address, account: Account) {
        self.svm.set_account(address, account).expect("not a sysvar and not a broken program");
    }

    /// Puts a rent-exempt account of `owner` at `address`.
    pub fn forge(&mut self, address: Address, owner: Address, data: Vec<u8>) {
        let lamports = self.rent(data.len());
        self.put(address, Account { lamports, data, owner, executable: false, rent_epoch: u64::MAX });
    }

    /// Changes the data of the account at `address` behind everybody's back.
    pub fn edit(&mut self, address: Address, change: impl FnOnce(&mut Vec<u8>)) {
        let mut account = self.account(&address).unwrap_or_else(|| panic!("no account at {address}"));
        change(&mut account.data);
        self.put(address, account);
    }
}

fn unsigned(message: VersionedMessage) -> VersionedTransaction {
    let signers = usize::from(message.header().num_required_signatures);
    VersionedTransaction { signatures: vec![Signature::default(); signers], message }
}

fn empty() -> LiteSVM {
    let mut features = LiteSVM::mainnet_feature_set();
    features.activate(&features::ENABLE_TX_V1, 0);
    features.deactivate(&features::INCREASE_TX_ACCOUNT_LOCK_LIMIT);
    let mut svm = LiteSVM::default()
        .with_feature_set(features)
        .with_builtins()
        .with_sysvars()
        .with_feature_accounts()
        .with_sigverify(true)
        .with_blockhash_check(true)
        .with_log_bytes_limit(None);
    let all = [
        (programs::CHUNK_BUFFER_ID, programs::CHUNK_BUFFER),
        (programs::DELEGATION_ID, programs::DELEGATION),
        (programs::OWNER_PROGRAM_ID, programs::OWNER_PROGRAM),
    ];
    for (address, bytes) in all {
        svm.add_program(address, bytes).expect("the checked-in program loads");
    }
    svm
}

/// `len` bytes, none of them zero, that `salt` tells from others of that length.
pub fn pattern(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|index| ((index * 7 + index / 251 + usize::from(salt) * 31) % 255) as u8 + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1_transactions_are_open_and_the_higher_limit_of_account_locks_is_not() {
        let world = World::new();
        // A gate that is open has an account.
        assert!(world.account(&features::ENABLE_TX_V1).is_some());
        assert!(world.account(&features::INCREASE_TX_ACCOUNT_LOCK_LIMIT).is_none());
    }
}
