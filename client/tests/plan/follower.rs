//! Follows a plan round by round, as the programs would, and checks what it comes to.

use std::collections::{BTreeMap, HashSet};

use committor_client::{
    CommitMode,
    plan::{BundleFacts, BundlePlan, PlanContext, PlannedTransaction, TableNeed},
    types::{Method, Stage, TransactionVersion},
};
use committor_sdk::{
    address, chunk_buffer, delegation,
    digest::{payload_digest, seal_calls},
};
use solana_address::Address;
use solana_hash::Hash;
use solana_instruction::Instruction;

use crate::facts::{MAX_GROWTH, RENT};

/// What a plan does to one buffer.
#[derive(Default)]
pub struct Upload {
    pub created_in: Option<usize>,
    pub chunks: BTreeMap<usize, Vec<u8>>,
    pub seals: Vec<usize>,
    pub used_in: Option<usize>,
    pub closed_in: Option<usize>,
    digest: Option<Vec<u8>>,
}

/// What a plan commits or stages for one account.
pub struct Committed {
    method: Method,
    /// State or patch, if inline.
    inline: Vec<u8>,
    buffer: Option<Address>,
    nonce: u64,
    staged: bool,
}

#[derive(Default)]
pub struct Follower {
    pub uploads: BTreeMap<Address, Upload>,
    grown: BTreeMap<Address, usize>,
    pub funded: BTreeMap<Address, u64>,
    committed: BTreeMap<Address, Committed>,
    handed_back: HashSet<Address>,
    pub finalized: BTreeMap<Address, Address>,
    /// Instructions of other programs, and where they stand in their transaction.
    others: Vec<(Instruction, usize)>,
}

impl Follower {
    pub fn follow(plan: &BundlePlan) -> Self {
        Self::default().rounds(plan, 0)
    }

    /// As [`Self::follow`], for buffers that were created before.
    pub fn follow_resumed(plan: &BundlePlan) -> Self {
        let mut follower = Self::default();
        for buffer in plan.commits.iter().filter_map(|commit| commit.buffer) {
            follower.uploads.insert(buffer, Upload { created_in: Some(0), ..Upload::default() });
        }
        follower.rounds(plan, 1)
    }

    fn rounds(mut self, plan: &BundlePlan, first: usize) -> Self {
        for (round, transactions) in plan.rounds.iter().enumerate() {
            for transaction in transactions {
                for (position, instruction) in transaction.instructions.iter().enumerate() {
                    self.instruction(round + first, position, instruction, transaction);
                }
            }
        }
        self
    }

    fn instruction(
        &mut self,
        round: usize,
        position: usize,
        instruction: &Instruction,
        transaction: &PlannedTransaction,
    ) {
        let account = |index: usize| instruction.accounts[index].pubkey;
        let data = &instruction.data;
        let number = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
        if instruction.program_id == chunk_buffer::ID {
            let upload = self.uploads.entry(account(1)).or_default();
            match data[0] {
                1 => assert_eq!(upload.created_in.replace(round), None, "a buffer is created once"),
                2 => {
                    let before = upload.chunks.insert(number(1), data[9..].to_vec());
                    assert_eq!(before, None, "a chunk is written once");
                    let created = upload.created_in.expect("a buffer is created before it is written");
                    let same = transaction.instructions.iter().any(|other| other.data[..1] == [1]);
                    assert!(created < round || same, "and not in another transaction of the same round");
                }
                3 => {
                    upload.seals.push(round);
                    upload.digest = Some(data[1..].to_vec());
                }
                4 => assert_eq!(upload.closed_in.replace(round), None, "a buffer is closed once"),
                other => panic!("instruction {other}"),
            }
        } else if instruction.program_id == delegation::ID {
            assert_eq!(account(2), address::record(&account(1)));
            match data[0] {
                4 => *self.grown.entry(account(1)).or_default() += MAX_GROWTH,
                8 => {
                    assert_eq!(transaction.stage, Stage::Finalize);
                    assert_eq!(self.finalized.insert(account(1), account(3)), None);
                }
                9 => {
                    assert!(self.committed.contains_key(&account(1)), "committed first");
                    assert!(self.handed_back.insert(account(1)));
                }
                code => self.commit(code, round, instruction, transaction),
            }
        } else if instruction.program_id == Address::default() && data[..4] == [2, 0, 0, 0] {
            assert!(self.others.is_empty() || transaction.stage != Stage::Commit);
            let lamports = u64::from_le_bytes(data[4..12].try_into().unwrap());
            *self.funded.entry(account(1)).or_default() += lamports;
        } else if instruction.program_id != Address::default() {
            assert_eq!(transaction.stage, Stage::Commit, "actions ride with what is committed");
            self.others.push((instruction.clone(), position));
        }
    }

    fn commit(
        &mut self,
        code: u8,
        round: usize,
        instruction: &Instruction,
        transaction: &PlannedTransaction,
    ) {
        let account = instruction.accounts[1].pubkey;
        let data = &instruction.data;
        assert_eq!(transaction.stage, Stage::Commit);
        assert!(self.others.is_empty(), "actions come after all commits");
        let nonce = u64::from_le_bytes(data[9..17].try_into().unwrap());
        let (method, buffer) = match code {
            5 => (Method::Inline, None),
            11 => (Method::InlinePatch, None),
            6 | 7 if data[25] == 0 => (Method::Buffer, Some(3)),
            6 | 7 => (Method::BufferPatch, Some(3)),
            10 => (Method::Buffer, Some(5)),
            other => panic!("instruction {other}"),
        };
        if code == 10 {
            self.handed_back.insert(account);
        }
        let buffer = buffer.map(|index: usize| instruction.accounts[index].pubkey);
        if let Some(buffer) = buffer {
            let upload = self.uploads.get_mut(&buffer).unwrap();
            upload.used_in = Some(round);
            assert!(upload.closed_in.is_none(), "a buffer is closed after it was used");
        }
        let inline = if buffer.is_none() { data[29..].to_vec() } else { Vec::new() };
        let staged = code == 7;
        let before = self.committed.insert(account, Committed { method, inline, buffer, nonce, staged });
        assert!(before.is_none(), "an account is committed once");
    }
}

/// What the delegation program makes of a patch.
fn apply(base: &[u8], patch: &[u8]) -> Vec<u8> {
    let number = |at: usize| u32::from_le_bytes(patch[at..at + 4].try_into().unwrap()) as usize;
    let mut state = base.to_vec();
    state.resize(number(0), 0);
    let mut at = 4;
    while at < patch.len() {
        let (offset, len) = (number(at), number(at + 4));
        state[offset..offset + len].copy_from_slice(&patch[at + 8..at + 8 + len]);
        at += 8 + len;
    }
    state
}

/// Checks that every transaction keeps the limits, and that none is another one's double.
fn check_transactions(plan: &BundlePlan, context: &PlanContext) {
    let mut messages = HashSet::new();
    for transaction in plan.transactions() {
        transaction.check(&context.payer).unwrap();
        assert!(transaction.wire_len(&context.payer).unwrap() <= context.version.max_len());
        let message = transaction.message(&context.payer, Hash::default()).unwrap();
        assert!(messages.insert(message.serialize()), "no two transactions share a signature");
    }
}

/// Checks that a plan does what its bundle says, and costs what it says.
pub fn check(plan: &BundlePlan, bundle: &BundleFacts, context: &PlanContext) {
    check_transactions(plan, context);
    let commits: Vec<&PlannedTransaction> =
        plan.transactions().filter(|transaction| transaction.stage == Stage::Commit).collect();
    assert_eq!(commits.len(), 1, "one transaction applies the bundle");
    for transaction in plan.transactions().filter(|transaction| transaction.stage != Stage::Commit) {
        assert!(transaction.tables.is_empty());
    }
    match &plan.tables {
        TableNeed::None => assert!(commits[0].tables.is_empty()),
        TableNeed::Ready(tables) => {
            assert!(tables.iter().all(|table| context.tables.contains(table)));
            assert_eq!(commits[0].tables, *tables);
        }
        TableNeed::Missing(addresses) => assert!(!addresses.contains(&context.authority)),
    }
    assert!(plan.tables == TableNeed::None || context.version == TransactionVersion::V0);
    let follower = Follower::follow(plan);
    let actions: Vec<&Instruction> = follower.others.iter().map(|(instruction, _)| instruction).collect();
    assert_eq!(actions, bundle.actions.iter().map(|action| &action.instruction).collect::<Vec<_>>());
    let handed_back = if bundle.mode == CommitMode::Undelegate { bundle.accounts.len() } else { 0 };
    assert_eq!(follower.handed_back.len(), handed_back);
    assert_eq!(follower.committed.len(), bundle.accounts.len());
    for (facts, commit) in bundle.accounts.iter().zip(&plan.commits) {
        let committed = &follower.committed[&facts.account];
        assert_eq!(committed.nonce, facts.record.unwrap().nonce + 1);
        assert_eq!(committed.buffer, commit.buffer);
        assert_eq!(committed.staged, bundle.mode == CommitMode::Stage);
        assert_eq!(committed.method, commit.strategy.method);
        if bundle.mode != CommitMode::Stage {
            follower.check_growth(facts);
        }
        let payload = match committed.buffer {
            None => committed.inline.clone(),
            Some(buffer) => follower.payload(buffer, bundle.mode),
        };
        let found = match committed.method {
            Method::Inline | Method::Buffer => payload,
            Method::InlinePatch | Method::BufferPatch => apply(facts.base.as_ref().unwrap(), &payload),
        };
        assert!(found == facts.state[..], "the account gets another state");
    }
    follower.check_price(plan, context);
}

/// Checks that a plan applies what is staged.
pub fn check_finalize(plan: &BundlePlan, bundle: &BundleFacts, context: &PlanContext) {
    check_transactions(plan, context);
    let applies = plan.transactions().filter(|transaction| transaction.stage == Stage::Finalize);
    assert_eq!(applies.count(), 1, "one transaction applies the bundle");
    let follower = Follower::follow(plan);
    assert_eq!(follower.finalized.len(), bundle.accounts.len());
    for facts in &bundle.accounts {
        let buffer = facts.record.unwrap().staged_buffer;
        assert_eq!(follower.finalized[&facts.account], buffer);
        assert!(follower.uploads[&buffer].closed_in.is_some());
        follower.check_growth(facts);
    }
    follower.check_price(plan, context);
}

impl Follower {
    /// The account is long enough for its state when it gets it, and can keep it.
    fn check_growth(&self, facts: &committor_client::plan::AccountFacts) {
        let growth = facts.state.len().saturating_sub(facts.len);
        let steps = self.grown.get(&facts.account).copied().unwrap_or_default();
        assert!(steps + MAX_GROWTH >= growth, "the account can take its new length");
        let funded = self.funded.get(&facts.account).copied().unwrap_or_default();
        assert!(growth == 0 || facts.lamports.0 + funded >= RENT.minimum(facts.state.len() as u64).0);
    }

    /// What a buffer holds when it is used: all of it written and sealed before, and closed after.
    fn payload(&self, buffer: Address, mode: CommitMode) -> Vec<u8> {
        let upload = &self.uploads[&buffer];
        let mut payload = Vec::new();
        for (offset, chunk) in &upload.chunks {
            assert_eq!(*offset, payload.len(), "chunks leave no gap and do not overlap");
            payload.extend_from_slice(chunk);
        }
        assert_eq!(upload.seals.len() as u64, seal_calls(payload.len() as u64));
        assert_eq!(upload.digest.as_deref(), Some(&payload_digest(&payload)[..]));
        assert!(upload.seals.iter().all(|seal| Some(*seal) <= upload.used_in));
        match mode {
            CommitMode::Stage => assert_eq!(upload.closed_in, None, "what is staged is still needed"),
            _ => assert!(upload.closed_in >= upload.used_in, "a buffer is closed after it was used"),
        }
        assert!(self.funded[&buffer] >= RENT.minimum(96 + payload.len() as u64).0);
        payload
    }

    /// The price is what the transactions say, added up.
    fn check_price(&self, plan: &BundlePlan, context: &PlanContext) {
        let price = plan.price(context);
        let transactions: Vec<&PlannedTransaction> = plan.transactions().collect();
        let applies = |round: &&Vec<PlannedTransaction>| {
            round.iter().any(|transaction| transaction.stage != Stage::Cleanup)
        };
        let (count, rounds) = (transactions.len() as u64, plan.rounds.iter().filter(applies).count() as u64);
        let units: u64 = transactions.iter().map(|one| u64::from(one.compute_unit_limit)).sum();
        let fees: u64 = transactions.iter().map(|one| one.fee(&context.payer).0).sum();
        assert_eq!(price.compute_units, units);
        let moved: u64 = self.funded.values().sum();
        let created = self.uploads.iter().filter(|(_, upload)| upload.created_in.is_some());
        let returned: u64 =
            created.map(|(buffer, _)| self.funded.get(buffer).copied().unwrap_or_default()).sum();
        let table = match &plan.tables {
            TableNeed::None | TableNeed::Ready(_) => {
                assert_eq!((price.transactions, price.rounds), (count, rounds));
                assert_eq!(price.fee_lamports.0, fees);
                0
            }
            TableNeed::Missing(addresses) => {
                assert!(price.transactions > count && price.rounds > rounds && price.fee_lamports.0 > fees);
                RENT.minimum(56 + 32 * addresses.len() as u64).0
            }
        };
        assert_eq!(price.rent_locked_lamports.0, moved + table);
        assert_eq!(price.rent_returned_lamports.0, returned + table);
    }
}
