//! What a plan costs.

use serde::Serialize;
use solana_address::Address;

use super::{BundlePlan, PlanContext, PlannedTransaction, TableNeed};
use crate::types::{Lamports, Stage};

/// Length of a lookup table's header, in bytes.
const TABLE_HEADER_LEN: u64 = 56;
/// Addresses that the transaction which creates a table also puts into it.
const ADDRESSES_WITH_CREATION: usize = 20;
/// Addresses that one more transaction puts into a table.
const ADDRESSES_PER_EXTENSION: usize = 30;
/// Fewer addresses in each of these that pays a priority fee, which takes room.
const ADDRESSES_FOR_PRIORITY: usize = 2;
/// Compute-unit limit of a transaction that makes, fills or closes a lookup table, if it pays a priority fee.
pub const TABLE_COMPUTE_UNIT_LIMIT: u32 = 50_000;

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Price {
    /// Transactions.
    pub transactions: u64,
    /// Sequential rounds until the bundle is applied. Closing buffers comes after.
    pub rounds: u64,
    /// The sum of the compute-unit limits.
    pub compute_units: u64,
    /// Fees for signatures and priority, in lamports.
    pub fee_lamports: Lamports,
    /// Rent that the plan moves into accounts, buffers and lookup tables, in lamports.
    pub rent_locked_lamports: Lamports,
    /// What comes back of it when buffers and lookup tables are closed, in lamports.
    pub rent_returned_lamports: Lamports,
}

impl Price {
    /// What transactions cost, apart from rent.
    pub(super) fn of<'a>(
        transactions: impl IntoIterator<Item = &'a PlannedTransaction>,
        payer: &Address,
    ) -> Self {
        transactions.into_iter().fold(Self::default(), |price, transaction| Self {
            transactions: price.transactions + 1,
            compute_units: price.compute_units + u64::from(transaction.compute_unit_limit),
            fee_lamports: price.fee_lamports + transaction.fee(payer),
            ..price
        })
    }

    /// Both, one after the other.
    pub fn and(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            rounds: self.rounds + other.rounds,
            compute_units: self.compute_units + other.compute_units,
            fee_lamports: self.fee_lamports + other.fee_lamports,
            rent_locked_lamports: self.rent_locked_lamports + other.rent_locked_lamports,
            rent_returned_lamports: self.rent_returned_lamports + other.rent_returned_lamports,
        }
    }
}

impl BundlePlan {
    /// What the plan costs, lookup tables that have to be made included.
    pub fn price(&self, context: &PlanContext) -> Price {
        let mut price = Price::of(self.transactions(), &context.payer);
        price.rounds = self
            .rounds
            .iter()
            .filter(|round| round.iter().any(|transaction| transaction.stage != Stage::Cleanup))
            .count() as u64;
        price.rent_locked_lamports = self.commits.iter().map(|commit| commit.rent).sum();
        price.rent_returned_lamports = self.commits.iter().map(|commit| commit.buffer_rent).sum();
        let TableNeed::Missing(addresses) = &self.tables else { return price };
        let micro_lamports = context.prices.of_tables();
        let less = if micro_lamports > 0 { ADDRESSES_FOR_PRIORITY } else { 0 };
        let extensions = addresses.len().saturating_sub(ADDRESSES_WITH_CREATION - less);
        let transactions = 1 + extensions.div_ceil(ADDRESSES_PER_EXTENSION - less) as u64;
        let priority = u128::from(micro_lamports) * u128::from(TABLE_COMPUTE_UNIT_LIMIT);
        let priority = u64::try_from(priority.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let rent = context.rent.minimum(TABLE_HEADER_LEN + 32 * addresses.len() as u64);
        let signers: u64 = if context.payer == context.authority { 1 } else { 2 };
        price.and(Price {
            transactions,
            rounds: transactions + 1,
            compute_units: 0,
            fee_lamports: Lamports(transactions.saturating_mul((signers * 5_000).saturating_add(priority))),
            rent_locked_lamports: rent,
            rent_returned_lamports: rent,
        })
    }
}
