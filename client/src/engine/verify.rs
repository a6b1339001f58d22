//! Reading back what was committed.

use std::{collections::BTreeMap, sync::Arc};

use committor_sdk::delegation;
use solana_address::Address;

use super::EngineError;
use crate::{
    chain::Chain,
    store::{Store, StoredBundle},
    types::{BundleKey, BundleStatus, ChangesetId},
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

pub(super) async fn verify<C: Chain>(
    chain: Arc<C>,
    store: Store,
    changeset: ChangesetId,
) -> Result<Verification, EngineError> {
    let report = store.report(Some(changeset)).await?;
    // A later bundle of the changeset may have committed the same account again: only the last state must be there.
    let mut last: BTreeMap<Address, (BundleKey, Arc<[u8]>)> = BTreeMap::new();
    for bundle in report.bundles.iter().filter(|bundle| bundle.status == BundleStatus::Landed) {
        let StoredBundle { key, commits, .. } = store.bundle(bundle.key).await?;
        last.extend(commits.into_iter().map(|commit| (commit.account, (key, commit.state))));
    }
    let addresses: Vec<Address> = last.keys().copied().collect();
    let accounts = chain.accounts(&addresses).await?;
    let mut verification = Verification::default();
    for ((account, (bundle, state)), found) in last.into_iter().zip(accounts) {
        let reason = match found {
            None => Some("it does not exist".to_owned()),
            Some(found) if found.owner != delegation::ID => Some(format!("its owner is {}", found.owner)),
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
fn difference(committed: &[u8], found: &[u8]) -> Option<String> {
    if committed.len() != found.len() {
        return Some(format!("it has {} bytes, committed were {}", found.len(), committed.len()));
    }
    let at = committed.iter().zip(found).position(|(committed, found)| committed != found)?;
    Some(format!("byte {at} is {}, committed was {}", found[at], committed[at]))
}
