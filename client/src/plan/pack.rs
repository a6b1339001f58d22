//! Small bundles that share a transaction: each still lands as a whole or not at all, and the fee is paid once.

use super::{BundlePlan, PlanContext, PlannedTransaction, TableNeed};
use crate::types::Stage;

/// Transactions that a further bundle is tried with; the ones before these are full enough.
const OPEN_TRANSACTIONS: usize = 4;

/// Several bundles in one transaction.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Which bundles, by index.
    pub bundles: Vec<usize>,
    /// The transaction that applies all of them.
    pub transaction: PlannedTransaction,
}

/// Packs the plans of bundles that share no account: those that are a single transaction go together as far as they fit.
/// Bundles with actions stay alone, since what those do to one another is not known.
///
/// Bundles that found no company are not in the result.
pub fn pack(plans: &[Option<BundlePlan>], context: &PlanContext) -> Vec<Shared> {
    let mut shared: Vec<Shared> = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        let Some(transaction) = plan.as_ref().and_then(single) else { continue };
        let price = context.prices.of(Stage::Commit);
        let first = shared.len().saturating_sub(OPEN_TRANSACTIONS);
        let with = shared[first..].iter_mut().find_map(|open| {
            let merged = open.transaction.merged(transaction, price);
            merged.check(&context.payer).is_ok().then_some((open, merged))
        });
        match with {
            Some((open, merged)) => {
                open.bundles.push(index);
                open.transaction = merged;
            }
            None => shared.push(Shared { bundles: vec![index], transaction: transaction.clone() }),
        }
    }
    shared.retain(|shared| shared.bundles.len() > 1);
    shared
}

/// The only transaction of a plan that can share it.
fn single(plan: &BundlePlan) -> Option<&PlannedTransaction> {
    if plan.has_actions || matches!(plan.tables, TableNeed::Missing(_)) {
        return None;
    }
    match plan.rounds.as_slice() {
        [round] => match round.as_slice() {
            [transaction] if transaction.stage == Stage::Commit => Some(transaction),
            _ => None,
        },
        _ => None,
    }
}
