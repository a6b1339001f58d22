//! A file's way into a buffer of its own.

use std::sync::Arc;

use committor_sdk::{chunk_buffer, chunks::ChunkLayout, digest::payload_digest};
use sha2::{Digest, Sha256};
use solana_address::Address;

use super::{
    BufferFacts, PlanContext, PlanError, PlannedTransaction, Price, cost,
    shape::seal_transactions,
    transaction::TransactionBuilder,
    upload::{Destination, Upload, is_zero},
};
use crate::types::{Lamports, Stage};

/// What the address of a file's buffer depends on besides authority and content.
const FILE_TAG: &[u8] = b"committor file";

/// A file, and what the chain says about its buffer.
#[derive(Clone, Debug)]
pub struct FileFacts {
    /// The file's content.
    pub payload: Arc<[u8]>,
    /// Lamports at the buffer's address.
    pub lamports: Lamports,
    /// The buffer and the payload that it has now, if it exists. Which chunks are missing follows from the bytes.
    pub existing: Option<(BufferFacts, Vec<u8>)>,
}

/// How a file reaches the chain.
#[derive(Clone, Debug)]
pub struct FilePlan {
    /// The buffer's address.
    pub buffer: Address,
    /// How the file is cut into chunks.
    pub layout: ChunkLayout,
    /// The chunks that are sent. The others are there already, or zeroes.
    pub chunks: Vec<u32>,
    /// The transactions, by rounds: those of one round in any order, after those of the round before.
    pub rounds: Vec<Vec<PlannedTransaction>>,
    /// Rent that goes into the buffer, in lamports. It comes back when the buffer is closed.
    pub rent: Lamports,
}

/// The seed of a file's buffer: the same for the same content, so that an interrupted upload is found again.
pub fn file_seed(payload: &[u8]) -> String {
    let hash = Sha256::new()
        .chain_update(FILE_TAG)
        .chain_update((payload.len() as u64).to_le_bytes())
        .chain_update(payload_digest(payload))
        .finalize();
    hash.iter().take(committor_sdk::address::MAX_SEED_LEN / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Plans what of a file is not on chain yet, and the seal.
///
/// # Errors
/// [`PlanError::Layout`] if no buffer is long enough.
pub fn plan_file(facts: &FileFacts, context: &PlanContext) -> Result<FilePlan, PlanError> {
    let seed = file_seed(&facts.payload);
    let buffer = committor_sdk::address::buffer(&context.authority, &seed)
        .map_err(|source| PlanError::Seed { account: Address::default(), source })?;
    let on_chain = facts.existing.as_ref().map(|(_, payload)| payload.as_slice());
    let is_due = |range: std::ops::Range<usize>| match on_chain {
        Some(on_chain) => on_chain.get(range.clone()) != Some(&facts.payload[range]),
        None => !is_zero(&facts.payload[range]),
    };
    let due = |layout: ChunkLayout| {
        (0u32..)
            .zip(layout.chunks())
            .filter(|(_, range)| is_due(range.clone()))
            .map(|(chunk, _)| chunk)
            .collect()
    };
    let existing = facts.existing.as_ref().map(|(buffer, _)| buffer);
    let destination = Destination { seed, subject: buffer, lamports: facts.lamports, existing };
    let upload = Upload::plan(destination, facts.payload.clone(), due, context)?;
    let rounds = match at_once(&upload, context)? {
        Some(transaction) => vec![vec![transaction]],
        None => {
            let mut rounds = upload.rounds(0, context)?;
            let seals = seal_transactions(0, &upload, context);
            rounds.extend((!seals.is_empty()).then_some(seals));
            rounds
        }
    };
    Ok(FilePlan { buffer, layout: upload.layout, chunks: upload.due().to_vec(), rounds, rent: upload.rent })
}

/// Everything in one transaction, if it fits one.
fn at_once(upload: &Upload, context: &PlanContext) -> Result<Option<PlannedTransaction>, PlanError> {
    let mut builder = TransactionBuilder::new(Stage::Prepare);
    builder.serves(0).loads(upload.account_len());
    upload.add_all(&mut builder, context)?;
    for seal in &upload.seals {
        builder.add(seal.clone(), upload.seal_cost());
    }
    let transaction = builder.build(context, 0);
    let is_any = !transaction.instructions.is_empty();
    Ok((is_any && transaction.check(&context.payer).is_ok()).then_some(transaction))
}

/// The transaction that closes a buffer of `account_len` bytes and sends what is locked in it to `receiver`.
pub fn plan_close_buffer(
    buffer: Address,
    account_len: u64,
    receiver: Address,
    context: &PlanContext,
) -> PlannedTransaction {
    let close = chunk_buffer::Close { authority: context.authority, buffer, receiver };
    let mut builder = TransactionBuilder::new(Stage::Cleanup);
    builder.loads(account_len).add(close.instruction(), cost::CLOSE);
    builder.build(context, 0)
}

/// The transaction that hands a buffer of `account_len` bytes to another authority.
pub fn plan_set_buffer_authority(
    buffer: Address,
    account_len: u64,
    new_authority: Address,
    context: &PlanContext,
) -> PlannedTransaction {
    let hand_on = chunk_buffer::SetAuthority { authority: context.authority, buffer };
    let mut builder = TransactionBuilder::new(Stage::Prepare);
    let args = chunk_buffer::SetAuthorityArgs { authority: new_authority };
    builder.loads(account_len).add(hand_on.instruction(args), cost::CLOSE);
    builder.build(context, 0)
}

impl FilePlan {
    /// What the plan costs.
    pub fn price(&self, context: &PlanContext) -> Price {
        let mut price = Price::of(self.rounds.iter().flatten(), &context.payer);
        price.rounds = self.rounds.len() as u64;
        price.rent_locked_lamports = self.rent;
        price.rent_returned_lamports = self.rent;
        price
    }

    /// Bytes of the file that are sent.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().filter_map(|chunk| self.layout.chunk(*chunk)).map(|range| range.len() as u64).sum()
    }
}
