//! The manager's transactions: signed, recorded, sent, and settled.

use solana_address::Address;
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{VersionedMessage, v0};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use super::{TableError, Tables};
use crate::{
    chain::{Chain, ChainError, Landed, SignedTransaction},
    engine::{EngineError, SharedSigner, error::chain_of},
    plan::{CompileError, TABLE_COMPUTE_UNIT_LIMIT},
    store::{StoreError, TableTransaction, TransactionOutcome},
    types::{PriorityFee, TableStep, TransactionVersion},
};

impl<C: Chain> Tables<C> {
    /// Signs a transaction, records it, sends it, and records what became of it.
    pub(super) async fn transact(
        &self,
        table: Address,
        step: TableStep,
        instructions: Vec<Instruction>,
    ) -> Result<Landed, EngineError> {
        let recent = self.inner.chain.recent_blockhash().await?;
        let message = self.message(&instructions, self.price(table).await?, recent.blockhash)?;
        let signers = &self.inner.signers;
        // The payer first, and the authority if it is another key and has to sign.
        let mut keypairs: Vec<&SharedSigner> = vec![&signers.payer];
        if message.header().num_required_signatures > 1 {
            keypairs.push(&signers.authority);
        }
        let transaction = VersionedTransaction::try_new(message, &keypairs)?;
        let wire =
            wincode::serialize(&transaction).map_err(|error| CompileError::Serialize(error.to_string()))?;
        let last_valid_block_height = recent.last_valid_block_height;
        // What fails should fail before it costs anything.
        let signed = SignedTransaction { transaction, last_valid_block_height, preflight: true };
        let record =
            TableTransaction { table, step, signature: signed.signature(), last_valid_block_height, wire };
        let (store, authority) = (&self.inner.store, signers.authority.pubkey());
        match step {
            TableStep::Create => store.table_planned(authority, record).await?,
            _ => store.table_signed(vec![record]).await?,
        }
        self.land(table, step, signed).await
    }

    /// Sends a recorded transaction again, exactly as it was signed: it can't do anything twice.
    pub(super) async fn land_again(&self, recorded: &TableTransaction) -> Result<Landed, EngineError> {
        let corrupt =
            |_| StoreError::Corrupt { what: "a transaction", found: recorded.signature.to_string() };
        let transaction: VersionedTransaction = wincode::deserialize(&recorded.wire).map_err(corrupt)?;
        let last_valid_block_height = recorded.last_valid_block_height;
        // A simulation would refuse what has landed already.
        let signed = SignedTransaction { transaction, last_valid_block_height, preflight: false };
        self.land(recorded.table, recorded.step, signed).await
    }

    async fn land(
        &self,
        table: Address,
        step: TableStep,
        signed: SignedTransaction,
    ) -> Result<Landed, EngineError> {
        let signature = signed.signature();
        let landed = self.inner.chain.land(signed).await;
        let outcome = match &landed {
            Ok(Landed { slot }) => Some(TransactionOutcome::Landed { slot: *slot }),
            Err(error @ (ChainError::Failed { .. } | ChainError::Refused { .. })) => {
                Some(TransactionOutcome::Failed(chain_of(error)))
            }
            Err(ChainError::Expired { .. }) => Some(TransactionOutcome::Expired),
            // It may still land: it stays recorded as it is.
            Err(
                ChainError::Rpc { .. }
                | ChainError::Nonsense { .. }
                | ChainError::Stopped { .. }
                | ChainError::GaveUp { .. },
            ) => None,
        };
        if let Some(outcome) = outcome {
            self.inner.store.table_settled(signature, outcome).await?;
        }
        Ok(landed.map_err(|source| TableError::Transaction { table, step, source: Box::new(source) })?)
    }

    /// What a compute unit of a transaction that writes to `table` is paid with, in micro-lamports.
    async fn price(&self, table: Address) -> Result<u64, EngineError> {
        let priority_fee = self.inner.settings.priority_fee;
        let mut recent = match priority_fee {
            PriorityFee::Percentile { .. } => self.inner.chain.priority_fees(&[table]).await?,
            PriorityFee::Fixed(_) => Vec::new(),
        };
        Ok(priority_fee.price(&mut recent))
    }

    /// Whether a transaction of these instructions is short enough.
    pub(super) fn fits(&self, instructions: &[Instruction]) -> Result<bool, EngineError> {
        // Any price takes the same room.
        let price = u64::from(self.inner.settings.priority_fee != PriorityFee::default());
        let message = self.message(instructions, price, Hash::default())?;
        let signatures = vec![Signature::default(); usize::from(message.header().num_required_signatures)];
        let len = wincode::serialized_size(&VersionedTransaction { signatures, message })
            .map_err(|error| CompileError::Serialize(error.to_string()))?;
        Ok(len <= TransactionVersion::V0.max_len() as u64)
    }

    /// No compute budget unless it is paid for: the program's own instructions keep far below the default, and the bytes are
    /// better used for another address.
    fn message(
        &self,
        instructions: &[Instruction],
        price: u64,
        blockhash: Hash,
    ) -> Result<VersionedMessage, CompileError> {
        let payer = self.inner.signers.payer.pubkey();
        let mut all = Vec::new();
        if price > 0 {
            all.push(ComputeBudgetInstruction::set_compute_unit_limit(TABLE_COMPUTE_UNIT_LIMIT));
            all.push(ComputeBudgetInstruction::set_compute_unit_price(price));
        }
        all.extend_from_slice(instructions);
        let message = v0::Message::try_compile(&payer, &all, &[], blockhash);
        message.map(VersionedMessage::V0).map_err(CompileError::V0)
    }
}
