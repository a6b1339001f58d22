//! What plans are made from.

use std::sync::Arc;

use bytemuck::Zeroable;
use committor_client::{
    CommitMode, Lamports,
    plan::{AccountFacts, BundleFacts, PlanContext, Prices, RentSchedule, StagePrice},
    types::{Action, CommitId, LookupTable, TransactionVersion},
};
use committor_sdk::{address, delegation};
use proptest::prelude::*;
use solana_address::Address;
use solana_instruction::{AccountMeta, Instruction};

pub const MAX_GROWTH: usize = 10_240;
pub const RENT: RentSchedule = RentSchedule { empty_account: Lamports(890_880), per_byte: Lamports(6_960) };

pub fn key(byte: u8) -> Address {
    Address::new_from_array([byte; 32])
}

pub fn context(version: TransactionVersion, own_payer: bool) -> PlanContext {
    let authority = key(200);
    PlanContext {
        payer: if own_payer { key(201) } else { authority },
        authority,
        version,
        rent: RENT,
        prices: Prices::default(),
        tables: vec![],
    }
}

/// An account of `len` bytes that is to get a state.
pub fn facts(index: u8, state: Vec<u8>, len: usize, nonce: u64, context: &PlanContext) -> AccountFacts {
    let account = key(index);
    let record = delegation::Delegation {
        account,
        authority: context.authority,
        owner_program: key(202),
        rent_payer: context.authority,
        nonce,
        state: 2,
        version: 1,
        ..delegation::Delegation::zeroed()
    };
    AccountFacts {
        account,
        state: state.into(),
        commit_id: CommitId(7),
        owner: Some(delegation::ID),
        len,
        lamports: RENT.minimum(len as u64),
        record: Some(record),
        base: None,
        buffers: vec![],
    }
}

/// An account whose content is known, of which `change` bytes from `at` on change.
pub fn changed(index: u8, len: usize, at: usize, change: usize, context: &PlanContext) -> AccountFacts {
    let base = state(len, index);
    let mut new = base.clone();
    new[at..at + change].iter_mut().for_each(|byte| *byte = !*byte);
    AccountFacts { base: Some(Arc::from(base)), ..facts(index, new, len, 0, context) }
}

/// An account of zeroes in which every 20th byte changes, `ranges` of them: a short patch that is expensive to apply.
pub fn sprinkled(index: u8, len: usize, ranges: usize, context: &PlanContext) -> AccountFacts {
    let mut new = vec![0; len];
    new.iter_mut().step_by(20).take(ranges).for_each(|byte| *byte = 1);
    AccountFacts { base: Some(vec![0; len].into()), ..facts(index, new, len, 0, context) }
}

pub fn state(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

pub fn bundle(accounts: Vec<AccountFacts>) -> BundleFacts {
    BundleFacts { mode: CommitMode::Finalize, accounts, actions: vec![], extra_loaded: 0 }
}

/// An instruction of some program that reads `accounts` accounts of its own.
pub fn action(program: u8, accounts: u8) -> Action {
    let account = |index| {
        let mut bytes = [program; 32];
        bytes[0] = index;
        AccountMeta::new_readonly(Address::new_from_array(bytes), false)
    };
    let accounts = (0..accounts).map(account).collect();
    let instruction = Instruction { program_id: key(program), accounts, data: vec![program] };
    Action { instruction, compute_units: Some(1_000) }
}

/// A table that holds all that a transaction on these accounts can look up, buffers aside.
pub fn table(bundle: &BundleFacts) -> LookupTable {
    let accounts = bundle.accounts.iter().map(|account| account.account);
    let addresses = accounts.flat_map(|account| [account, address::record(&account)]).collect();
    LookupTable { address: key(203), addresses }
}

pub fn any_len() -> impl Strategy<Value = usize> {
    prop_oneof![
        3 => 0usize..1_200,
        2 => prop::sample::select(vec![0, 1, 82, 800, 1_011, 1_012, 1_013, 3_855, 3_856, 3_857]),
        2 => prop::sample::select(vec![10_239, 10_240, 10_241, 20_480, 65_536]),
        1 => 1usize..30_000,
    ]
}

/// An account: its new length, its old one, its nonce, and whether its content is known, of which only a few bytes change.
pub fn any_account() -> impl Strategy<Value = (usize, usize, u64, Option<(usize, usize)>)> {
    let known = prop::option::of((0usize..30_000, 0usize..3_000));
    (any_len(), any_len(), 0u64..1_000, known)
}

pub fn account_of(
    index: u8,
    (len, old_len, nonce, known): (usize, usize, u64, Option<(usize, usize)>),
    context: &PlanContext,
) -> AccountFacts {
    let Some((at, change)) = known else {
        return facts(index, state(len, index), old_len, nonce, context);
    };
    let base = state(old_len, index);
    let mut new = base.clone();
    new.resize(len, 0);
    let end = (at + change).min(len);
    new[at.min(len)..end].iter_mut().for_each(|byte| *byte = !*byte);
    AccountFacts { base: Some(base.into()), ..facts(index, new, old_len, nonce, context) }
}

pub fn any_context() -> impl Strategy<Value = PlanContext> {
    let price = prop_oneof![Just(0u64), 1u64..1_000_000];
    (any::<bool>(), any::<bool>(), price).prop_map(|(v1, own_payer, price)| {
        let version = if v1 { TransactionVersion::V1 } else { TransactionVersion::V0 };
        let prices = Prices::new(|_| StagePrice { micro_lamports_per_unit: price, fixed_limit: None });
        PlanContext { prices, ..context(version, own_payer) }
    })
}

pub fn any_mode() -> impl Strategy<Value = CommitMode> {
    prop::sample::select(CommitMode::ALL.to_vec())
}
