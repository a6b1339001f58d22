//! One bundle, from its turn to its end.

use std::{
    collections::HashSet,
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use committor_sdk::{address, delegation};
use solana_account::Account;
use solana_address::Address;
use solana_signature::Signature;
use tokio::{
    sync::{Mutex, Notify, broadcast},
    time::Instant,
};

use super::{
    EngineError, EngineSettings, Event, Signers,
    error::{chain_of, reason},
    round::Round,
    tables::{TableError, Tables},
};
use crate::{
    chain::Chain,
    plan::{
        AccountFacts, BundleFacts, BundlePlan, CommitPlan, PlanContext, RentSchedule, TableNeed, plan_bundle,
        plan_cleanup, plan_finalize,
    },
    store::{BundleEnd, CommitDecision, Store, StoredBundle},
    types::{BundleKey, BundleStatus, CommitMode, ComputeLimit, Stage, TableHolder, TransactionVersion},
};

/// What it takes to work on bundles.
pub(super) struct Runner<C> {
    pub(super) chain: Arc<C>,
    pub(super) store: Store,
    pub(super) signers: Signers,
    pub(super) settings: EngineSettings,
    pub(super) events: broadcast::Sender<Event>,
    /// The cluster's rent, and when it was asked for.
    pub(super) rent: Arc<Mutex<Option<(Instant, RentSchedule)>>>,
    /// The lookup tables of v0 transactions.
    pub(super) tables: Tables<C>,
    /// Told when lookup tables are made: from then on they need upkeep.
    pub(super) tables_needed: Arc<Notify>,
    /// Bundles that have reserved addresses in lookup tables.
    reserved: Arc<std::sync::Mutex<HashSet<BundleKey>>>,
}

impl<C: Chain> Runner<C> {
    pub(super) fn new(
        chain: Arc<C>,
        store: Store,
        signers: Signers,
        settings: EngineSettings,
        events: broadcast::Sender<Event>,
    ) -> Self {
        let tables = Tables::new(chain.clone(), store.clone(), signers.clone(), settings.tables);
        let (rent, tables_needed, reserved) = (Arc::default(), Arc::default(), Arc::default());
        Self { chain, store, signers, settings, events, rent, tables, tables_needed, reserved }
    }
}

impl<C> Clone for Runner<C> {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            store: self.store.clone(),
            signers: self.signers.clone(),
            settings: self.settings,
            events: self.events.clone(),
            rent: self.rent.clone(),
            tables: self.tables.clone(),
            tables_needed: self.tables_needed.clone(),
            reserved: self.reserved.clone(),
        }
    }
}

/// The transaction that applied a bundle, if it is known.
type Proof = Option<Signature>;

/// A bundle that was found applied, or staged.
struct Applied {
    proof: Proof,
    /// Whether its buffers are known to be closed, as far as they are to be.
    is_tidy: bool,
}

/// What the chain says about a bundle.
enum Outcome {
    Landed(Proof),
    NotLanded,
    /// A transaction that would apply it is still on its way.
    MayLand,
}

/// Waits longer each time.
struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    fn new(settings: &EngineSettings) -> Self {
        let (first, max) = (settings.first_retry_delay, settings.max_retry_delay);
        Self { next: first.min(max), max }
    }

    async fn wait(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = self.next.saturating_mul(2).min(self.max);
    }
}

impl<C: Chain> Runner<C> {
    /// Works on a bundle until the work has ended, and records how.
    pub(super) async fn run(&self, key: BundleKey) {
        let bundle = match self.store.bundle(key).await {
            Ok(bundle) => bundle,
            Err(error) => {
                // It stays unfinished, and the next start takes it up.
                tracing::error!(bundle = %key, error = chain_of(&error), "could not read a bundle");
                return;
            }
        };
        let applied = self.attempts(&bundle).await;
        if applied.as_ref().is_ok_and(|applied| !applied.is_tidy) {
            self.clean_up(&bundle).await;
        }
        let end = match applied.map(|applied| applied.proof) {
            Ok(proof) if stage_of(&bundle) == Stage::Commit && bundle.mode == CommitMode::Stage => {
                BundleEnd::Staged(proof)
            }
            Ok(proof) => BundleEnd::Landed(proof),
            // What is staged stays, unless it is gone.
            Err(error) if bundle.status == BundleStatus::Finalizing && !error.is_obsolete() => {
                BundleEnd::Postponed(reason(&error))
            }
            Err(error) => {
                self.clean_up(&bundle).await;
                BundleEnd::Failed(reason(&error))
            }
        };
        self.end(key, end).await;
    }

    /// Records how the work on a bundle ended, and tells it.
    pub(super) async fn end(&self, key: BundleKey, end: BundleEnd) {
        let status = match &end {
            BundleEnd::Landed(_) => BundleStatus::Landed,
            BundleEnd::Staged(_) => BundleStatus::Staged,
            BundleEnd::Postponed(reason) => {
                tracing::warn!(bundle = %key, reason, "bundle could not be finalized");
                BundleStatus::Staged
            }
            BundleEnd::Failed(reason) => {
                tracing::warn!(bundle = %key, reason, "bundle failed");
                BundleStatus::Failed
            }
        };
        self.record_costs(key).await;
        self.release_tables(key).await;
        if let Err(error) = self.store.end(key, end).await {
            // It stays unfinished, and the next start takes it up.
            tracing::error!(bundle = %key, error = chain_of(&error), "could not record the end of a bundle");
        }
        self.tell(Event::Ended { bundle: key, status });
    }

    /// Tries until the bundle has landed, or is certain not to.
    async fn attempts(&self, bundle: &StoredBundle) -> Result<Applied, EngineError> {
        let mut left = self.settings.attempts.max(1);
        let mut delay = Backoff::new(&self.settings);
        let (mut simulate, mut is_current) = (false, false);
        loop {
            let error = match self.attempt(bundle, simulate).await {
                Ok(applied) => return Ok(applied),
                Err(error) => error,
            };
            // A process that was just started does not know how far the chain is, and a lagging node may have told of the
            // past: that there is no plan is believed once the node has seen what the store has.
            if matches!(error, EngineError::Plan(_))
                && !std::mem::replace(&mut is_current, true)
                && let Some(slot) = self.store.last_slot(bundle.key).await?
            {
                self.chain.saw(slot);
                continue;
            }
            // Limits from the table may be too low for programs that nobody has measured.
            let from_table = self.settings.budgets.of(stage_of(bundle)).compute == ComputeLimit::Table;
            let try_simulated = !simulate && from_table && error.is_out_of_compute();
            simulate |= try_simulated;
            let mut is_over = false;
            if !error.is_outage() {
                left -= 1;
                is_over = left == 0 || self.settings.retry_for.is_some_and(|limit| age(bundle) >= limit);
            }
            if !(error.is_transient() || try_simulated) || is_over {
                return match self.outcome(bundle).await {
                    Some(proof) => Ok(Applied { proof, is_tidy: false }),
                    None => Err(error),
                };
            }
            self.tell(Event::Retrying { bundle: bundle.key, reason: chain_of(&error) });
            delay.wait().await;
            if error.is_lost_table()
                && let Err(error) = self.tables.reconcile().await
            {
                tracing::warn!(bundle = %bundle.key, error = chain_of(&error), "could not read lookup tables");
            }
        }
    }

    /// Whether the bundle has landed after all: an error may be the echo of an earlier transaction that did.
    ///
    /// Comes back only once the chain has told, and no transaction that would apply the bundle can land any more.
    async fn outcome(&self, bundle: &StoredBundle) -> Option<Proof> {
        let mut delay = Backoff::new(&self.settings);
        loop {
            match self.look(bundle).await {
                Ok(Outcome::Landed(proof)) => return Some(proof),
                Ok(Outcome::NotLanded) => return None,
                Ok(Outcome::MayLand) => (),
                // Neither answer is certain, so neither is given: a bundle called failed may not land after all.
                Err(error) => self.tell(Event::Retrying { bundle: bundle.key, reason: chain_of(&error) }),
            }
            delay.wait().await;
        }
    }

    async fn look(&self, bundle: &StoredBundle) -> Result<Outcome, EngineError> {
        // The height first: what is not found below may have landed before it, but not after.
        let height = self.chain.block_height().await?;
        let facts = self.facts(bundle).await?;
        if let Some(proof) = self.landed(bundle, &facts).await? {
            return Ok(Outcome::Landed(proof));
        }
        let open = self.store.open_transactions(bundle.key, stage_of(bundle)).await?;
        let may_land = open.iter().any(|open| open.unknown && open.last_valid_block_height >= height);
        Ok(if may_land { Outcome::MayLand } else { Outcome::NotLanded })
    }

    /// Closes what buffers a bundle has left, so that their rent comes back. Where that fails as often as a bundle is tried,
    /// they stay: nothing else depends on it.
    async fn clean_up(&self, bundle: &StoredBundle) {
        let mut delay = Backoff::new(&self.settings);
        for left in (0..self.settings.attempts.max(1)).rev() {
            let Err(error) = self.close_buffers(bundle).await else { return };
            tracing::warn!(bundle = %bundle.key, left, error = chain_of(&error), "could not close buffers");
            if left > 0 {
                delay.wait().await;
            }
        }
    }

    async fn close_buffers(&self, bundle: &StoredBundle) -> Result<(), EngineError> {
        let (context, facts) = tokio::try_join!(self.context(&[]), self.facts(bundle))?;
        let cleanup = plan_cleanup(&facts, &context);
        if !cleanup.is_empty() {
            self.round(Round::of(bundle.key, cleanup), &context).await?;
        }
        Ok(())
    }

    async fn attempt(&self, bundle: &StoredBundle, simulate: bool) -> Result<Applied, EngineError> {
        let accounts: Vec<Address> = bundle.commits.iter().map(|commit| commit.account).collect();
        let (context, mut facts) = tokio::try_join!(self.context(&accounts), self.facts(bundle))?;
        if let Some(proof) = self.landed(bundle, &facts).await? {
            return Ok(Applied { proof, is_tidy: false });
        }
        if bundle.status != BundleStatus::Finalizing {
            self.add_bases(&mut facts, &context).await?;
        }
        let (plan, context) = self.plan(bundle, &facts, context).await?;
        let transactions = plan.transactions().count();
        self.tell(Event::Planned { bundle: bundle.key, transactions });
        if bundle.status != BundleStatus::Finalizing {
            self.store.decide(bundle.key, decisions(&plan)).await?;
        }
        let (rounds, rehearsed) = self.rehearsed(plan.rounds, simulate, &context).await?;
        let mut applied = Applied { proof: None, is_tidy: true };
        for round in rounds {
            let round = Round { simulate, rehearsed, ..Round::of(bundle.key, round) };
            match self.round(round, &context).await {
                Ok(proof) => applied.proof = applied.proof.or(proof),
                // It is applied; what is left of its buffers can be closed at any time.
                Err(error) if applied.proof.is_some() => {
                    tracing::warn!(bundle = %bundle.key, error = chain_of(&error), "could not close buffers");
                    applied.is_tidy = false;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(applied)
    }

    /// The plan, and the context with the lookup tables that it needs: those that are missing are made, and kept for as
    /// long as the bundle is worked on.
    async fn plan(
        &self,
        bundle: &StoredBundle,
        facts: &BundleFacts,
        mut context: PlanContext,
    ) -> Result<(BundlePlan, PlanContext), EngineError> {
        let plan = if bundle.status == BundleStatus::Finalizing { plan_finalize } else { plan_bundle };
        if context.version == TransactionVersion::V0 {
            let accounts = facts.accounts.iter().map(|account| account.account);
            let keys: Vec<Address> =
                accounts.flat_map(|account| [account, address::record(&account)]).collect();
            context.tables = self.tables.tables_for(&keys);
        }
        let planned = plan(facts, &context)?;
        let TableNeed::Missing(addresses) = &planned.tables else { return Ok((planned, context)) };
        self.tables_needed.notify_one();
        self.lock_reserved().insert(bundle.key);
        context.tables = self.tables.reserve_together(TableHolder::Bundle(bundle.key), addresses).await?;
        let planned = plan(facts, &context)?;
        match &planned.tables {
            // The same facts name the same accounts: nothing can be missing that was reserved.
            TableNeed::Missing(left) => {
                Err(EngineError::Table(TableError::NoRoom { left: left.len(), attempts: 1 }))
            }
            TableNeed::None | TableNeed::Ready(_) => Ok((planned, context)),
        }
    }

    fn lock_reserved(&self) -> MutexGuard<'_, HashSet<BundleKey>> {
        // Every change is one insert or one remove, so a panic elsewhere leaves it whole.
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up what a bundle has reserved in lookup tables. Where that fails, the tables' own upkeep does it later.
    async fn release_tables(&self, key: BundleKey) {
        if !self.lock_reserved().remove(&key) {
            return;
        }
        if let Err(error) = self.tables.release(TableHolder::Bundle(key)).await {
            tracing::warn!(bundle = %key, error = chain_of(&error), "could not release lookup tables");
        }
    }

    /// Whether an earlier attempt has landed.
    ///
    /// One commit that is its account's last proves it for the whole bundle, which lands as one. If another committor has
    /// committed since, or the account is not delegated any more, the recorded transactions prove it.
    pub(super) async fn landed(
        &self,
        bundle: &StoredBundle,
        facts: &BundleFacts,
    ) -> Result<Option<Proof>, EngineError> {
        let mut proof = None;
        let open = self.store.open_transactions(bundle.key, stage_of(bundle)).await?;
        for open in &open {
            if let Some(Ok(landed)) = self.chain.find(open.signature).await? {
                self.settle(open.signature, &Ok(landed)).await?;
                proof = Some(open.signature);
                break;
            }
        }
        let by_record = facts.accounts.iter().any(|account| match (stage_of(bundle), bundle.mode) {
            (Stage::Commit, CommitMode::Stage) => account.is_staged() || account.has_landed(),
            _ => account.has_landed(),
        });
        let landed = proof.is_some() || by_record || (!open.is_empty() && self.handed_back(facts).await?);
        Ok(landed.then_some(proof))
    }

    /// Whether accounts that a bundle was to hand back are their owner programs' again, with its states in them: then
    /// nothing is left on chain that names the commit.
    async fn handed_back(&self, facts: &BundleFacts) -> Result<bool, EngineError> {
        let gone = |account: &AccountFacts| {
            account.record.is_none()
                && account.owner.is_some_and(|owner| owner != delegation::ID)
                && account.len == account.state.len()
        };
        if facts.mode != CommitMode::Undelegate || !facts.accounts.iter().all(gone) {
            return Ok(false);
        }
        let addresses: Vec<Address> = facts.accounts.iter().map(|account| account.account).collect();
        let found = self.chain.accounts(&addresses).await?;
        let equal = |(account, found): (&AccountFacts, Option<Account>)| {
            found.is_some_and(|found| found.data[..] == account.state[..])
        };
        Ok(facts.accounts.iter().zip(found).all(equal))
    }

    pub(super) fn tell(&self, event: Event) {
        // Nobody has to listen.
        let _ = self.events.send(event);
    }
}

/// How long ago a bundle was accepted, or asked for again.
fn age(bundle: &StoredBundle) -> Duration {
    let asked_at = u64::try_from(bundle.asked_at_ms).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_millis(asked_at))
}

/// The stage of the transaction that does what is to be done for a bundle.
fn stage_of(bundle: &StoredBundle) -> Stage {
    if bundle.status == BundleStatus::Finalizing { Stage::Finalize } else { Stage::Commit }
}

/// What the store has to know of a plan.
pub(super) fn decisions(plan: &BundlePlan) -> Vec<CommitDecision> {
    let decision = |commit: &CommitPlan| CommitDecision {
        session: commit.session,
        nonce: commit.nonce,
        strategy: commit.strategy,
        buffer: commit.buffer,
        rent: commit.rent,
    };
    plan.commits.iter().map(decision).collect()
}
