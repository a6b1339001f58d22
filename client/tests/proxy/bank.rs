//! Agave's own runtime as the node: what a validator's `simulateTransaction` runs.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use agave_feature_set::FEATURE_NAMES;
use committor_client::{
    chain::ChainError,
    proxy::{Batch, Execution, Source},
};
use committor_localnet::programs;
use solana_account::Account;
use solana_accounts_db::accounts_db::ACCOUNTS_DB_CONFIG_FOR_TESTING;
use solana_address::Address;
use solana_leader_schedule::SlotLeader;
use solana_runtime::{
    bank::Bank,
    bank_forks::BankForks,
    genesis_utils::{ValidatorVoteKeypairs, create_genesis_config_with_vote_accounts},
    runtime_config::RuntimeConfig,
};
use solana_sdk_ids::{bpf_loader_upgradeable, feature};
use solana_transaction::{TransactionVerificationMode, versioned::VersionedTransaction};

/// A bank, and how it is asked.
#[derive(Clone)]
pub struct Node {
    bank: Arc<Mutex<Arc<Bank>>>,
    forks: Arc<RwLock<BankForks>>,
    /// Calls for accounts.
    pub calls: Arc<AtomicU64>,
    /// Addresses that were asked for, whole.
    pub asked: Arc<Mutex<Vec<Address>>>,
    /// How many of the next batches are torn: one half is of another moment.
    pub torn: Arc<AtomicU64>,
    /// How many of the next batches fail.
    pub failing: Arc<AtomicU64>,
    pub floor: Arc<AtomicU64>,
}

impl Node {
    /// A node at some slot of a chain that begins with these accounts.
    pub fn new(accounts: impl IntoIterator<Item = (Address, Account)>) -> Self {
        let validator = ValidatorVoteKeypairs::new_rand();
        let stakes = vec![1_000_000_000_000];
        let genesis = create_genesis_config_with_vote_accounts(1_000_000_000_000, &[&validator], stakes);
        let mut genesis = genesis.genesis_config;
        genesis.rent = solana_rent::Rent::default();
        genesis.accounts.extend(accounts);
        let exit = Arc::new(AtomicBool::new(false));
        let (runtime, database) = (Arc::new(RuntimeConfig::default()), ACCOUNTS_DB_CONFIG_FOR_TESTING);
        let bank =
            Bank::new_from_genesis(&genesis, runtime, vec![], None, database, None, None, exit, None, None);
        let forks = BankForks::new_rw_arc(bank);
        let first = forks.read().unwrap().root_bank();
        Self {
            bank: Arc::new(Mutex::new(next(&forks, first, 40, &[]))),
            forks,
            calls: Arc::default(),
            asked: Arc::default(),
            torn: Arc::default(),
            failing: Arc::default(),
            floor: Arc::default(),
        }
    }

    pub fn bank(&self) -> Arc<Bank> {
        self.bank.lock().unwrap().clone()
    }

    /// Goes on to the next slot, in which these accounts are others.
    pub fn advance(&self, changes: &[(Address, Account)]) {
        let bank = self.bank();
        let slot = bank.slot() + 1;
        *self.bank.lock().unwrap() = next(&self.forks, bank, slot, changes);
    }

    /// The transaction, signed with a blockhash that the node knows.
    pub fn with_blockhash(&self, mut transaction: VersionedTransaction) -> VersionedTransaction {
        transaction.message.set_recent_blockhash(self.bank().last_blockhash());
        transaction
    }

    /// What the node itself says of a transaction. `None` for what it does not tell.
    pub fn simulate(&self, transaction: &VersionedTransaction) -> (Execution, bool) {
        let bank = self.bank();
        let verified = bank
            .verify_transaction(transaction.clone(), TransactionVerificationMode::HashOnly)
            .expect("a transaction that a node would take");
        let found = bank.simulate_transaction(&verified, false);
        let has_succeeded = found.result.is_ok();
        let writable =
            |(index, (address, account)): (usize, (Address, solana_account::AccountSharedData))| {
                (has_succeeded && verified.message().is_writable(index)).then(|| (address, account.into()))
            };
        let execution = Execution {
            outcome: found.result,
            logs: found.logs,
            compute_units: found.units_consumed,
            return_data: found.return_data.map(|returned| (returned.program_id, returned.data)),
            fee_lamports: found.fee.unwrap_or_default(),
            loaded_data: found.loaded_accounts_data_size.into(),
            accounts: found.post_simulation_accounts.into_iter().enumerate().filter_map(writable).collect(),
        };
        (execution, found.fee.is_some())
    }

    /// Asked for again and again, without a view in between.
    pub fn addresses_asked_twice(&self) -> Vec<Address> {
        let mut seen = HashSet::new();
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|address| !seen.insert(**address)).copied().collect()
    }

    fn account(&self, address: &Address, len: Option<usize>) -> Option<Account> {
        let mut account = Account::from(self.bank().get_account(address)?);
        account.data.truncate(len.unwrap_or(usize::MAX));
        Some(account)
    }
}

fn next(
    forks: &RwLock<BankForks>,
    parent: Arc<Bank>,
    slot: u64,
    changes: &[(Address, Account)],
) -> Arc<Bank> {
    let bank = Bank::new_from_parent(parent, SlotLeader::default(), slot);
    for (address, account) in changes {
        bank.store_account(address, &account.clone().into());
    }
    let bank = forks.write().unwrap().insert(bank).clone_without_scheduler();
    bank.freeze();
    bank
}

fn take(count: &AtomicU64) -> bool {
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Source for Node {
    async fn batch(&self, addresses: &[Address], len: Option<usize>) -> Result<Batch, ChainError> {
        assert!(addresses.len() <= committor_client::proxy::MAX_BATCH);
        self.calls.fetch_add(1, Ordering::SeqCst);
        if take(&self.failing) {
            let found = "a fault".to_owned();
            return Err(ChainError::Nonsense { method: "getMultipleAccounts", found, expected: "accounts" });
        }
        if len.is_none() {
            self.asked
                .lock()
                .unwrap()
                .extend(addresses.iter().filter(|key| **key != solana_sdk_ids::sysvar::clock::ID));
        }
        let mut accounts: Vec<Option<Account>> =
            addresses.iter().map(|address| self.account(address, len)).collect();
        if take(&self.torn)
            && let Some(Some(clock)) = accounts.last_mut()
        {
            clock.data[0] ^= 1;
        }
        Ok(Batch { slot: self.bank().slot(), accounts })
    }

    async fn features(&self) -> Result<Vec<(Address, Account)>, ChainError> {
        let found = FEATURE_NAMES.keys().filter_map(|key| Some((*key, self.account(key, Some(9))?)));
        Ok(found.filter(|(_, account)| account.owner == feature::ID).collect())
    }

    fn floor(&self) -> u64 {
        self.floor.load(Ordering::SeqCst)
    }
}

/// The three programs as a deployer leaves them: an account, and another one with the code.
pub fn programs() -> Vec<(Address, Account)> {
    let all = [
        (programs::CHUNK_BUFFER_ID, programs::CHUNK_BUFFER),
        (programs::DELEGATION_ID, programs::DELEGATION),
        (programs::OWNER_PROGRAM_ID, programs::OWNER_PROGRAM),
    ];
    all.into_iter().flat_map(|(address, code)| deployed(address, code, 0)).collect()
}

/// A program that was deployed in a slot.
pub fn deployed(address: Address, code: &[u8], slot: u64) -> [(Address, Account); 2] {
    let (code_address, _) = Address::find_program_address(&[address.as_ref()], &bpf_loader_upgradeable::ID);
    let account = |data: Vec<u8>, executable| Account {
        lamports: 100_000_000_000,
        data,
        owner: bpf_loader_upgradeable::ID,
        executable,
        rent_epoch: u64::MAX,
    };
    let program = [&2_u32.to_le_bytes()[..], code_address.as_ref()].concat();
    let header = [&3_u32.to_le_bytes()[..], &slot.to_le_bytes(), &[0; 33]].concat();
    [(address, account(program, true)), (code_address, account([&header, code].concat(), false))]
}
