//! Landing many transactions.

use std::collections::VecDeque;

use futures::{StreamExt, TryStreamExt, stream::FuturesUnordered};
use solana_transaction::versioned::VersionedTransaction;

use super::{DeployError, Deployer, Progress, Watch};
use crate::{
    chain::{Chain, ChainError, RecentBlockhash, RpcChain, SignedTransaction},
    crypto::{CryptoPool, Unsigned},
    engine::SharedSigner,
    plan::{PlanContext, PlannedTransaction},
    types::Stage,
};

/// Transactions that are signed in one go.
const SIGNED_TOGETHER: usize = 32;
/// How often one transaction is signed before it is given up.
const MAX_SIGNATURES: u32 = 8;

/// What it takes to land transactions.
pub(super) struct Batch<'a> {
    pub(super) chain: &'a RpcChain,
    /// All that may have to sign.
    pub(super) keypairs: Vec<SharedSigner>,
    pub(super) context: &'a PlanContext,
    pub(super) in_flight: usize,
    pub(super) watch: &'a Watch,
}

/// A transaction and how often it has been signed.
struct Due {
    planned: PlannedTransaction,
    signed: u32,
}

impl Deployer {
    pub(super) fn batch<'a>(&'a self, context: &'a PlanContext, watch: &'a Watch) -> Batch<'a> {
        Batch {
            chain: &self.chain,
            keypairs: vec![self.signers.payer.clone(), self.signers.authority.clone()],
            context,
            in_flight: self.settings.transactions_in_flight,
            watch,
        }
    }
}

impl Batch<'_> {
    /// Lands transactions, in any order. Returns a slot that has seen all of them.
    pub(super) async fn land(&self, transactions: Vec<PlannedTransaction>) -> Result<u64, DeployError> {
        let mut due: VecDeque<Due> =
            transactions.into_iter().map(|planned| Due { planned, signed: 0 }).collect();
        let pool = CryptoPool::shared()?;
        let mut sending = FuturesUnordered::new();
        let (mut slot, in_flight) = (0, self.in_flight.max(1));
        loop {
            // Signed when they are about to be sent: a blockhash does not outlive a long upload.
            while sending.len() < in_flight && !due.is_empty() && !self.watch.stop.is_cancelled() {
                let recent = self.chain.recent_blockhash().await?;
                let together = due.len().min(in_flight - sending.len()).min(SIGNED_TOGETHER);
                let batch: Vec<Due> = due.drain(..together).collect();
                let new = batch.iter().filter(|due| due.signed == 0).count() as u64;
                let signed = pool.sign_stream(self.unsigned(&batch, recent)?).map(|(_, signed)| signed);
                let signed: Vec<VersionedTransaction> = signed.try_collect().await?;
                for (due, transaction) in batch.into_iter().zip(signed) {
                    sending.push(self.send(due, transaction, recent.last_valid_block_height));
                }
                self.watch.tell(Progress::Sent { transactions: new });
            }
            let Some((sent, outcome)) = sending.next().await else { break };
            match outcome {
                Ok(landed) => {
                    slot = slot.max(landed);
                    self.watch.tell(Progress::Landed { bytes: data_len(&sent.planned) });
                }
                Err(DeployError::Chain(ChainError::Expired { .. })) if sent.signed < MAX_SIGNATURES => {
                    self.watch.tell(Progress::Expired);
                    due.push_front(sent);
                }
                Err(error) => return Err(error),
            }
        }
        if due.is_empty() { Ok(slot) } else { Err(DeployError::Stopped { left: due.len() }) }
    }

    fn unsigned(&self, batch: &[Due], recent: RecentBlockhash) -> Result<Vec<Unsigned>, DeployError> {
        let unsigned = |due: &Due| {
            let message = due.planned.message(&self.context.payer, recent.blockhash)?;
            Ok(Unsigned { message, keypairs: self.keypairs.clone() })
        };
        batch.iter().map(unsigned).collect()
    }

    async fn send(
        &self,
        due: Due,
        transaction: VersionedTransaction,
        last_valid_block_height: u64,
    ) -> (Due, Result<u64, DeployError>) {
        let due = Due { signed: due.signed + 1, ..due };
        // What one transaction decides is simulated first, and costs nothing if it would fail.
        let preflight = due.planned.stage == Stage::Commit;
        let signed = SignedTransaction { transaction, last_valid_block_height, preflight };
        let landed = self.chain.land(signed).await;
        (due, landed.map(|landed| landed.slot).map_err(DeployError::from))
    }
}

/// Bytes of instruction data that a transaction carries.
pub(super) fn data_len(planned: &PlannedTransaction) -> u64 {
    planned.instructions.iter().map(|instruction| instruction.data.len() as u64).sum()
}
