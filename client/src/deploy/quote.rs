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
