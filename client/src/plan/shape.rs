//! The forms that a bundle's plan can take, how good each is, and the plan that it gives.

use std::{cell::OnceCell, sync::Arc};

use super::{
    BundleFacts, BundlePlan, CommitPlan, ComputeUnits, PlanContext, PlanError, TableNeed,
    account::{Delegated, MAX_GROWTH, MAX_UNDELEGATE_INLINE, RECORD_LEN, close, close_transaction},
    cost,
    finalize::{Part, finalize_fits},
    patch::{Patch, diff},
    transaction::{MAX_ACCOUNT_LOCKS, PlannedTransaction, TransactionBuilder},
    upload::{PayloadKind, Upload},
};
use crate::types::{CommitMode, Lamports, LookupTable, Method, Stage, Strategy, TransactionVersion};

/// Rounds before a table that does not exist can be used: one creates and fills it, and it counts from the next slot on.
const ROUNDS_FOR_TABLE: usize = 2;

/// Accounts that every commit locks: the delegated one and its record.
const LOCKS_PER_COMMIT: u64 = 2;

/// A bundle with what is worked out for its accounts when the first form asks for it.
pub(super) struct Bundle<'a> {
    pub(super) facts: &'a BundleFacts,
    pub(super) context: &'a PlanContext,
    prepared: Vec<Prepared<'a>>,
}

struct Prepared<'a> {
    account: Delegated<'a>,
    patch: OnceCell<Option<Patch>>,
    state: OnceCell<Upload>,
    changes: OnceCell<Upload>,
}

/// What rides in the committing transaction.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Growth beyond one step, so that no reader sees a half-grown account.
    grow_inside: bool,
    /// Creating and writing the buffers.
    upload_inside: bool,
    /// Sealing them.
    seal_inside: bool,
    /// Closing them.
    close_inside: bool,
}

/// One form of a plan.
struct Candidate {
    methods: Vec<Method>,
    form: Form,
    tables: TableNeed,
    commit: PlannedTransaction,
    rank: Rank,
}

/// How good a form is; less is better, the first difference decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Readers see an account that is half grown.
    half_grown: bool,
    /// Sequential rounds until the bundle is applied.
    rounds: usize,
    /// 1 if lookup tables are used, 2 if they have to be made first.
    tables: u8,
    /// Buffers.
    buffers: usize,
    /// Fees, in lamports.
    fees: Lamports,
}

impl<'a> Bundle<'a> {
    pub(super) fn new(facts: &'a BundleFacts, context: &'a PlanContext) -> Self {
        let prepared = facts.accounts.iter().map(|facts| Prepared {
            account: Delegated::new(facts),
            patch: OnceCell::new(),
            state: OnceCell::new(),
            changes: OnceCell::new(),
        });
        let prepared = prepared.collect();
        Self { facts, context, prepared }
    }

    /// The best form's plan.
    pub(super) fn plan(&self) -> Result<BundlePlan, PlanError> {
        self.build(self.best()?)
    }

    /// Finds out whether there is a plan, without making it.
    pub(super) fn fits(&self) -> Result<(), PlanError> {
        self.best().map(drop)
    }

    fn best(&self) -> Result<Candidate, PlanError> {
        let count = self.facts.accounts.len();
        if count as u64 * LOCKS_PER_COMMIT > MAX_ACCOUNT_LOCKS {
            // No form needs fewer, so one is enough to name the limit.
            let methods = vec![Method::Inline; count];
            let form = self.forms(&methods).into_iter().next();
            let form = form.map(|form| self.candidate(&methods, form, TableOption::None).map(drop));
            return Err(form.and_then(Result::err).unwrap_or(PlanError::no_commits()));
        }
        let found = self.best_of(&self.assignments(Patches::Used)?);
        let has_patches = (0..count).any(|index| self.patch(index).is_some());
        match found {
            // A patch of many ranges takes more compute units than a whole state: what does not fit with patches may fit
            // without.
            Err(PlanError::DoesNotFit { .. }) if has_patches => {
                self.best_of(&self.assignments(Patches::Ignored)?)
            }
            found => found,
        }
    }

    fn best_of(&self, assignments: &[Vec<Method>]) -> Result<Candidate, PlanError> {
        let mut best: Option<Candidate> = None;
        let mut broken = PlanError::no_commits();
        for tables in TableOption::all(self.context).iter().copied() {
            for methods in assignments {
                if best.as_ref().is_some_and(|best| best.rank <= self.at_best(methods, tables)) {
                    continue;
                }
                for form in self.forms(methods) {
                    match self.candidate(methods, form, tables) {
                        Ok(found) if best.as_ref().is_none_or(|best| found.rank < best.rank) => {
                            best = Some(found);
                        }
                        Ok(_) => (),
                        Err(error @ PlanError::DoesNotFit { .. }) => broken = error,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        best.ok_or(broken)
    }

    /// Whether the bundle fits with every state in the committing instruction itself.
    pub(super) fn fits_inline(&self) -> Result<bool, PlanError> {
        let methods = vec![Method::Inline; self.facts.accounts.len()];
        if self.facts.mode == CommitMode::Stage || !self.can_be_inline(&methods) {
            return Ok(false);
        }
        let fits = |form| self.candidate(&methods, form, TableOption::None).is_ok();
        Ok(self.forms(&methods).into_iter().any(fits))
    }

    fn can_be_inline(&self, methods: &[Method]) -> bool {
        let undelegates = self.facts.mode == CommitMode::Undelegate;
        let too_long =
            |index: usize| undelegates && self.facts.accounts[index].state.len() > MAX_UNDELEGATE_INLINE;
        (0..methods.len()).all(|index| methods[index].is_buffered() || !too_long(index))
    }

    fn patch(&self, index: usize) -> Option<&Patch> {
        let facts = &self.facts.accounts[index];
        let patch = self.prepared[index].patch.get_or_init(|| diff(facts.base.as_ref()?, &facts.state));
        patch.as_ref()
    }

    fn upload(&self, index: usize, method: Method) -> Result<Option<&Upload>, PlanError> {
        let facts = &self.facts.accounts[index];
        let (cell, kind, payload): (_, _, Arc<[u8]>) = match (method, self.patch_of(index, method)) {
            (Method::Inline | Method::InlinePatch, _) => return Ok(None),
            (Method::BufferPatch, Some(patch)) => {
                (&self.prepared[index].changes, PayloadKind::Patch, patch.bytes.as_slice().into())
            }
            _ => (&self.prepared[index].state, PayloadKind::State, facts.state.clone()),
        };
        if cell.get().is_none() {
            let upload = Upload::of_commit(facts, kind, payload, self.context)?;
            return Ok(Some(cell.get_or_init(|| upload)));
        }
        Ok(cell.get())
    }

    /// The upload, unless no buffer is long enough for it: the patch of a state that is may go through one all the same.
    fn buffered(&self, index: usize, method: Method) -> Result<Option<&Upload>, PlanError> {
        match self.upload(index, method) {
            Err(PlanError::Layout { .. }) => Ok(None),
            found => found,
        }
    }

    /// The patch, if the method has one.
    fn patch_of(&self, index: usize, method: Method) -> Option<&Patch> {
        match method {
            Method::InlinePatch | Method::BufferPatch => self.patch(index),
            Method::Inline | Method::Buffer => None,
        }
    }

    /// The shorter of state and patch.
    fn inline_method(&self, index: usize, patches: Patches) -> (Method, usize) {
        match self.patch(index) {
            Some(patch) if patches == Patches::Used => (Method::InlinePatch, patch.bytes.len()),
            _ => (Method::Inline, self.facts.accounts[index].state.len()),
        }
    }

    /// State or patch through a buffer, whichever takes fewer transactions. A patch is bound to the state that it was made
    /// from, so it has to be worth it.
    fn buffer_method(&self, index: usize, patches: Patches) -> Result<Method, PlanError> {
        let undelegates = self.facts.mode == CommitMode::Undelegate;
        if undelegates || patches == Patches::Ignored || self.patch(index).is_none() {
            return Ok(Method::Buffer);
        }
        let count = |method| {
            self.buffered(index, method).map(|upload| upload.map_or(usize::MAX, Upload::transaction_count))
        };
        if count(Method::BufferPatch)? < count(Method::Buffer)? {
            return Ok(Method::BufferPatch);
        }
        Ok(Method::Buffer)
    }

    /// The method of a commit of which a buffer exists already: it goes on where it stopped.
    fn begun_method(&self, index: usize) -> Result<Option<Method>, PlanError> {
        if self.facts.accounts[index].buffers.is_empty() {
            return Ok(None);
        }
        let mut methods = vec![Method::Buffer];
        if self.facts.mode != CommitMode::Undelegate && self.patch(index).is_some() {
            methods.push(Method::BufferPatch);
        }
        for method in methods {
            if self.buffered(index, method)?.is_some_and(|upload| !upload.is_new()) {
                return Ok(Some(method));
            }
        }
        Ok(None)
    }

    /// The ways to distribute the commits over methods, by number of buffers.
    fn assignments(&self, patches: Patches) -> Result<Vec<Vec<Method>>, PlanError> {
        let indices = 0..self.facts.accounts.len();
        let begun: Vec<Option<Method>> =
            indices.clone().map(|index| self.begun_method(index)).collect::<Result<_, _>>()?;
        if self.facts.mode == CommitMode::Stage {
            let method = |index: usize| begun[index].map_or_else(|| self.buffer_method(index, patches), Ok);
            return Ok(vec![indices.map(method).collect::<Result<_, _>>()?]);
        }
        let plain = || begun.iter().map(|begun| begun.unwrap_or(Method::Inline)).collect::<Vec<_>>();
        let mut assignments = vec![plain()];
        let short: Vec<(Method, usize)> =
            indices.clone().map(|index| self.inline_method(index, patches)).collect();
        let mut methods: Vec<Method> =
            indices.clone().map(|index| begun[index].unwrap_or(short[index].0)).collect();
        if methods != assignments[0] {
            assignments.push(methods.clone());
        }
        let mut longest: Vec<usize> = indices.filter(|index| begun[*index].is_none()).collect();
        longest.sort_by_key(|index| std::cmp::Reverse(short[*index].1));
        for index in longest {
            methods[index] = self.buffer_method(index, patches)?;
            assignments.push(methods.clone());
        }
        assignments.retain(|methods| self.can_be_inline(methods));
        Ok(assignments)
    }

    /// The forms that make a difference.
    fn forms(&self, methods: &[Method]) -> Vec<Form> {
        let stages = self.facts.mode == CommitMode::Stage;
        let buffered = methods.iter().any(|method| method.is_buffered());
        let grows = !stages && self.prepared.iter().any(|prepared| prepared.account.grow_steps() > 0);
        let either = |differs| if differs { &[true, false][..] } else { &[true][..] };
        let mut forms = Vec::new();
        for grow_inside in either(grows) {
            for upload_inside in if stages { &[true, false][..] } else { &[false][..] } {
                for seal_inside in either(buffered && !upload_inside) {
                    // What is staged is still needed.
                    for close_inside in if stages { &[false][..] } else { either(buffered) } {
                        forms.push(Form {
                            grow_inside: *grow_inside,
                            upload_inside: *upload_inside,
                            seal_inside: *seal_inside,
                            close_inside: *close_inside,
                        });
                    }
                }
            }
        }
        forms
    }

    /// A rank that no form with these methods beats.
    fn at_best(&self, methods: &[Method], tables: TableOption) -> Rank {
        Rank {
            half_grown: false,
            rounds: 1
                + usize::from(tables == TableOption::Missing) * ROUNDS_FOR_TABLE
                + usize::from(
                    self.facts.mode != CommitMode::Stage && methods.iter().any(|method| method.is_buffered()),
                ),
            tables: tables as u8,
            buffers: methods.iter().filter(|method| method.is_buffered()).count(),
            fees: Lamports(0),
        }
    }

    fn candidate(&self, methods: &[Method], form: Form, tables: TableOption) -> Result<Candidate, PlanError> {
        let payer = &self.context.payer;
        let mut builder = self.commit_transaction(methods, form)?;
        let tables_used = tables.give(&mut builder, self.context);
        let commit = builder.build(self.context, 0);
        commit.check(payer)?;
        if self.facts.mode == CommitMode::Stage {
            // What is staged and can't be applied would stay in the way for ever.
            finalize_fits(self.parts(methods)?, self.context)?;
        }
        let rank = self.rank(methods, form, tables, &commit)?;
        Ok(Candidate { methods: methods.to_vec(), form, tables: tables_used, commit, rank })
    }

    fn rank(
        &self,
        methods: &[Method],
        form: Form,
        tables: TableOption,
        commit: &PlannedTransaction,
    ) -> Result<Rank, PlanError> {
        let (mut prepare_rounds, mut transactions, mut seals, mut buffers) = (0, 0, 0, 0);
        for (index, method) in methods.iter().enumerate() {
            let account = &self.prepared[index].account;
            if !form.grow_inside {
                prepare_rounds = prepare_rounds.max(account.grow_round_count());
                transactions += account.grow_transaction_count();
            }
            let Some(upload) = self.upload(index, *method)? else { continue };
            buffers += 1;
            seals += upload.seals.len();
            if !form.upload_inside {
                prepare_rounds = prepare_rounds.max(upload.round_count());
                transactions += upload.transaction_count();
            }
        }
        let seal_round = !form.seal_inside && seals > 0;
        transactions += if seal_round { seals } else { 0 };
        transactions += if form.close_inside { 0 } else { buffers };
        let fee = commit.fee(&self.context.payer);
        Ok(Rank {
            half_grown: !form.grow_inside,
            rounds: prepare_rounds
                + usize::from(seal_round)
                + 1
                + usize::from(tables == TableOption::Missing) * ROUNDS_FOR_TABLE,
            tables: tables as u8,
            buffers,
            fees: Lamports(fee.0.saturating_mul(1 + transactions as u64)),
        })
    }

    fn commit_transaction(&self, methods: &[Method], form: Form) -> Result<TransactionBuilder, PlanError> {
        let (mode, context) = (self.facts.mode, self.context);
        let mut builder = TransactionBuilder::new(Stage::Commit);
        for (index, method) in methods.iter().enumerate() {
            let account = &self.prepared[index].account;
            builder.serves(index).loads(account.len.max(account.state.len()) as u64);
            let in_transit = if mode == CommitMode::Undelegate { account.state.len() } else { 0 };
            builder.loads(RECORD_LEN + in_transit as u64);
            if mode != CommitMode::Stage && (form.grow_inside || account.growth() <= MAX_GROWTH) {
                account.add_growth(&mut builder, account.grow_steps(), context);
            }
            let patch = self.patch_of(index, *method);
            let kind = PayloadKind::of(*method);
            let Some(upload) = self.upload(index, *method)? else {
                match patch {
                    Some(patch) => account.add_commit_patch(&mut builder, patch, context)?,
                    None => account.add_commit(&mut builder, context)?,
                }
                if mode == CommitMode::Undelegate {
                    account.add_undelegate(&mut builder, context)?;
                }
                continue;
            };
            builder.loads(upload.account_len());
            if form.upload_inside {
                upload.add_all(&mut builder, context)?;
            }
            if form.seal_inside {
                for seal in &upload.seals {
                    builder.add(seal.clone(), upload.seal_cost());
                }
            }
            match mode {
                CommitMode::Finalize => {
                    let ranges = patch.map_or(0, |patch| patch.ranges);
                    account.add_commit_buffer(&mut builder, upload, (kind, ranges), context)?;
                }
                CommitMode::Stage => account.add_stage(&mut builder, upload, kind, context)?,
                CommitMode::Undelegate => account.add_undelegate_buffer(&mut builder, upload, context)?,
            }
            if form.close_inside {
                builder.add(close(upload.buffer, context), cost::CLOSE);
            }
        }
        for action in &self.facts.actions {
            let cost = action.compute_units.map_or(cost::UNKNOWN, |units| ComputeUnits(units.into()));
            builder.add(action.instruction.clone(), cost);
        }
        builder.loads(self.facts.extra_loaded);
        Ok(builder)
    }

    /// What finalizing will have to do, once these methods have staged everything.
    fn parts(&self, methods: &[Method]) -> Result<Vec<Part<'_>>, PlanError> {
        let mut parts = Vec::with_capacity(methods.len());
        for (index, method) in methods.iter().enumerate() {
            let Some(upload) = self.upload(index, *method)? else { continue };
            let account = self.prepared[index].account;
            let cost = match self.patch_of(index, *method) {
                Some(patch) => ComputeUnits::patch(patch.ranges, patch.bytes.len()),
                None => ComputeUnits::commit(account.state.len()),
            };
            parts.push(Part { account, buffer: upload.buffer, buffer_len: upload.account_len(), cost });
        }
        Ok(parts)
    }

    fn build(&self, best: Candidate) -> Result<BundlePlan, PlanError> {
        let Candidate { methods, form, tables, commit, .. } = best;
        let context = self.context;
        let mut rounds: Vec<Vec<PlannedTransaction>> = Vec::new();
        let (mut seals, mut closes) = (Vec::new(), Vec::new());
        for (index, (prepared, method)) in self.prepared.iter().zip(&methods).enumerate() {
            let account = &prepared.account;
            if !form.grow_inside {
                merge(&mut rounds, account.grow_rounds(index, Stage::Prepare, context));
            }
            let Some(upload) = self.upload(index, *method)? else { continue };
            if !form.upload_inside {
                merge(&mut rounds, upload.rounds(index, context)?);
            }
            if !form.seal_inside {
                seals.extend(seal_transactions(index, upload, context));
            }
            if !form.close_inside && self.facts.mode != CommitMode::Stage {
                closes.push(close_transaction(index, upload.buffer, upload.account_len(), context));
            }
        }
        // An earlier attempt's buffers that this one has no use for.
        for (index, account) in self.facts.accounts.iter().enumerate() {
            let used = self.upload(index, methods[index])?.map(|upload| upload.buffer);
            for buffer in account.buffers.iter().filter(|buffer| Some(buffer.address) != used) {
                closes.push(close_transaction(index, buffer.address, buffer.account_len, context));
            }
        }
        if !seals.is_empty() {
            rounds.push(seals);
        }
        rounds.push(vec![commit]);
        if !closes.is_empty() {
            rounds.push(closes);
        }
        for transaction in rounds.iter().flatten() {
            transaction.check(&context.payer)?;
        }
        let commits = self.commit_plans(&methods, &tables)?;
        let mode = self.facts.mode;
        let has_actions = !self.facts.actions.is_empty();
        Ok(BundlePlan { mode, rounds, commits, tables, has_actions })
    }

    fn commit_plans(&self, methods: &[Method], tables: &TableNeed) -> Result<Vec<CommitPlan>, PlanError> {
        let plan = |(index, method): (usize, &Method)| {
            let account = &self.prepared[index].account;
            let upload = self.upload(index, *method)?;
            let (version, tables) = (self.context.version, *tables != TableNeed::None);
            let stages = self.facts.mode == CommitMode::Stage;
            let growth = if stages { Lamports(0) } else { account.rent_due(self.context) };
            let buffer_rent = upload.map_or(Lamports(0), |upload| upload.rent);
            Ok(CommitPlan {
                account: account.account,
                session: account.session(),
                nonce: account.nonce()?,
                strategy: Strategy { method: *method, version, tables },
                buffer: upload.map(|upload| upload.buffer),
                buffer_rent,
                rent: growth + buffer_rent,
            })
        };
        methods.iter().enumerate().map(plan).collect()
    }
}

/// Whether states may travel as what changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patches {
    Used,
    Ignored,
}

/// Where lookup tables come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableOption {
    None,
    Ready,
    Missing,
}

impl TableOption {
    /// Those that there are, the best first.
    pub(super) fn all(context: &PlanContext) -> &'static [Self] {
        match context.version {
            TransactionVersion::V1 => &[Self::None],
            TransactionVersion::V0 if context.tables.is_empty() => &[Self::None, Self::Missing],
            TransactionVersion::V0 => &[Self::None, Self::Ready, Self::Missing],
        }
    }

    /// Lets a transaction use the tables.
    pub(super) fn give(self, builder: &mut TransactionBuilder, context: &PlanContext) -> TableNeed {
        let keys = || builder.lookup_keys(&context.payer);
        let need = match self {
            Self::None => TableNeed::None,
            Self::Ready => TableNeed::Ready(cover(&keys(), &context.tables)),
            Self::Missing => TableNeed::Missing(keys()),
        };
        match &need {
            TableNeed::None => (),
            TableNeed::Ready(tables) => drop(builder.with_tables(tables)),
            // One that is not there yet can be measured all the same.
            TableNeed::Missing(addresses) => {
                let table = LookupTable { address: context.payer, addresses: addresses.clone() };
                builder.with_tables(&[table]);
            }
        }
        need
    }
}

/// The fewest of `tables` that serve what they can of `keys`, found greedily.
fn cover(keys: &[solana_address::Address], tables: &[LookupTable]) -> Vec<LookupTable> {
    let mut left: Vec<_> = keys.to_vec();
    let mut chosen = Vec::new();
    loop {
        let serves = |table: &&LookupTable| left.iter().filter(|key| table.addresses.contains(key)).count();
        let best = tables.iter().max_by_key(serves).filter(|table| serves(table) > 1);
        let Some(table) = best else { return chosen };
        left.retain(|key| !table.addresses.contains(key));
        chosen.push(table.clone());
    }
}

/// The calls of `seal`, each in a transaction of its own, in any order: each hashes the next segment.
pub(super) fn seal_transactions(
    index: usize,
    upload: &Upload,
    context: &PlanContext,
) -> Vec<PlannedTransaction> {
    let transactions = upload.seals.iter().zip(0u32..).map(|(seal, variant)| {
        let mut builder = TransactionBuilder::new(Stage::Prepare);
        builder.serves(index).loads(upload.account_len()).add(seal.clone(), upload.seal_cost());
        builder.build(context, variant)
    });
    transactions.collect()
}

/// Puts `more` beside `rounds`, round by round.
pub(super) fn merge(rounds: &mut Vec<Vec<PlannedTransaction>>, more: Vec<Vec<PlannedTransaction>>) {
    for (index, round) in more.into_iter().enumerate() {
        match rounds.get_mut(index) {
            Some(existing) => existing.extend(round),
            None => rounds.push(round),
        }
    }
}
