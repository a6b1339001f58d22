//! Whether a bundle can be atomic at all, before the chain is asked.

use bytemuck::Zeroable;
use committor_sdk::delegation;

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

/// Says whether a bundle can be applied atomically: for accounts that hold nothing of it yet, and for accounts that hold all
/// of it already.
pub fn admit(bundle: &CommitBundle, context: &PlanContext) -> Admission {
    let fits = |held: bool| Bundle::new(&imagined(bundle, held, context), context).fits();
    if fits(false).is_ok() {
        return Admission::Fits;
    }
    match fits(true) {
        Ok(()) => Admission::Depends,
        // What stands in the way of the easy case is the limit that really matters.
        Err(error) => Admission::Refused(error),
    }
}

/// The bundle on a chain whose accounts are empty, or hold just what is to be committed.
fn imagined(bundle: &CommitBundle, held: bool, context: &PlanContext) -> BundleFacts {
    let accounts = bundle.commits.iter().map(|commit| AccountFacts {
        account: commit.account,
        state: commit.state.clone(),
        commit_id: CommitId(1),
        owner: Some(delegation::ID),
        len: if held { commit.state.len() } else { 0 },
        lamports: Lamports(0),
        record: Some(delegation::Delegation {
            account: commit.account,
            authority: context.authority,
            // Some program and somebody: two more accounts where they are named.
            owner_program: commit.account,
            rent_payer: context.payer,
            state: STATE_DELEGATED,
            ..delegation::Delegation::zeroed()
        }),
        base: held.then(|| commit.state.clone()),
        buffers: Vec::new(),
    });
    let accounts = accounts.collect();
    BundleFacts { mode: bundle.mode, accounts, actions: bundle.actions.clone(), extra_loaded: 0 }
}
