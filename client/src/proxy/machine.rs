//! The virtual machine of an epoch: its features, and the programs that have been fetched.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agave_feature_set::{FEATURE_NAMES, FeatureSet};
use litesvm::LiteSVM;
use solana_account::Account;
use solana_address::Address;
use solana_sdk_ids::{bpf_loader, bpf_loader_deprecated, bpf_loader_upgradeable, feature, native_loader};

use super::{Fallback, checks};

/// Bytes of the header of a loader-v3 program's code: its kind, the slot of its deployment, the authority.
pub(super) const CODE_HEADER_LEN: usize = 45;

/// A program that has been fetched, and is loaded.
#[derive(Clone)]
struct Program {
    account: Account,
    /// Where its code is, and the header of that; `None` if the program's own account holds it, which can't change.
    code: Option<(Address, Option<Header>)>,
    /// Why it is not run here.
    unfit: Option<Fallback>,
}

/// What tells one deployment of a program's code from another.
#[derive(Clone, PartialEq, Eq)]
struct Header {
    owner: Address,
    data: Vec<u8>,
}

impl Header {
    fn of(account: &Account) -> Self {
        let data = account.data.get(..CODE_HEADER_LEN).unwrap_or(&account.data);
        Self { owner: account.owner, data: data.to_vec() }
    }

    /// The slot of the deployment.
    fn slot(&self) -> Option<u64> {
        self.data.get(4..)?.first_chunk().copied().map(u64::from_le_bytes)
    }
}

/// What lasts for an epoch.
pub(super) struct Machine {
    /// The epoch of the first view.
    epoch: OnceLock<u64>,
    over: AtomicBool,
    base: Mutex<Base>,
}

struct Base {
    svm: LiteSVM,
    programs: HashMap<Address, Program>,
    /// Programs that are part of the runtime, and accounts of it.
    fixed: HashSet<Address>,
}

impl Machine {
    /// A machine with the features of a cluster.
    pub(super) fn new(features: Vec<(Address, Account)>) -> Result<Self, Fallback> {
        let mut set = FeatureSet::default();
        for (address, account) in features {
            // `Feature { activated_at: Option<u64> }`
            let Some((1, slot)) = account.data.split_first() else { continue };
            if account.owner != feature::ID {
                continue;
            }
            if !FEATURE_NAMES.contains_key(&address) {
                return Err(Fallback::UnknownFeature(address));
            }
            let slot = slot.first_chunk().map_or(0, |slot| u64::from_le_bytes(*slot));
            set.activate(&address, slot);
        }
        if set.active().is_empty() {
            return Err(Fallback::NoFeatures);
        }
        // The node's logs are not cut either, and it looks at neither signatures nor blockhashes.
        let svm = LiteSVM::default().with_feature_set(set).with_builtins().with_log_bytes_limit(None);
        let base = Base { svm, programs: HashMap::new(), fixed: HashSet::new() };
        Ok(Self { epoch: OnceLock::new(), over: AtomicBool::new(false), base: Mutex::new(base) })
    }

    /// Whether an epoch is the machine's own. Features change from epoch to epoch, and only then.
    pub(super) fn is_of(&self, epoch: u64) -> bool {
        let is_same = *self.epoch.get_or_init(|| epoch) == epoch;
        if !is_same {
            self.over.store(true, Ordering::Relaxed);
        }
        is_same
    }

    /// Whether another epoch has begun.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The machine as it is, and the accounts that never change.
    pub(super) fn copy(&self) -> (LiteSVM, HashSet<Address>) {
        let base = self.lock();
        (base.svm.clone(), base.fixed.clone())
    }

    /// Of a program that has been fetched before: where its code is. Only the header of that needs to be fetched.
    pub(super) fn code_of(&self, program: &Address) -> Option<Address> {
        self.lock().programs.get(program)?.code.as_ref().map(|(code, _)| *code)
    }

    /// Whether a program is what it was, by its account and the header of its code; forgets it otherwise.
    pub(super) fn confirm(
        &self,
        address: &Address,
        account: Option<&Account>,
        code: Option<&Account>,
    ) -> bool {
        let mut base = self.lock();
        let header = code.map(Header::of);
        let is_same = |program: &Program| {
            account == Some(&program.account)
                && program.code.as_ref().is_some_and(|(_, known)| *known == header)
        };
        let is_same = base.programs.get(address).is_some_and(is_same);
        if !is_same {
            base.programs.remove(address);
        }
        is_same
    }

    /// Loads a program for all views to come.
    pub(super) fn load(&self, address: Address, account: &Account, code: Option<(Address, Option<Account>)>) {
        let mut base = self.lock();
        if account.owner == native_loader::ID {
            base.fixed.insert(address);
            // It is no program that would have to be loaded, so nothing can go wrong.
            let _ = base.svm.set_account(address, account.clone());
            return;
        }
        let unfit = load(&mut base.svm, address, account, code.as_ref()).err();
        if [bpf_loader::ID, bpf_loader_deprecated::ID].contains(&account.owner) {
            base.fixed.insert(address);
        }
        let code = code.map(|(code, account)| (code, account.as_ref().map(Header::of)));
        base.programs.insert(address, Program { account: account.clone(), code, unfit });
    }

    /// Whether a program that has been fetched can be run here at a slot.
    pub(super) fn unfit(&self, address: &Address, slot: u64) -> Option<Fallback> {
        let base = self.lock();
        let program = base.programs.get(address)?;
        let header = program.code.as_ref().and_then(|(_, header)| header.as_ref());
        if header.and_then(Header::slot) == Some(slot) {
            return Some(Fallback::JustDeployed(*address));
        }
        program.unfit.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Base> {
        // A program that was loaded half is loaded again when it is needed: it is recorded last.
        self.base.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Loads a program, with its code if that is elsewhere.
pub(super) fn load(
    svm: &mut LiteSVM,
    address: Address,
    account: &Account,
    code: Option<&(Address, Option<Account>)>,
) -> Result<(), Fallback> {
    let known = [bpf_loader::ID, bpf_loader_deprecated::ID, bpf_loader_upgradeable::ID];
    if !known.contains(&account.owner) {
        return Err(Fallback::Unloadable(address));
    }
    let bytes = match code {
        Some((_, Some(code))) => &code.data,
        _ => &account.data,
    };
    if checks::asks_for_stake(bytes) {
        return Err(Fallback::EpochStake(address));
    }
    let unloadable = |_| Fallback::Unloadable(address);
    if let Some((code, Some(account))) = code {
        svm.set_account(*code, account.clone()).map_err(unloadable)?;
    }
    svm.set_account(address, account.clone()).map_err(unloadable)
}
