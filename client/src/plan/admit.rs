//! Whether a bundle can be atomic at all, before the chain is asked.

use bytemuck::Zeroable;
use committor_sdk::delegation;
use solana_address::Address;

use super::{AccountFacts, BundleFacts, PlanContext, PlanError, facts::STATE_DELEGATED, shape::Bundle};
use crate::types::{CommitBundle, CommitId, Lamports};

/// What can be said about a bundle without the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It fits, whatever its accounts hold and however short they are.
    Fits,
    /// Whether it fits depends on what its accounts hold.
    Depends,
    /// It fits under no circumstances.
    Refused(PlanError),
}

/// What the chain may say about a bundle's accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Luck {
    /// They hold all of it already, and share an owner program; the payer paid for their records.
    Best,
    /// They hold nothing of it yet, and each has an owner program and a rent payer of its own.
    Worst,
}

/// Says whether a bundle can be applied atomically: with accounts for which that is the hardest, and with accounts for which
/// it is the easiest.
pub fn admit(bundle: &CommitBundle, context: &PlanContext) -> Admission {
    let fits = |luck| Bundle::new(&imagined(bundle, luck, context), context).fits();
    if fits(Luck::Worst).is_ok() {
        return Admission::Fits;
    }
    match fits(Luck::Best) {
        Ok(()) => Admission::Depends,
        // What stands in the way of the easy case is the limit that really matters.
        Err(error) => Admission::Refused(error),
    }
}

/// The bundle on a chain that nobody has asked.
fn imagined(bundle: &CommitBundle, luck: Luck, context: &PlanContext) -> BundleFacts {
    let held = luck == Luck::Best;
    let accounts = bundle.commits.iter().zip(0u64..).map(|(commit, index)| AccountFacts {
        account: commit.account,
        state: commit.state.clone(),
        commit_id: CommitId(1),
        owner: Some(delegation::ID),
        len: if held { commit.state.len() } else { 0 },
        lamports: Lamports(0),
        record: Some(delegation::Delegation {
            account: commit.account,
            authority: context.authority,
            owner_program: nobody(if held { 0 } else { 2 * index }),
            rent_payer: if held { context.payer } else { nobody(2 * index + 1) },
            state: STATE_DELEGATED,
            ..delegation::Delegation::zeroed()
        }),
        base: held.then(|| commit.state.clone()),
        buffers: Vec::new(),
    });
    let accounts = accounts.collect();
    BundleFacts { mode: bundle.mode, accounts, actions: bundle.actions.clone(), extra_loaded: 0 }
}

/// An address that is none of the bundle's: no account has the like.
fn nobody(number: u64) -> Address {
    let mut bytes = [0xff; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Address::new_from_array(bytes)
}
