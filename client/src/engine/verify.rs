//! Reading back what was committed.

use std::{collections::BTreeMap, sync::Arc};

use committor_sdk::delegation;
use solana_address::Address;

use super::EngineError;
use crate::{
    chain::Chain,
    store::{Store, StoredBundle, StoredCommit},
    types::{BundleKey, BundleStatus, ChangesetId, CommitMode},
};

/// What reading back found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Accounts that are, byte for byte, what was committed.
    pub equal: Vec<Address>,
    /// Accounts that are not.
    pub mismatches: Vec<Mismatch>,
}

/// An account that is not what was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The account.
    pub account: Address,
    /// What is different.
    pub reason: String,
}

/// What was committed to an account last.
struct Last {
    bundle: BundleKey,
    state: Arc<[u8]>,
    /// The account is its owner program's again.
    handed_back: bool,
}

pub(super) async fn verify<C: Chain>(
    chain: Arc<C>,
    store: Store,
    changeset: ChangesetId,
) -> Result<Verification, EngineError> {
    let report = store.report(Some(changeset)).await?;
    // A later bundle of the changeset may have committed the same account again: only the last state must be there.
    let mut last: BTreeMap<Address, Last> = BTreeMap::new();
    for bundle in report.bundles.iter().filter(|bundle| bundle.status == BundleStatus::Landed) {
        let StoredBundle { key, commits, mode, .. } = store.bundle(bundle.key).await?;
        let handed_back = mode == CommitMode::Undelegate;
        let commits = commits
            .into_iter()
            .map(|StoredCommit { account, state, .. }| (account, Last { bundle: key, state, handed_back }));
        last.extend(commits);
    }
    let addresses: Vec<Address> = last.keys().copied().collect();
    let accounts = chain.accounts(&addresses).await?;
    let mut verification = Verification::default();
    for ((account, Last { bundle, state, handed_back }), found) in last.into_iter().zip(accounts) {
        let reason = match found {
            None => Some("it does not exist".to_owned()),
            Some(found) if (found.owner == delegation::ID) == handed_back => {
                Some(format!("its owner is {}", found.owner))
            }
            Some(found) => difference(&state, &found.data),
        };
        match reason {
            Some(reason) => verification.mismatches.push(Mismatch { account, reason }),
            None => {
                store.verified(bundle, account).await?;
                verification.equal.push(account);
            }
        }
    }
    Ok(verification)
}

/// The first difference between what was committed and what is there.
pub(super) fn difference(committed: &[u8], found: &[u8]) -> Option<String> {
    if committed.len() != found.len() {
        return Some(format!("it has {} bytes, committed were {}", found.len(), committed.len()));
    }
    let at = committed.iter().zip(found).position(|(committed, found)| committed != found)?;
    Some(format!("byte {at} is {}, committed was {}", found[at], committed[at]))
}
