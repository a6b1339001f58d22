//! What transactions may use and what they pay for it.

use std::{fmt, str::FromStr};

use thiserror::Error;

use super::Stage;

/// Where a transaction's compute-unit limit comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComputeLimit {
    /// From what each instruction costs, as measured, and a tenth more. Costs no request.
    #[default]
    Table,
    /// From the node's simulation of the transaction, and a tenth more. One more request for each transaction.
    Simulate,
    /// This number of compute units.
    Fixed(u32),
}

/// What a transaction pays for its place in a block, on top of the base fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityFee {
    /// This price, in micro-lamports per compute unit.
    Fixed(u64),
    /// What transactions that write to the same accounts paid lately.
    Percentile {
        /// The percentile, 0 to 100.
        percentile: u8,
        /// No more than this, in micro-lamports per compute unit.
        cap: u64,
    },
}

impl PriorityFee {
    /// What three quarters of recent transactions stayed below, and one lamport per compute unit at most.
    pub const AUTO: Self = Self::Percentile { percentile: 75, cap: 1_000_000 };
}

impl Default for PriorityFee {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

/// How the transactions of one stage are limited and paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageBudget {
    /// The compute-unit limit.
    pub compute: ComputeLimit,
    /// The priority fee.
    pub priority_fee: PriorityFee,
}

/// How transactions are limited and paid for, by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budgets {
    /// What creates, writes and seals buffers.
    pub prepare: StageBudget,
    /// What applies or stages bundles.
    pub commit: StageBudget,
    /// What applies staged bundles.
    pub finalize: StageBudget,
    /// What closes buffers.
    pub cleanup: StageBudget,
}

impl Budgets {
    /// The same for every stage.
    pub const fn all(budget: StageBudget) -> Self {
        Self { prepare: budget, commit: budget, finalize: budget, cleanup: budget }
    }

    /// That of one stage.
    pub const fn of(&self, stage: Stage) -> StageBudget {
        match stage {
            Stage::Prepare => self.prepare,
            Stage::Commit => self.commit,
            Stage::Finalize => self.finalize,
            Stage::Cleanup => self.cleanup,
        }
    }

    /// That of one stage, to change it.
    pub const fn of_mut(&mut self, stage: Stage) -> &mut StageBudget {
        match stage {
            Stage::Prepare => &mut self.prepare,
            Stage::Commit => &mut self.commit,
            Stage::Finalize => &mut self.finalize,
            Stage::Cleanup => &mut self.cleanup,
        }
    }
}

/// Neither a compute-unit limit nor a priority fee.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// No compute-unit limit.
    #[error("`{0}` is no compute-unit limit: expected `table`, `simulate` or a number from 1 to 1,400,000")]
    Compute(String),
    /// No priority fee.
    #[error(
        "`{0}` is no priority fee: expected a price in micro-lamports per compute unit, `auto`, or `pN:CAP` for the Nth percentile of recent fees, CAP at most"
    )]
    PriorityFee(String),
}

impl FromStr for ComputeLimit {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        match text {
            "table" => Ok(Self::Table),
            "simulate" => Ok(Self::Simulate),
            number => match number.parse() {
                Ok(units @ 1..=1_400_000) => Ok(Self::Fixed(units)),
                _ => Err(BudgetError::Compute(text.to_owned())),
            },
        }
    }
}

impl FromStr for PriorityFee {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let refuse = || BudgetError::PriorityFee(text.to_owned());
        if text == "auto" {
            return Ok(Self::AUTO);
        }
        let Some(percentile) = text.strip_prefix('p') else {
            return text.parse().map(Self::Fixed).map_err(|_| refuse());
        };
        let (percentile, cap) = percentile.split_once(':').ok_or_else(refuse)?;
        let percentile: u8 = percentile.parse().map_err(|_| refuse())?;
        let cap = cap.parse().map_err(|_| refuse())?;
        if percentile > 100 { Err(refuse()) } else { Ok(Self::Percentile { percentile, cap }) }
    }
}

impl fmt::Display for ComputeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => f.write_str("table"),
            Self::Simulate => f.write_str("simulate"),
            Self::Fixed(units) => units.fmt(f),
        }
    }
}

impl fmt::Display for PriorityFee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(price) => price.fmt(f),
            Self::Percentile { percentile, cap } => write!(f, "p{percentile}:{cap}"),
        }
    }
}

impl PriorityFee {
    /// The price to pay, in micro-lamports per compute unit, given what others paid lately. Nobody paid: 0.
    pub fn price(self, recent: &mut [u64]) -> u64 {
        match self {
            Self::Fixed(price) => price,
            Self::Percentile { percentile, cap } => {
                recent.sort_unstable();
                let last = recent.len().saturating_sub(1);
                let at = (last * usize::from(percentile.min(100))).div_ceil(100);
                recent.get(at).copied().unwrap_or_default().min(cap)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_fees_are_read_back_as_they_are_written() {
        for text in ["table", "simulate", "1", "1400000"] {
            assert_eq!(text.parse::<ComputeLimit>().unwrap().to_string(), text);
        }
        assert_eq!("auto".parse(), Ok(PriorityFee::AUTO));
        for text in ["0", "25000", "p50:1000", "p100:0"] {
            assert_eq!(text.parse::<PriorityFee>().unwrap().to_string(), text);
        }
        for text in ["", "0", "1400001", "-1", "Table"] {
            assert_eq!(text.parse::<ComputeLimit>(), Err(BudgetError::Compute(text.to_owned())));
        }
        for text in ["", "p50", "p101:1", "p50:", "p:5", "-1", "1.5"] {
            assert_eq!(text.parse::<PriorityFee>(), Err(BudgetError::PriorityFee(text.to_owned())));
        }
    }

    #[test]
    fn a_percentile_is_one_of_the_recent_fees_and_never_above_the_cap() {
        let price = |percentile, cap, mut recent: Vec<u64>| {
            PriorityFee::Percentile { percentile, cap }.price(&mut recent)
        };
        assert_eq!(price(50, 1_000, vec![]), 0);
        assert_eq!(price(50, 1_000, vec![7]), 7);
        assert_eq!(price(0, 1_000, vec![5, 1, 3]), 1);
        assert_eq!(price(50, 1_000, vec![5, 1, 3]), 3);
        assert_eq!(price(100, 1_000, vec![5, 1, 3]), 5);
        assert_eq!(price(100, 4, vec![5, 1, 3]), 4);
        assert_eq!(PriorityFee::Fixed(9).price(&mut [1]), 9);
    }
}
