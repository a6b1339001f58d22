//! A program's way on chain: through a loader buffer, then deployed or upgraded in one transaction.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_loader_v3_interface::{
    get_program_data_address,
    instruction::{self as loader, UpgradeableLoaderInstruction},
    state::UpgradeableLoaderState,
};
use solana_message::Message;
use solana_sdk_ids::{bpf_loader_upgradeable, system_program, sysvar};
use solana_system_interface::instruction as system;

use super::{
    PlanContext, PlanError, PlannedTransaction, Price, cost,
    loader::{LoaderBuffer, differences, plan_close_loader_buffer, plan_set_loader_buffer_authority},
    transaction::TransactionBuilder,
};
use crate::types::{Lamports, Stage};

/// What the address of a program's buffer depends on besides authority, program and content.
const PROGRAM_TAG: &[u8] = b"committor program";
/// The longest account, in bytes.
const MAX_ACCOUNT_LEN: usize = 10 * 1024 * 1024;
/// Length of the header of the account that holds a program's bytes.
pub const PROGRAM_DATA_HEADER: usize = UpgradeableLoaderState::size_of_programdata_metadata();
/// The longest program, in bytes.
pub const MAX_PROGRAM_LEN: usize = MAX_ACCOUNT_LEN - PROGRAM_DATA_HEADER;
/// A program data account grows by at least so much, or to the longest: the loader refuses less where the feature gate
/// `loader_v3_minimum_extend_program_size` is active.
const MIN_EXTENSION: usize = 10_240;

/// Who may upgrade a program once it is deployed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpgradeAuthority {
    /// Who may now; after the first deploy, who deployed it.
    #[default]
    Same,
    /// Somebody else.
    Other(Address),
    /// Nobody, ever.
    Nobody,
}

/// How far a program goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramGoal {
    /// It is deployed, or upgraded if it exists.
    Deployed(UpgradeAuthority),
    /// It waits in its buffer, which is handed to whoever upgrades the program.
    InBuffer {
        /// To whom; nobody else than the authority if absent.
        handed_to: Option<Address>,
    },
}

/// A program, and what the chain says about it.
#[derive(Clone, Debug)]
pub struct ProgramFacts {
    /// Its bytes.
    pub elf: Arc<[u8]>,
    /// Its address.
    pub program: Address,
    /// Bytes that there shall be room for, if more than its own.
    pub max_len: Option<usize>,
    /// How far it goes.
    pub goal: ProgramGoal,
    /// The address of its buffer, which [`program_seed`] gives.
    pub buffer: Address,
    /// Lamports at that address.
    pub buffer_lamports: Lamports,
    /// The buffer's content and its authority, if it exists.
    pub buffered: Option<(Vec<u8>, Address)>,
    /// Lamports at the program's address.
    pub program_lamports: Lamports,
    /// The program, if it exists.
    pub deployed: Option<DeployedFacts>,
}

/// A program that is on chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployedFacts {
    /// Bytes that there is room for.
    pub max_len: usize,
    /// Lamports of the account that holds its bytes.
    pub lamports: Lamports,
    /// The slot in which it was deployed, upgraded or extended last.
    pub slot: u64,
    /// Who may upgrade it.
    pub authority: Option<Address>,
    /// Whether it holds the very bytes that are to be deployed.
    pub is_equal: bool,
}

/// How a program reaches the chain.
#[derive(Clone, Debug, Default)]
pub struct ProgramPlan {
    /// What brings its bytes into the buffer, by rounds.
    pub uploads: Vec<Vec<PlannedTransaction>>,
    /// What makes room for it. Not in the slot in which the program was changed last.
    pub extension: Option<PlannedTransaction>,
    /// What deploys, upgrades or hands on. Not in the slot in which the program was changed last, nor in that of the extension.
    pub last: Option<PlannedTransaction>,
    /// The most rent that is locked at a time on top of what was before, in lamports.
    pub rent_peak: Lamports,
    /// What of it comes back by the end, in lamports.
    pub rent_returned: Lamports,
    /// Bytes of the program that are sent.
    pub bytes: u64,
}

/// The seed of a program's buffer: the same for the same program and content, so that an interrupted deploy is found again.
pub fn program_seed(program: &Address, elf: &[u8]) -> String {
    let hash = Sha256::new()
        .chain_update(PROGRAM_TAG)
        .chain_update(program)
        .chain_update((elf.len() as u64).to_le_bytes())
        .chain_update(elf)
        .finalize();
    hash.iter().take(committor_sdk::address::MAX_SEED_LEN / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Where a program's buffer is.
///
/// # Errors
/// [`PlanError::Seed`] for a seed of the wrong length, which this one is not.
pub fn program_buffer(authority: &Address, program: &Address, elf: &[u8]) -> Result<Address, PlanError> {
    let seed = program_seed(program, elf);
    Address::create_with_seed(authority, &seed, &bpf_loader_upgradeable::ID).map_err(|_| PlanError::Seed {
        account: *program,
        source: committor_sdk::address::SeedTooLong { actual: seed.len() },
    })
}

/// Plans what is left to be done.
///
/// # Errors
/// [`PlanError::DoesNotFit`] if there is no room for so many bytes.
pub fn plan_program(facts: &ProgramFacts, context: &PlanContext) -> Result<ProgramPlan, PlanError> {
    let plan = match (&facts.goal, &facts.deployed) {
        (ProgramGoal::Deployed(authority), Some(deployed)) if deployed.is_equal => {
            settle(facts, deployed, *authority, context)
        }
        (ProgramGoal::InBuffer { .. }, Some(deployed)) if deployed.is_equal => ProgramPlan::default(),
        _ => upload(facts, context)?,
    };
    for transaction in plan.transactions() {
        transaction.check(&context.payer)?;
    }
    Ok(plan)
}

/// The bytes are deployed: what is left is the authority, and a buffer that nobody needs any more.
fn settle(
    facts: &ProgramFacts,
    deployed: &DeployedFacts,
    authority: UpgradeAuthority,
    context: &PlanContext,
) -> ProgramPlan {
    let mut builder = TransactionBuilder::new(Stage::Commit);
    builder.loads((PROGRAM_DATA_HEADER + deployed.max_len) as u64);
    let is_due = add_authority(&mut builder, facts, deployed.authority, authority, context);
    let left = facts.buffered.as_ref().filter(|(_, authority)| *authority == context.authority);
    let close = left.map(|(content, _)| {
        let len = UpgradeableLoaderState::size_of_buffer(content.len()) as u64;
        vec![plan_close_loader_buffer(facts.buffer, len, context.payer, context)]
    });
    ProgramPlan {
        rent_returned: close.as_ref().map_or(Lamports(0), |_| facts.buffer_lamports),
        uploads: close.into_iter().collect(),
        last: is_due.then(|| builder.build(context, 0)),
        ..ProgramPlan::default()
    }
}

fn upload(facts: &ProgramFacts, context: &PlanContext) -> Result<ProgramPlan, PlanError> {
    let seed = program_seed(&facts.program, &facts.elf);
    let buffer = LoaderBuffer { address: facts.buffer, seed: &seed, content: &facts.elf };
    let minimum = context.rent.minimum(buffer.account_len());
    let (found, rent, uploads) = match &facts.buffered {
        Some((found, _)) => {
            let writes = buffer.complete(found, context)?;
            let rounds = (!writes.is_empty()).then_some(writes).into_iter().collect();
            (Some(found.as_slice()), Lamports(0), rounds)
        }
        None => {
            let rent = minimum.saturating_sub(facts.buffer_lamports);
            (None, rent, buffer.create(rent, context)?)
        }
    };
    let buffered = facts.buffer_lamports + rent;
    let bytes = differences(&facts.elf, found).iter().map(|range| range.len() as u64).sum();
    let plan = ProgramPlan { uploads, bytes, rent_peak: rent, rent_returned: rent, ..ProgramPlan::default() };
    let plan = match (&facts.goal, &facts.deployed) {
        (ProgramGoal::Deployed(authority), None) => deploy(plan, facts, *authority, buffered, context),
        (ProgramGoal::Deployed(authority), Some(deployed)) => {
            let plan = extend(plan, facts, deployed, context);
            upgrade(plan, facts, deployed, *authority, buffered, context)
        }
        (ProgramGoal::InBuffer { handed_to }, deployed) => {
            let plan = match deployed {
                Some(deployed) => extend(plan, facts, deployed, context),
                None => plan,
            };
            let owner = facts.buffered.as_ref().map_or(context.authority, |(_, authority)| *authority);
            let len = buffer.account_len();
            let hand_on = |to| plan_set_loader_buffer_authority(facts.buffer, len, to, context);
            ProgramPlan { last: handed_to.filter(|to| *to != owner).map(hand_on), ..plan }
        }
    };
    Ok(plan)
}

/// The first deploy. The loader gives the buffer's lamports to the payer before it takes those of the program data.
fn deploy(
    plan: ProgramPlan,
    facts: &ProgramFacts,
    authority: UpgradeAuthority,
    buffered: Lamports,
    context: &PlanContext,
) -> ProgramPlan {
    let (program, data) = (facts.program, get_program_data_address(&facts.program));
    let max_len = wanted_len(facts);
    let program_len = UpgradeableLoaderState::size_of_program() as u64;
    let program_rent = context.rent.minimum(program_len).saturating_sub(facts.program_lamports);
    let data_rent = context.rent.minimum(UpgradeableLoaderState::size_of_programdata(max_len) as u64);

    let mut builder = TransactionBuilder::new(Stage::Commit);
    builder.loads(UpgradeableLoaderState::size_of_buffer(facts.elf.len()) as u64).loads(max_len as u64);
    if program_rent.0 > 0 {
        builder.add(system::transfer(&context.payer, &program, program_rent.0), cost::BUILTIN);
    }
    builder
        .add(system::allocate(&program, program_len), cost::BUILTIN)
        .add(system::assign(&program, &bpf_loader_upgradeable::ID), cost::BUILTIN)
        .add(deploy_instruction(&program, &data, &facts.buffer, max_len, context), cost::LOADER)
        // It creates the account of the program's bytes.
        .calls(1);
    add_authority(&mut builder, facts, Some(context.authority), authority, context);

    let before = plan.rent_peak + program_rent;
    let after = (before + data_rent).saturating_sub(buffered);
    let rent_peak = before.max(after);
    ProgramPlan {
        last: Some(builder.build(context, 0)),
        rent_peak,
        rent_returned: rent_peak.saturating_sub(after),
        ..plan
    }
}

fn deploy_instruction(
    program: &Address,
    data: &Address,
    buffer: &Address,
    max_data_len: usize,
    context: &PlanContext,
) -> Instruction {
    use solana_instruction::AccountMeta;
    Instruction::new_with_bincode(
        bpf_loader_upgradeable::ID,
        &UpgradeableLoaderInstruction::DeployWithMaxDataLen { max_data_len },
        vec![
            AccountMeta::new(context.payer, true),
            AccountMeta::new(*data, false),
            AccountMeta::new(*program, false),
            AccountMeta::new(*buffer, false),
            AccountMeta::new_readonly(sysvar::rent::ID, false),
            AccountMeta::new_readonly(sysvar::clock::ID, false),
            AccountMeta::new_readonly(system_program::ID, false),
            AccountMeta::new_readonly(context.authority, true),
        ],
    )
}

/// Makes room for a longer program.
fn extend(
    plan: ProgramPlan,
    facts: &ProgramFacts,
    deployed: &DeployedFacts,
    context: &PlanContext,
) -> ProgramPlan {
    let max_len = max_len_after(facts, deployed);
    let additional = max_len - deployed.max_len;
    if additional == 0 {
        return plan;
    }
    let rent = data_rent(max_len, context).saturating_sub(deployed.lamports);
    let mut builder = TransactionBuilder::new(Stage::Commit);
    builder
        .loads((PROGRAM_DATA_HEADER + deployed.max_len) as u64)
        .add(loader::extend_program(&facts.program, Some(&context.payer), additional as u32), cost::LOADER)
        .calls(1);
    let rent_peak = plan.rent_peak + rent;
    ProgramPlan { extension: Some(builder.build(context, 0)), rent_peak, ..plan }
}

/// The room that an upgrade has, in bytes.
fn max_len_after(facts: &ProgramFacts, deployed: &DeployedFacts) -> usize {
    let missing = wanted_len(facts).saturating_sub(deployed.max_len);
    let headroom = MAX_PROGRAM_LEN.saturating_sub(deployed.max_len);
    let additional = if missing == 0 { 0 } else { missing.max(MIN_EXTENSION).min(headroom) };
    deployed.max_len + additional
}

fn wanted_len(facts: &ProgramFacts) -> usize {
    facts.elf.len().max(facts.max_len.unwrap_or_default())
}

fn upgrade(
    plan: ProgramPlan,
    facts: &ProgramFacts,
    deployed: &DeployedFacts,
    authority: UpgradeAuthority,
    buffered: Lamports,
    context: &PlanContext,
) -> ProgramPlan {
    let max_len = max_len_after(facts, deployed);
    let upgrade = loader::upgrade(&facts.program, &facts.buffer, &context.authority, &context.payer);
    let mut builder = TransactionBuilder::new(Stage::Commit);
    builder
        .loads(UpgradeableLoaderState::size_of_buffer(facts.elf.len()) as u64)
        .loads((PROGRAM_DATA_HEADER + max_len) as u64)
        .add(upgrade, cost::LOADER);
    add_authority(&mut builder, facts, deployed.authority, authority, context);
    // What the program data does not need comes back with the buffer's lamports.
    let extended = plan.rent_peak.saturating_sub(plan.rent_returned);
    let kept = data_rent(max_len, context);
    let rent_returned = (deployed.lamports + extended + buffered).saturating_sub(kept);
    ProgramPlan { last: Some(builder.build(context, 0)), rent_returned, ..plan }
}

/// The message with which whoever can upgrade a program does so from a buffer, as bytes: for signers elsewhere, as a multisig's.
/// Its blockhash is all zeroes. The buffer's lamports go to `spill`.
pub fn upgrade_message(program: &Address, buffer: &Address, authority: &Address, spill: &Address) -> Vec<u8> {
    let upgrade = loader::upgrade(program, buffer, authority, spill);
    Message::new(&[upgrade], Some(authority)).serialize()
}

fn data_rent(len: usize, context: &PlanContext) -> Lamports {
    context.rent.minimum(UpgradeableLoaderState::size_of_programdata(len) as u64)
}

/// Adds the change of the upgrade authority, if there is one.
fn add_authority(
    builder: &mut TransactionBuilder,
    facts: &ProgramFacts,
    now: Option<Address>,
    wanted: UpgradeAuthority,
    context: &PlanContext,
) -> bool {
    let new = match wanted {
        UpgradeAuthority::Same => now,
        UpgradeAuthority::Other(address) => Some(address),
        UpgradeAuthority::Nobody => None,
    };
    if new == now {
        return false;
    }
    let set = loader::set_upgrade_authority(&facts.program, &context.authority, new.as_ref());
    builder.add(set, cost::LOADER);
    true
}

impl ProgramPlan {
    /// All transactions, in an order in which they can land.
    pub fn transactions(&self) -> impl Iterator<Item = &PlannedTransaction> {
        self.uploads.iter().flatten().chain(&self.extension).chain(&self.last)
    }

    /// What the plan costs; the rent is the most that is locked at a time.
    pub fn price(&self, context: &PlanContext) -> Price {
        let mut price = Price::of(self.transactions(), &context.payer);
        let single = usize::from(self.extension.is_some()) + usize::from(self.last.is_some());
        price.rounds = (self.uploads.len() + single) as u64;
        price.rent_locked_lamports = self.rent_peak;
        price.rent_returned_lamports = self.rent_returned;
        price
    }
}
