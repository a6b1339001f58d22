//! Accounts of one slot, and what transactions do to them.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, RwLock, atomic::Ordering},
};

use litesvm::{
    LiteSVM,
    types::{FailedTransactionMetadata, TransactionMetadata},
};
use solana_account::Account;
use solana_address::Address;
use solana_sdk_ids::{native_loader, sysvar};
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;

use super::{
    Counters, Fallback, Source, checks,
    fetch::{Fetched, Moment, fetch},
    machine::{self, Machine},
    needs::{self, SYSVARS},
};

/// Rounds that fetching may take: three, and one more for a program that was deployed anew.
const MAX_ROUNDS: usize = 4;

/// What a transaction did, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Whether it succeeded.
    pub outcome: Result<(), TransactionError>,
    /// What the programs logged, whole.
    pub logs: Vec<String>,
    /// Compute units used, up to the failure if it failed.
    pub compute_units: u64,
    /// What the last program that returned something returned.
    pub return_data: Option<(Address, Vec<u8>)>,
    /// The fee, in lamports.
    pub fee_lamports: u64,
    /// Bytes of accounts that it loaded, as the chain counts them.
    pub loaded_data: u64,
    /// The accounts that it may write, as they are afterwards; none if it failed.
    pub accounts: Vec<(Address, Account)>,
}

/// Accounts of one slot, and that others do not exist. Grows with what is asked of it.
pub struct View {
    moment: Moment,
    machine: Arc<Machine>,
    state: RwLock<State>,
    counters: Arc<Counters>,
}

struct State {
    svm: LiteSVM,
    /// Accounts that the view has, or knows not to exist.
    known: HashSet<Address>,
    /// Programs whose code is not known yet.
    pending: HashMap<Address, Account>,
    /// Programs that were loaded into this view alone, and can't be run.
    unfit: HashMap<Address, Fallback>,
}

impl State {
    fn account(&self, address: &Address) -> Option<Account> {
        self.pending.get(address).cloned().or_else(|| self.svm.get_account(address))
    }
}

impl View {
    pub(super) const fn machine(&self) -> &Arc<Machine> {
        &self.machine
    }

    /// The slot that the accounts are of.
    pub const fn slot(&self) -> u64 {
        self.moment.slot
    }

    /// Runs a transaction, and forgets what it did. Its signatures and its blockhash are not looked at.
    ///
    /// # Errors
    /// [`Fallback`] if it is not run here.
    pub async fn simulate(
        self: &Arc<Self>,
        transaction: VersionedTransaction,
    ) -> Result<Execution, Fallback> {
        let view = self.clone();
        let run = move || {
            let state = view.state.read().map_err(|_| Fallback::Broken)?;
            let (keys, loaded_data) = view.check(&transaction, &state, &state.svm)?;
            let done = state.svm.simulate_transaction(transaction);
            let done = done.map(|done| (done.meta, done.post_accounts));
            view.counters.simulated.fetch_add(1, Ordering::Relaxed);
            Ok(execution(done, loaded_data, &keys))
        };
        self.blocking(run).await
    }

    /// Runs transactions one after the other, each on what those before it did, and forgets all of it. Ends with the first
    /// that fails.
    ///
    /// # Errors
    /// [`Fallback`] if one of them is not run here.
    pub async fn simulate_in_order(
        self: &Arc<Self>,
        transactions: Vec<VersionedTransaction>,
    ) -> Result<Vec<Execution>, Fallback> {
        let view = self.clone();
        let run = move || {
            let state = view.state.read().map_err(|_| Fallback::Broken)?;
            let mut svm = state.svm.clone().with_transaction_history(0);
            let mut executions = Vec::with_capacity(transactions.len());
            for transaction in transactions {
                let (keys, loaded_data) = view.check(&transaction, &state, &svm)?;
                // Of a failed transaction nothing stays but its fee, and it is the last.
                let done = svm.simulate_transaction(transaction.clone());
                let done = done.map(|done| (done.meta, done.post_accounts));
                view.counters.simulated.fetch_add(1, Ordering::Relaxed);
                let execution = execution(done, loaded_data, &keys);
                let has_failed = execution.outcome.is_err();
                for (address, account) in &execution.accounts {
                    svm.set_account(*address, account.clone()).map_err(|_| Fallback::Broken)?;
                }
                executions.push(execution);
                if has_failed {
                    break;
                }
            }
            Ok(executions)
        };
        self.blocking(run).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> Result<T, Fallback> + Send + 'static,
    ) -> Result<T, Fallback> {
        // A panic in the virtual machine is one of its, not of the process.
        let done = tokio::task::spawn_blocking(run).await.unwrap_or(Err(Fallback::Broken));
        if done.is_err() {
            self.counters.fallbacks.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    /// Whether a transaction is run here. Its addresses, with those from tables, and the bytes that it loads.
    fn check(
        &self,
        transaction: &VersionedTransaction,
        state: &State,
        svm: &LiteSVM,
    ) -> Result<(Vec<Address>, u64), Fallback> {
        let mut keys = transaction.message.static_account_keys().to_vec();
        keys.extend(needs::from_tables(transaction, |address| svm.get_account(address)));
        for key in &keys {
            if let Some(unfit) =
                state.unfit.get(key).cloned().or_else(|| self.machine.unfit(key, self.slot()))
            {
                return Err(unfit);
            }
        }
        let loaded_data = checks::on_accounts(transaction, &keys, svm)?;
        Ok((keys, loaded_data))
    }

    /// A view without accounts, but for what the machine has.
    fn begin(machine: Arc<Machine>, moment: Moment, counters: Arc<Counters>) -> Result<Self, Fallback> {
        let (mut svm, mut known) = machine.copy();
        svm.set_account(sysvar::clock::ID, moment.clock.clone()).map_err(|_| Fallback::Broken)?;
        known.extend([sysvar::clock::ID, sysvar::instructions::ID]);
        counters.views.fetch_add(1, Ordering::Relaxed);
        let state = State { svm, known, pending: HashMap::new(), unfit: HashMap::new() };
        Ok(Self { moment, machine, state: RwLock::new(state), counters })
    }

    /// Takes accounts in.
    fn add(&self, fetched: Fetched) -> Result<(), Fallback> {
        let mut state = self.state.write().map_err(|_| Fallback::Broken)?;
        let state = &mut *state;
        for (address, account) in fetched.whole {
            state.known.insert(address);
            let Some(account) = account else {
                // The machine may have a part of the runtime there that this cluster has not.
                if state.svm.get_account(&address).is_some() {
                    state.svm.set_account(address, Account::default()).map_err(|_| Fallback::Broken)?;
                }
                continue;
            };
            if account.executable {
                state.pending.insert(address, account);
            } else if state.svm.set_account(address, account).is_err() {
                return Err(Fallback::Unread(format!("{address} holds what it can't")));
            }
        }
        let headers: HashMap<Address, Option<Account>> = fetched.headers.into_iter().collect();
        for (address, account) in &headers {
            let Some(code) = self.machine.code_of(address) else { continue };
            let code = headers.get(&code).and_then(Option::as_ref);
            // What is no longer what it was is fetched whole in the next round.
            if self.machine.confirm(address, account.as_ref(), code) {
                state.known.insert(*address);
            }
        }
        let ready =
            |account: &Account| needs::code_of(account).is_none_or(|code| state.known.contains(&code));
        let ready: Vec<(Address, Account)> = state.pending.extract_if(|_, account| ready(account)).collect();
        for (address, account) in ready {
            let code = needs::code_of(&account).map(|code| (code, state.svm.get_account(&code)));
            if account.owner == native_loader::ID {
                // No program that would have to be loaded.
                state.svm.set_account(address, account.clone()).map_err(|_| Fallback::Broken)?;
            } else if let Err(unfit) = machine::load(&mut state.svm, address, &account, code.as_ref()) {
                state.unfit.insert(address, unfit);
            }
            self.machine.load(address, &account, code);
        }
        Ok(())
    }
}

/// Adds to a view, or to a new one, what transactions need. `None` if the chain has moved on from it.
pub(super) async fn fill<S: Source>(
    source: &S,
    machine: &Arc<Machine>,
    counters: &Arc<Counters>,
    mut view: Option<Arc<View>>,
    transactions: &[VersionedTransaction],
    wanted: &mut BTreeSet<Address>,
) -> Result<Option<Arc<View>>, Fallback> {
    for _ in 0..MAX_ROUNDS {
        let missing = match &view {
            Some(view) => {
                let state = view.state.read().map_err(|_| Fallback::Broken)?;
                wanted.iter().filter(|address| !state.known.contains(*address)).copied().collect()
            }
            None => {
                let (_, fixed) = machine.copy();
                let missing = wanted.iter().chain(&SYSVARS).filter(|address| !fixed.contains(*address));
                missing.copied().collect::<BTreeSet<Address>>()
            }
        };
        if let Some(view) = view.clone().filter(|_| missing.is_empty()) {
            return Ok(Some(view));
        }
        let (mut whole, mut headers) = (Vec::new(), Vec::new());
        for address in missing {
            match machine.code_of(&address) {
                Some(code) => headers.extend([address, code]),
                None => whole.push(address),
            }
        }
        let moment = view.as_ref().map(|view| &view.moment);
        let Some(fetched) = fetch(source, counters, &whole, &headers, moment).await? else { return Ok(None) };
        let epoch =
            fetched.moment.epoch().ok_or_else(|| Fallback::Unread("the Clock has no epoch".to_owned()))?;
        if !machine.is_of(epoch) {
            return Ok(None);
        }
        let filled = match view.take() {
            Some(view) => view,
            None => Arc::new(View::begin(machine.clone(), fetched.moment.clone(), counters.clone())?),
        };
        filled.add(fetched)?;
        {
            let state = filled.state.read().map_err(|_| Fallback::Broken)?;
            for transaction in transactions {
                wanted.extend(needs::from_tables(transaction, |address| state.account(address)));
            }
            wanted.extend(state.pending.values().filter_map(needs::code_of));
        }
        view = Some(filled);
    }
    Ok(None)
}

fn execution(
    done: Result<
        (TransactionMetadata, Vec<(Address, solana_account::AccountSharedData)>),
        FailedTransactionMetadata,
    >,
    loaded_data: u64,
    keys: &[Address],
) -> Execution {
    let (outcome, meta, accounts) = match done {
        Ok((meta, accounts)) => (Ok(()), meta, accounts),
        Err(failed) => (Err(failed.err), failed.meta, Vec::new()),
    };
    let named = accounts.into_iter().filter(|(address, _)| keys.contains(address));
    let returned = (!meta.return_data.data.is_empty()).then_some(meta.return_data);
    Execution {
        outcome,
        logs: meta.logs,
        compute_units: meta.compute_units_consumed,
        return_data: returned.map(|returned| (returned.program_id, returned.data)),
        fee_lamports: meta.fee,
        loaded_data,
        accounts: named.map(|(address, account)| (address, account.into())).collect(),
    }
}
