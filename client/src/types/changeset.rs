//! What an engine submits.

use std::{collections::HashSet, sync::Arc};

use serde::{Deserialize, Serialize};
use solana_address::Address;
use solana_instruction::Instruction;
use thiserror::Error;

use super::BundleId;

/// The longest state that an account can be given, in bytes: the delegation program needs room to hand it back.
pub const MAX_STATE_LEN: u64 = 10 * 1024 * 1024 - 248;

/// One new state for one delegated account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountCommit {
    /// The delegated account.
    pub account: Address,
    /// Its whole new state.
    pub state: Arc<[u8]>,
}

/// How far a commit bundle goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitMode {
    /// The states become the accounts' states at once.
    #[default]
    Finalize,
    /// The states are put where they can be inspected, and become the accounts' states when the bundle is finalized.
    Stage,
    /// The states become the accounts' states, and the accounts go back to their owner programs in the same transaction.
    Undelegate,
}

impl CommitMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Finalize, Self::Stage, Self::Undelegate];

    /// The name that the store and the JSON output use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Finalize => "finalize",
            Self::Stage => "stage",
            Self::Undelegate => "undelegate",
        }
    }
}

impl std::str::FromStr for CommitMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// No mode of a commit bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown mode `{0}`, expected `finalize`, `stage` or `undelegate`")]
pub struct UnknownMode(pub String);

/// An instruction that rides in the transaction that applies a bundle, after its commits: it takes effect with them or not
/// at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The instruction. Only the fee payer and the authority can sign for it.
    pub instruction: Instruction,
    /// Compute units that it needs, calls included; by default the 200,000 that the chain gives an instruction of a
    /// transaction that names no limit.
    pub compute_units: Option<u32>,
}

/// Commits that land together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitBundle {
    /// The caller's id, unique within the changeset.
    pub id: BundleId,
    /// How far it goes.
    pub mode: CommitMode,
    /// The commits, each of another account.
    pub commits: Vec<AccountCommit>,
    /// Instructions that ride along, in order.
    pub actions: Vec<Action>,
}

/// One or more commit bundles that are submitted in one call.
///
/// Bundles that share an account land in the order in which they stand here; the others in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changeset {
    /// The bundles.
    pub bundles: Vec<CommitBundle>,
}

/// A changeset that makes no sense, found before anything is stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangesetError {
    /// There is nothing to do.
    #[error("the changeset has no bundles")]
    NoBundles,
    /// A bundle without commits.
    #[error("bundle {0} has no commits")]
    EmptyBundle(BundleId),
    /// Two bundles of one id.
    #[error("two bundles have the id {0}")]
    DuplicateBundle(BundleId),
    /// Two states for one account in one bundle: which one is the last can't be told.
    #[error("bundle {bundle} commits account {account} twice")]
    DuplicateAccount {
        /// The bundle.
        bundle: BundleId,
        /// The account.
        account: Address,
    },
    /// A state longer than any account can be.
    #[error("bundle {bundle}: the state of account {account} has {len} bytes, an account has at most {max}")]
    StateTooLarge {
        /// The bundle.
        bundle: BundleId,
        /// The account.
        account: Address,
        /// Length of the state in bytes.
        len: usize,
        /// The longest possible, in bytes.
        max: u64,
    },
    /// An action that only somebody else could sign.
    #[error(
        "bundle {bundle}: action {index} has to be signed by {signer}, and only the fee payer {payer} and the authority {authority} sign"
    )]
    ForeignSigner {
        /// The bundle.
        bundle: BundleId,
        /// Position of the action.
        index: usize,
        /// Who would have to sign.
        signer: Address,
        /// Who pays.
        payer: Address,
        /// Who commits.
        authority: Address,
    },
}

impl ChangesetError {
    /// Whether trying again can help. Never: the changeset has to be another one.
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NoBundles
            | Self::EmptyBundle(_)
            | Self::DuplicateBundle(_)
            | Self::DuplicateAccount { .. }
            | Self::StateTooLarge { .. }
            | Self::ForeignSigner { .. } => false,
        }
    }

    /// What the user can do.
    pub const fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoBundles => "give it at least one bundle",
            Self::EmptyBundle(_) => "leave the bundle out, or commit to an account in it",
            Self::DuplicateBundle(_) => "give each bundle of a changeset an id of its own",
            Self::DuplicateAccount { .. } => "put the second state in a later bundle",
            Self::StateTooLarge { .. } => "split the state over several accounts",
            Self::ForeignSigner { .. } => {
                "leave the action out, or commit as who has to sign it (`--keypair`, `--fee-payer`)"
            }
        })
    }
}

impl Changeset {
    /// Checks what can be checked without the chain.
    ///
    /// # Errors
    /// [`ChangesetError`] names the first bundle and account at fault.
    pub fn check(&self) -> Result<(), ChangesetError> {
        if self.bundles.is_empty() {
            return Err(ChangesetError::NoBundles);
        }
        let mut ids = HashSet::new();
        for bundle in &self.bundles {
            if !ids.insert(bundle.id) {
                return Err(ChangesetError::DuplicateBundle(bundle.id));
            }
            bundle.check()?;
        }
        Ok(())
    }
}

impl CommitBundle {
    /// A bundle that is finalized at once, without actions.
    pub fn new(id: BundleId, commits: Vec<AccountCommit>) -> Self {
        Self { id, mode: CommitMode::default(), commits, actions: Vec::new() }
    }

    /// Sets how far it goes.
    pub fn mode(mut self, mode: CommitMode) -> Self {
        self.mode = mode;
        self
    }

    /// Adds an instruction that rides along.
    pub fn action(mut self, instruction: Instruction) -> Self {
        self.actions.push(Action { instruction, compute_units: None });
        self
    }

    /// Checks that nobody else has to sign.
    ///
    /// # Errors
    /// [`ChangesetError::ForeignSigner`] names the first action at fault.
    pub fn check_signers(&self, payer: Address, authority: Address) -> Result<(), ChangesetError> {
        for (index, action) in self.actions.iter().enumerate() {
            let mut signers = action.instruction.accounts.iter().filter(|meta| meta.is_signer);
            if let Some(meta) = signers.find(|meta| meta.pubkey != payer && meta.pubkey != authority) {
                let (bundle, signer) = (self.id, meta.pubkey);
                return Err(ChangesetError::ForeignSigner { bundle, index, signer, payer, authority });
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ChangesetError> {
        if self.commits.is_empty() {
            return Err(ChangesetError::EmptyBundle(self.id));
        }
        let max = MAX_STATE_LEN;
        let mut accounts = HashSet::new();
        for AccountCommit { account, state } in &self.commits {
            if !accounts.insert(account) {
                return Err(ChangesetError::DuplicateAccount { bundle: self.id, account: *account });
            }
            if state.len() as u64 > max {
                let (bundle, account, len) = (self.id, *account, state.len());
                return Err(ChangesetError::StateTooLarge { bundle, account, len, max });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(id: u64, accounts: &[u8]) -> CommitBundle {
        let commit =
            |byte: &u8| AccountCommit { account: Address::new_from_array([*byte; 32]), state: Arc::from([]) };
        CommitBundle::new(BundleId(id), accounts.iter().map(commit).collect())
    }

    #[test]
    fn senseless_changesets_are_refused_by_name() {
        let check = |bundles: Vec<CommitBundle>| Changeset { bundles }.check();
        assert_eq!(check(vec![]), Err(ChangesetError::NoBundles));
        assert_eq!(check(vec![bundle(7, &[])]), Err(ChangesetError::EmptyBundle(BundleId(7))));
        let twice = vec![bundle(0, &[1]), bundle(0, &[2])];
        assert_eq!(check(twice), Err(ChangesetError::DuplicateBundle(BundleId(0))));
        let account = Address::new_from_array([2; 32]);
        let duplicate = ChangesetError::DuplicateAccount { bundle: BundleId(3), account };
        assert_eq!(check(vec![bundle(3, &[1, 2, 2])]), Err(duplicate));
        // One account in two bundles is an order, not a mistake.
        assert_eq!(check(vec![bundle(0, &[1]), bundle(u64::MAX, &[1])]), Ok(()));
    }

    #[test]
    fn a_state_longer_than_an_account_is_refused() {
        let mut bundle = bundle(1, &[1]);
        bundle.commits[0].state = vec![0; MAX_STATE_LEN as usize + 1].into();
        let refused = Changeset { bundles: vec![bundle] }.check();
        assert!(matches!(refused, Err(ChangesetError::StateTooLarge { len: 10_485_513, .. })));
    }
}
