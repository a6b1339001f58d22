//! A node as the source of a proxy's accounts, and the proxy's answers in the chain layer's terms.

use std::sync::Arc;

use agave_feature_set::FEATURE_NAMES;
use solana_account::Account;
use solana_address::Address;
use solana_sdk_ids::feature;
use solana_transaction::versioned::VersionedTransaction;

use super::{
    AnsweredBy, ChainError, Simulation, decode,
    node::Node,
    rpc::{decoded, program_accounts},
};
use crate::proxy::{Batch, Execution, Fallback, Proxy, Source};

/// Bytes of a feature's account that tell whether, and since when, it is active.
const FEATURE_LEN: usize = 9;

/// A node as the source of a proxy's accounts.
pub struct NodeSource(pub(super) Arc<Node>);

impl Source for NodeSource {
    async fn batch(&self, addresses: &[Address], len: Option<usize>) -> Result<Batch, ChainError> {
        let found = self.0.batch(addresses, len).await?;
        Ok(Batch { slot: found.context.slot, accounts: decoded(found.value)? })
    }

    async fn features(&self) -> Result<Vec<(Address, Account)>, ChainError> {
        // A list has those too that are not known here. Some nodes refuse to make one, others have no index of it.
        let listed = program_accounts(&self.0, &feature::ID, &[], Some(FEATURE_LEN)).await;
        if let Ok(listed) = listed
            && !listed.is_empty()
        {
            return Ok(listed.into_iter().map(|found| (found.address, found.account)).collect());
        }
        let known: Vec<Address> = FEATURE_NAMES.keys().copied().collect();
        let found = decoded(self.0.accounts(&known, true).await?)?;
        Ok(known.into_iter().zip(found).filter_map(|(address, found)| Some((address, found?))).collect())
    }

    fn floor(&self) -> u64 {
        self.0.seen().unwrap_or_default()
    }
}

/// Runs a transaction on the proxy's accounts.
pub(super) async fn simulate(
    proxy: &Proxy<NodeSource>,
    transaction: &VersionedTransaction,
) -> Result<Simulation, Fallback> {
    let view = proxy.view(std::slice::from_ref(transaction)).await?;
    let execution = view.simulate(transaction.clone()).await?;
    Ok(simulation(execution, transaction, view.slot()))
}

/// Runs transactions one after the other on the proxy's accounts.
pub(super) async fn rehearse(
    proxy: &Proxy<NodeSource>,
    transactions: &[VersionedTransaction],
) -> Result<Vec<Simulation>, Fallback> {
    let view = proxy.view(transactions).await?;
    let executions = view.simulate_in_order(transactions.to_vec()).await?;
    let pairs = executions.into_iter().zip(transactions);
    Ok(pairs.map(|(execution, transaction)| simulation(execution, transaction, view.slot())).collect())
}

fn simulation(execution: Execution, transaction: &VersionedTransaction, slot: u64) -> Simulation {
    let Execution { outcome, logs, compute_units, loaded_data, .. } = execution;
    Simulation {
        compute_units,
        loaded_data: u32::try_from(loaded_data).ok(),
        outcome: outcome.map_err(|error| decode::failure(error, Some(&transaction.message), logs)),
        answered_by: AnsweredBy::Proxy { slot },
    }
}
