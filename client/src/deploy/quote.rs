//! What it takes, and whether the payer has that.

use serde::Serialize;
use solana_address::Address;
use solana_signer::Signer;

use super::{DeployError, Deployer};
use crate::{
    chain::Chain,
    plan::{PlanContext, Price},
    types::Lamports,
};

/// What something takes, before anything is spent.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quote {
    /// Transactions, rounds, fees, and rent that is moved and comes back.
    #[serde(flatten)]
    pub price: Price,
    /// What the payer must have, in lamports: fees, the most rent that is locked at a time, and what an account must keep.
    pub needed: Lamports,
    /// What the payer has, in lamports.
    pub balance: Lamports,
    /// Who pays.
    #[serde(skip)]
    pub payer: Address,
}

impl Quote {
    /// Refuses a payer that has too little.
    ///
    /// # Errors
    /// [`DeployError::Balance`] says how much is missing.
    pub fn check(&self) -> Result<(), DeployError> {
        if self.price.transactions == 0 || self.balance >= self.needed {
            return Ok(());
        }
        let missing = self.needed.saturating_sub(self.balance);
        Err(DeployError::Balance { payer: self.payer, balance: self.balance, needed: self.needed, missing })
    }
}

impl Quote {
    /// What this takes and then another, of the same payer: rent that is back by then is not needed twice.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let kept = |price: &Price| price.rent_locked_lamports.saturating_sub(price.rent_returned_lamports);
        let (first, second) = (kept(&self.price), kept(&next.price));
        let locked = self.price.rent_locked_lamports.max(first + next.price.rent_locked_lamports);
        let price = Price {
            rent_locked_lamports: locked,
            rent_returned_lamports: locked.saturating_sub(first + second),
            ..self.price.and(next.price)
        };
        let spent = self.price.fee_lamports + self.price.rent_locked_lamports;
        let needed = price.fee_lamports + locked + self.needed.saturating_sub(spent);
        Self { price, needed, ..next }
    }
}

impl Deployer {
    /// What a price means for the payer.
    pub(super) async fn quote(&self, price: Price, context: &PlanContext) -> Result<Quote, DeployError> {
        let payer = self.signers.payer.pubkey();
        let found = self.chain.headers(&[payer]).await?.pop().flatten();
        let balance = Lamports(found.map_or(0, |found| found.lamports));
        let kept = context.rent.minimum(0);
        let needed = price.fee_lamports + price.rent_locked_lamports + kept;
        Ok(Quote { price, needed, balance, payer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_back_by_then_is_not_needed_twice() {
        let quote = |fees, locked, returned| {
            let price = Price {
                transactions: 1,
                fee_lamports: Lamports(fees),
                rent_locked_lamports: Lamports(locked),
                rent_returned_lamports: Lamports(returned),
                ..Price::default()
            };
            let needed = Lamports(fees + locked + 900);
            Quote { price, needed, balance: Lamports(5_000), payer: Address::default() }
        };
        let amounts = |quote: Quote| {
            let price = quote.price;
            (price.rent_locked_lamports.0, price.rent_returned_lamports.0, quote.needed.0)
        };
        // 1,000 lamports stay locked of the first: the second has its peak on top of them.
        assert_eq!(amounts(quote(10, 3_000, 2_000).then(quote(20, 2_500, 2_500))), (3_500, 2_500, 4_430));
        // The first one's own peak is the higher one.
        assert_eq!(amounts(quote(10, 3_000, 2_000).then(quote(20, 500, 0))), (3_000, 1_500, 3_930));
        assert_eq!(amounts(quote(0, 0, 0).then(quote(20, 500, 100))), (500, 100, 1_420));
    }
}
