//! The same cells without a chain: also those that need lookup tables can be planned and compared.

use bytemuck::Zeroable;
use committor_client::{
    CommitMode, Lamports,
    plan::{AccountFacts, BundleFacts, PlanContext, PlanError, Prices, RentSchedule, TableNeed, plan_bundle},
    types::{CommitId, Method},
};
use committor_localnet::OWNER_PROGRAM_ID;
use committor_sdk::delegation::{self, Delegation};
use solana_address::Address;

use crate::{
    COUNTS, Check, LARGE, MIB, SIZES, Task, cells, ensure, equal,
    model::{Cell, Expected},
    resized,
};

fn is_planned_as_expected(task: &Task) -> Check {
    let cell = task.cell;
    let authority = Address::new_from_array([1; 32]);
    let context = PlanContext {
        payer: if cell.own_payer { Address::new_from_array([2; 32]) } else { authority },
        authority,
        version: cell.version,
        rent: RentSchedule { empty_account: Lamports(890_880), per_byte: Lamports(6_960) },
        prices: Prices::default(),
        tables: vec![],
    };
    let accounts =
        task.accounts.iter().zip(&task.old).zip(&task.new).map(|((account, old), new)| AccountFacts {
            account: *account,
            state: new.clone(),
            commit_id: CommitId(1),
            owner: Some(delegation::ID),
            len: old.len(),
            lamports: context.rent.minimum(old.len() as u64),
            record: Some(Delegation {
                account: *account,
                authority,
                owner_program: OWNER_PROGRAM_ID,
                rent_payer: authority,
                state: 2,
                version: 1,
                ..Delegation::zeroed()
            }),
            base: Some(old.as_slice().into()),
            buffers: vec![],
        });
    let accounts = accounts.collect();
    let facts = BundleFacts { mode: cell.mode, accounts, actions: vec![], extra_loaded: 0 };
    match (plan_bundle(&facts, &context), cell.expected()) {
        (Ok(plan), Expected::Lands(way)) => {
            let buffers = plan.commits.iter().filter(|commit| commit.strategy.method == Method::Buffer);
            equal("the number of buffers", buffers.count(), way.buffers)?;
            equal("whether it uses tables", plan.tables != TableNeed::None, way.tables)?;
            equal("the number of transactions", plan.transactions().count(), way.transactions)
        }
        (Err(error @ PlanError::DoesNotFit { .. }), Expected::Refused(limit)) => {
            ensure(error.to_string().contains(&limit), || format!("{error}, expected {limit}"))
        }
        (plan, expected) => Err(format!("{:?}, expected {expected:?}", plan.map(|plan| plan.commits.len()))),
    }
}

#[test]
fn what_is_planned_is_what_the_limits_allow_with_lookup_tables_too() {
    let mut all: Vec<Cell> = cells(&SIZES, &COUNTS, false);
    all.extend(cells(&SIZES, &COUNTS, true));
    all.extend(cells(&[LARGE], &COUNTS, false));
    all.extend(cells(&[MIB], &[1, 2, 3], false));
    let growth =
        [(0, 1), (0, 82), (0, 800), (0, 3_857), (100, 12_000), (0, 20_481), (10_240, LARGE), (0, MIB)];
    all.extend(resized(&growth, &[1, 2, 3, 8]));
    all.extend(resized(&growth[..5], &[12, 16, 17, 20, 21]));
    assert!(all.iter().any(|cell| cell.mode == CommitMode::Stage));
    let wrong: Vec<String> = (all.iter().enumerate())
        .filter_map(|(number, cell)| {
            let error = is_planned_as_expected(&Task::new(number, *cell)).err()?;
            Some(format!("{cell}: {error}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}
