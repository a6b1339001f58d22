//! What the client said of every commit, and what the chain says.

use std::collections::HashMap;

use committor_client::{
    CommitMode, Store,
    store::{StoreError, StoredBundle},
    types::BundleStatus,
};
use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::delegation;
use solana_address::Address;

use super::{
    history::{Applied, History},
    work::Work,
};

/// Changesets of a seed that are looked at: more than there are.
const MAX_CHANGESETS: u32 = 100;

/// What became of a seed's commits.
#[derive(Default)]
pub struct Verdict {
    pub submitted: u64,
    pub landed_once: u64,
    pub landed_twice: u64,
    pub lost: u64,
    pub refused: u64,
    /// Every promise that was broken, in words.
    pub problems: Vec<String>,
}

/// What the client says: all bundles that it took, in their order, each with why it failed.
pub async fn told(store: &Store) -> Result<Vec<(StoredBundle, Option<String>)>, StoreError> {
    let mut told = Vec::new();
    for changeset in store.changesets(MAX_CHANGESETS).await?.into_iter().rev() {
        for bundle in store.report(Some(changeset.changeset)).await?.bundles {
            told.push((store.bundle(bundle.key).await?, bundle.error));
        }
    }
    Ok(told)
}

impl Verdict {
    pub fn new(work: &Work, told: &[(StoredBundle, Option<String>)], history: &History) -> Self {
        let mut verdict = Self::default();
        let mut times: HashMap<u64, u64> = HashMap::new();
        for applied in &history.applied {
            *times.entry(applied.commit_id).or_default() += 1;
        }
        for (bundle, error) in told {
            verdict.bundle(bundle, error.as_deref(), &times);
        }
        for account in &work.accounts {
            verdict.account(*account, told, history);
        }
        verdict
    }

    /// Counts the commits of a bundle: all of them have the same fate.
    fn bundle(&mut self, bundle: &StoredBundle, error: Option<&str>, times: &HashMap<u64, u64>) {
        let times: Vec<u64> = bundle
            .commits
            .iter()
            .map(|commit| times.get(&commit.commit_id.0).copied().unwrap_or_default())
            .collect();
        let (name, status) = (format!("changeset {}, bundle {}", bundle.changeset, bundle.id), bundle.status);
        let why = error.map_or_else(String::new, |error| format!(" ({error})"));
        for times in &times {
            self.submitted += 1;
            match (times, status) {
                (0, BundleStatus::Failed) => self.refused += 1,
                (0, _) => self.lost += 1,
                (1, _) => self.landed_once += 1,
                _ => self.landed_twice += 1,
            }
        }
        let [least, most] = [times.iter().min(), times.iter().max()].map(|times| *times.unwrap_or(&0));
        if least != most {
            self.problems.push(format!("{name} landed in part: its commits {times:?} times"));
        } else if most > 1 {
            self.problems.push(format!("{name} landed {most} times"));
        } else if most == 0 && status != BundleStatus::Failed {
            self.problems.push(format!("{name} is {status}{why}, and not on chain"));
        } else if most == 1 && status != BundleStatus::Landed {
            self.problems.push(format!("{name} is {status}{why}, and on chain"));
        }
    }

    /// Compares an account with the last commit that landed, and the order of commits with that of their submission.
    fn account(&mut self, account: Address, told: &[(StoredBundle, Option<String>)], history: &History) {
        let commits =
            told.iter().flat_map(|(bundle, _)| bundle.commits.iter().map(move |commit| (bundle, commit)));
        let commits: Vec<_> = commits.filter(|(_, commit)| commit.account == account).collect();
        let mut applied: Vec<Applied> =
            history.applied.iter().filter(|applied| applied.account == account).copied().collect();
        applied.sort_by_key(|applied| applied.nonce);
        let position = |applied: &Applied| {
            commits.iter().position(|(_, commit)| commit.commit_id.0 == applied.commit_id)
        };
        if !applied.is_sorted_by_key(position) {
            self.problems.push(format!("account {account}: not in the order of submission: {applied:?}"));
        }
        let Some(last) = applied.last() else { return };
        let Some((bundle, commit)) = position(last).and_then(|position| commits.get(position)) else {
            self.problems.push(format!("account {account}: nobody submitted {last:?}"));
            return;
        };
        let found = history.accounts.get(&account).and_then(Option::as_ref);
        if found.is_none_or(|found| found.data[..] != commit.state[..]) {
            self.problems.push(format!("account {account} does not hold its last state"));
        }
        let record = history.records.get(&account);
        if bundle.mode == CommitMode::Undelegate {
            if record.is_some() || found.is_none_or(|found| found.owner != OWNER_PROGRAM_ID) {
                self.problems.push(format!("account {account} was not handed back"));
            }
            return;
        }
        let of_record =
            |record: &delegation::Delegation| (record.nonce, record.commit_id, record.staged_nonce);
        let expected = (applied.len() as u64, last.commit_id, 0);
        if record.map(of_record) != Some(expected) {
            let found = record.map(of_record);
            self.problems.push(format!("account {account}: its record says {found:?}, not {expected:?}"));
            let staged = record.map_or(0, |record| record.staged_commit_id);
            let staged = told
                .iter()
                .find(|(bundle, _)| bundle.commits.iter().any(|commit| commit.commit_id.0 == staged));
            if let Some((bundle, error)) = staged {
                let (id, status) = (bundle.id, bundle.status);
                self.problems.push(format!("bundle {id}, which is staged there, is {status}: {error:?}"));
            }
        }
    }
}
