//! A chain with a fault.

use std::{
    future::pending,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use committor_client::chain::{
    AccountHeader, Chain, ChainError, Landed, RecentBlockhash, Rent, RpcChain, SignedTransaction, Simulation,
    TransactionCost, TransactionFailure,
};
use solana_account::Account;
use solana_address::Address;
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use tokio::sync::Notify;

/// What the chain does at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// This call and as many after it fail, as on a node that answers nonsense.
    Fail(usize),
    /// The call never comes back.
    Die,
}

/// A chain with one fault. Every call has two points: before it has any effect, and after it had.
pub struct FaultyChain {
    pub inner: RpcChain,
    pub fault: Fault,
    pub at: usize,
    pub points: AtomicUsize,
    pub reached: Notify,
    pub landed: AtomicUsize,
    /// What somebody else lands right before the next transaction.
    pub ambush: Mutex<Option<SignedTransaction>>,
}

impl FaultyChain {
    async fn point(&self) -> Result<(), ChainError> {
        let point = self.points.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            Fault::Fail(count) if (self.at..self.at + count).contains(&point) => {
                let found = "a fault".to_owned();
                Err(ChainError::Nonsense { method: "any", found, expected: "an answer" })
            }
            Fault::Die if point == self.at => {
                self.reached.notify_one();
                pending().await
            }
            Fault::None | Fault::Fail(_) | Fault::Die => Ok(()),
        }
    }
}

macro_rules! faulty {
    ($self:ident, $call:expr) => {{
        $self.point().await?;
        let result = $call.await?;
        $self.point().await?;
        Ok(result)
    }};
}

impl Chain for FaultyChain {
    fn saw(&self, slot: u64) {
        self.inner.saw(slot);
    }

    async fn recent_blockhash(&self) -> Result<RecentBlockhash, ChainError> {
        faulty!(self, self.inner.recent_blockhash())
    }

    async fn block_height(&self) -> Result<u64, ChainError> {
        faulty!(self, self.inner.block_height())
    }

    async fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, ChainError> {
        faulty!(self, self.inner.accounts(addresses))
    }

    async fn headers(&self, addresses: &[Address]) -> Result<Vec<Option<AccountHeader>>, ChainError> {
        faulty!(self, self.inner.headers(addresses))
    }

    async fn tables_of(&self, authority: &Address) -> Result<Vec<(Address, Account)>, ChainError> {
        faulty!(self, self.inner.tables_of(authority))
    }

    async fn rent(&self) -> Result<Rent, ChainError> {
        faulty!(self, self.inner.rent())
    }

    async fn supports_v1(&self) -> Result<bool, ChainError> {
        faulty!(self, self.inner.supports_v1())
    }

    async fn finalized_slot(&self) -> Result<u64, ChainError> {
        faulty!(self, self.inner.finalized_slot())
    }

    async fn genesis_hash(&self) -> Result<Hash, ChainError> {
        // Asked once, before there is anything that could be lost.
        self.inner.genesis_hash().await
    }

    async fn slot(&self) -> Result<u64, ChainError> {
        faulty!(self, self.inner.slot())
    }

    async fn priority_fees(&self, writable: &[Address]) -> Result<Vec<u64>, ChainError> {
        faulty!(self, self.inner.priority_fees(writable))
    }

    async fn simulate(&self, transaction: &VersionedTransaction) -> Result<Simulation, ChainError> {
        faulty!(self, self.inner.simulate(transaction))
    }

    async fn land(&self, transaction: SignedTransaction) -> Result<Landed, ChainError> {
        let signature = transaction.signature();
        self.point().await?;
        let ambush = self.ambush.lock().unwrap().take();
        if let Some(ambush) = ambush {
            self.inner.land(ambush).await?;
        }
        let landed = self.inner.land(transaction).await?;
        self.landed.fetch_add(1, Ordering::SeqCst);
        // The worst lie: it landed, and the answer is that it never will.
        match self.point().await {
            Ok(()) => Ok(landed),
            Err(_) => Err(ChainError::Expired { signature }),
        }
    }

    async fn find(
        &self,
        signature: Signature,
    ) -> Result<Option<Result<Landed, TransactionFailure>>, ChainError> {
        faulty!(self, self.inner.find(signature))
    }

    async fn cost(&self, signature: Signature) -> Result<Option<TransactionCost>, ChainError> {
        faulty!(self, self.inner.cost(signature))
    }
}
