//! What a seed commits.

use std::{collections::HashSet, sync::Arc};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, CommitMode, types::TransactionVersion,
};
use committor_localnet::LocalnetBuilder;
use rand::{Rng, SeedableRng, rngs::StdRng};
use solana_address::Address;
use solana_keypair::Keypair;
use solana_signer::Signer;

/// Accounts of a seed: few, so that each is committed several times, and order matters.
const ACCOUNTS: usize = 6;
/// Accounts of a bundle that no v0 transaction holds without a lookup table.
const CROWD: usize = 24;
/// Changesets of a seed, one after the other. What one stages is finalized before the next.
const CHANGESETS: usize = 2;
/// Length of the accounts at first, in bytes.
const LEN: usize = 100;
/// States from this length on are edited rather than replaced now and then: most of those go as patches.
const EDITED_LEN: usize = 1_000;
/// Enough for the rent of all buffers of a seed at a time, and all fees.
const LAMPORTS: u64 = 1_000_000_000_000;

/// What a seed commits, as whom, and how.
pub struct Work {
    pub seed: u64,
    pub authority: Arc<Keypair>,
    pub accounts: Vec<Address>,
    /// An account that somebody else commits to, and one that does not exist: what is committed to them fails.
    hopeless: [Address; 2],
    pub changesets: Vec<Changeset>,
    pub version: TransactionVersion,
    pub share_transactions: bool,
    /// The engine is stopped after so many events, if there are so many.
    pub stop_after: Option<u32>,
    /// Draws what goes wrong.
    pub random: StdRng,
}

impl Work {
    pub fn draw(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let authority = Arc::new(Keypair::new_from_array(random.random()));
        let accounts: Vec<Address> =
            (0..ACCOUNTS).map(|_| Address::new_from_array(random.random())).collect();
        let crowd: Vec<Address> = (0..CROWD).map(|_| Address::new_from_array(random.random())).collect();
        let hopeless = [random.random(), random.random()].map(Address::new_from_array);
        let mut states: Vec<Arc<[u8]>> = vec![vec![0; LEN].into(); ACCOUNTS];
        let mut changesets = Vec::new();
        for number in 1..=CHANGESETS {
            let bundles = random.random_range(3..=6);
            let mut changeset = Changeset::default();
            for id in 0..bundles {
                let id = BundleId(number as u64 * 100 + id);
                changeset.bundles.push(CommitBundle::new(id, commits(&mut random, &accounts, &mut states)));
            }
            modes(&mut random, &mut changeset, number == CHANGESETS);
            if random.random_bool(0.1) {
                let state: Arc<[u8]> = vec![number as u8; 8].into();
                let commit = |account: &Address| AccountCommit { account: *account, state: state.clone() };
                let id = BundleId(number as u64 * 1_000);
                changeset.bundles.push(CommitBundle::new(id, crowd.iter().map(commit).collect()));
            }
            if random.random_bool(0.2) {
                let account = hopeless[random.random_range(0..hopeless.len())];
                let commit = AccountCommit { account, state: vec![1; LEN].into() };
                let at = random.random_range(0..=changeset.bundles.len());
                changeset.bundles.insert(at, CommitBundle::new(BundleId(u64::MAX), vec![commit]));
            }
            changesets.push(changeset);
        }
        let version = if random.random_bool(0.5) { TransactionVersion::V1 } else { TransactionVersion::V0 };
        let share_transactions = random.random_bool(0.7);
        let stop_after = random.random_bool(0.4).then(|| random.random_range(0..30));
        Self {
            seed,
            authority,
            accounts: [accounts, crowd].concat(),
            hopeless,
            changesets,
            version,
            share_transactions,
            stop_after,
            random,
        }
    }

    /// Has a validator start with the accounts.
    pub fn prepare(&self, builder: LocalnetBuilder) -> LocalnetBuilder {
        let authority = self.authority.pubkey();
        let delegate = |builder: LocalnetBuilder, account: &Address| {
            builder.delegated(*account, authority, vec![0; LEN])
        };
        let builder = builder.airdrop(authority, LAMPORTS);
        let builder = self.accounts.iter().fold(builder, delegate);
        let [of_somebody_else, _] = self.hopeless;
        builder.delegated(of_somebody_else, Address::new_from_array([1; 32]), vec![0; LEN])
    }
}

/// One to three accounts' next states.
fn commits(random: &mut StdRng, accounts: &[Address], states: &mut [Arc<[u8]>]) -> Vec<AccountCommit> {
    let count = random.random_range(1..=3);
    let mut chosen = HashSet::new();
    while chosen.len() < count {
        chosen.insert(random.random_range(0..accounts.len()));
    }
    // In a fixed order: that of a set is another one in each process.
    let chosen = (0..accounts.len()).filter(|index| chosen.contains(index));
    let commit = |index: usize| {
        states[index] = next_state(random, &states[index]);
        AccountCommit { account: accounts[index], state: states[index].clone() }
    };
    chosen.map(commit).collect()
}

/// A state that goes inline, as a patch, through a buffer of some chunks, or needs the account to grow in steps.
fn next_state(random: &mut StdRng, last: &[u8]) -> Arc<[u8]> {
    if last.len() >= EDITED_LEN && random.random_bool(0.5) {
        let mut state = last.to_vec();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..state.len() - 16);
            random.fill(&mut state[at..at + 16]);
        }
        return state.into();
    }
    let len = match random.random_range(0..10) {
        0..6 => random.random_range(0..700),
        6..9 => random.random_range(EDITED_LEN..9_000),
        _ => random.random_range(9_000..24_000),
    };
    let mut state = vec![0; len];
    random.fill(&mut state[..]);
    state.into()
}

/// Lets bundles whose accounts no later one commits to stage them, or, in the last changeset, hand them back.
fn modes(random: &mut StdRng, changeset: &mut Changeset, last: bool) {
    let mut later = HashSet::new();
    for bundle in changeset.bundles.iter_mut().rev() {
        let is_last = bundle.commits.iter().all(|commit| !later.contains(&commit.account));
        later.extend(bundle.commits.iter().map(|commit| commit.account));
        bundle.mode = match random.random_range(0..10) {
            0..3 if is_last => CommitMode::Stage,
            3..5 if is_last && last => CommitMode::Undelegate,
            _ => CommitMode::Finalize,
        };
    }
}
