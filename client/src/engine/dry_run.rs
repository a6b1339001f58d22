//! What a changeset would take, without sending anything.

use std::{collections::HashMap, sync::Arc};

use solana_address::Address;
use solana_signer::Signer;
use tokio::sync::broadcast;

use super::{EngineError, EngineSettings, Signers, admission::unstored, bundle::Runner};
use crate::{
    chain::Chain,
    plan::{AccountFacts, BundlePlan, PlanContext, PlanError, Price, pack, plan_bundle},
    store::Store,
    types::{BundleId, Changeset, CommitMode},
};

/// What one bundle would take.
#[derive(Clone, Debug)]
pub struct BundlePreview {
    /// The caller's id.
    pub id: BundleId,
    /// Its plan, or why it has none.
    pub plan: Result<BundlePlan, PlanError>,
    /// What the plan costs by itself; zero without one.
    pub price: Price,
    /// The bundle whose transaction it shares, if it does.
    pub shares_with: Option<BundleId>,
}

/// What a changeset would take.
///
/// ```no_run
/// # async fn run(signers: committor_client::Signers, changeset: committor_client::Changeset)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use std::{path::Path, sync::Arc};
/// use committor_client::{EngineSettings, Preview, Store, chain::{RpcChain, RpcSettings}};
///
/// let chain = Arc::new(RpcChain::new(RpcSettings::new("http://localhost:8899")));
/// let store = Store::open(Path::new("committor.db"))?;
/// let preview = Preview::new(chain, store, signers, EngineSettings::default(), &changeset).await?;
/// println!("{} transactions, {} lamports", preview.price.transactions, preview.price.fee_lamports);
/// for bundle in &preview.bundles {
///     match &bundle.plan {
///         Ok(plan) => println!("bundle {}: {} rounds", bundle.id, plan.rounds.len()),
///         Err(error) => println!("bundle {} has no plan: {error}", bundle.id),
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Preview {
    /// Its bundles, in order.
    pub bundles: Vec<BundlePreview>,
    /// What all of them cost together, shared transactions counted once. Rounds are those of the longest chain of bundles
    /// that share accounts.
    pub price: Price,
}

impl Preview {
    /// Plans a changeset against what the chain says now. Reads, and does nothing else. Patches are made from what the
    /// accounts hold.
    ///
    /// # Errors
    /// [`EngineError::Changeset`] if the changeset makes no sense or somebody else would have to sign; [`EngineError::Chain`] if the chain can't be read.
    pub async fn new<C: Chain>(
        chain: Arc<C>,
        store: Store,
        signers: Signers,
        settings: EngineSettings,
        changeset: &Changeset,
    ) -> Result<Self, EngineError> {
        changeset.check()?;
        let (payer, authority) = (signers.payer.pubkey(), signers.authority.pubkey());
        for bundle in &changeset.bundles {
            bundle.check_signers(payer, authority)?;
        }
        let (events, _) = broadcast::channel(1);
        let runner = Runner::new(chain, store, signers, settings, events);
        let accounts: Vec<Address> = (changeset.bundles.iter())
            .flat_map(|bundle| bundle.commits.iter().map(|commit| commit.account))
            .collect();
        let context = runner.context(&accounts).await?;
        let mut after = HashMap::new();
        let mut bundles = Vec::with_capacity(changeset.bundles.len());
        let mut rounds: HashMap<Address, u64> = HashMap::new();
        for bundle in &changeset.bundles {
            let mut facts = runner.facts(&unstored(bundle)).await?;
            let mut repeated = false;
            for account in &mut facts.accounts {
                if let Some(effect) = after.get(&account.account) {
                    apply(account, effect);
                    repeated = true;
                }
            }
            if !repeated {
                match runner.add_bases(&mut facts, &context).await {
                    Ok(()) | Err(EngineError::Plan(_)) => (),
                    Err(error) => return Err(error),
                }
            }
            let plan = plan_bundle(&facts, &context);
            let price = plan.as_ref().map(|plan| plan.price(&context)).unwrap_or_default();
            if plan.is_ok() {
                let start = facts.accounts.iter().filter_map(|account| rounds.get(&account.account)).max();
                let end = start.copied().unwrap_or_default() + price.rounds;
                for account in facts.accounts {
                    rounds.insert(account.account, end);
                    after.insert(account.account, Effect::of(&account, bundle.mode));
                }
            }
            bundles.push(BundlePreview { id: bundle.id, plan, price, shares_with: None });
        }
        let price = share(&mut bundles, changeset, &context, settings.share_transactions);
        let longest = rounds.into_values().max().unwrap_or_default();
        Ok(Self { bundles, price: Price { rounds: longest, ..price } })
    }
}

/// What an earlier bundle of the changeset makes of an account.
struct Effect {
    account: AccountFacts,
}

impl Effect {
    fn of(account: &AccountFacts, mode: CommitMode) -> Self {
        let mut account = account.clone();
        match mode {
            CommitMode::Finalize => {
                account.len = account.state.len();
                account.base = Some(account.state.clone());
                account.record.iter_mut().for_each(|record| record.nonce += 1);
            }
            CommitMode::Stage => account.record.iter_mut().for_each(|record| {
                record.staged_nonce = record.nonce + 1;
            }),
            CommitMode::Undelegate => {
                account.owner = account.record.map(|record| record.owner_program);
                account.record = None;
            }
        }
        Self { account }
    }
}

fn apply(account: &mut AccountFacts, effect: &Effect) {
    let before = &effect.account;
    account.len = before.len;
    account.base.clone_from(&before.base);
    account.record = before.record;
    account.owner = before.owner;
}

/// Finds out which bundles share transactions, and adds up what all cost.
fn share(bundles: &mut [BundlePreview], changeset: &Changeset, context: &PlanContext, share: bool) -> Price {
    let mut price = bundles.iter().fold(Price::default(), |price, bundle| price.and(bundle.price));
    if !share {
        return price;
    }
    // Only what is first in its accounts' queues starts together.
    let mut seen = std::collections::HashSet::new();
    let plans: Vec<Option<BundlePlan>> = (bundles.iter().zip(&changeset.bundles))
        .map(|(preview, bundle)| {
            let first =
                bundle.commits.iter().map(|commit| seen.insert(commit.account)).fold(true, |a, b| a & b);
            preview.plan.as_ref().ok().filter(|_| first && bundle.mode == CommitMode::Finalize).cloned()
        })
        .collect();
    for shared in pack(&plans, context) {
        let [first, others @ ..] = shared.bundles.as_slice() else { continue };
        let alone = Price {
            fee_lamports: shared.bundles.iter().map(|index| bundles[*index].price.fee_lamports).sum(),
            ..Price::default()
        };
        let units: u64 = shared.bundles.iter().map(|index| bundles[*index].price.compute_units).sum();
        price.transactions -= others.len() as u64;
        price.compute_units = price.compute_units - units + u64::from(shared.transaction.compute_unit_limit);
        price.fee_lamports =
            price.fee_lamports.saturating_sub(alone.fee_lamports) + shared.transaction.fee(&context.payer);
        let leader = bundles[*first].id;
        for index in others {
            bundles[*index].shares_with = Some(leader);
        }
    }
    price
}
