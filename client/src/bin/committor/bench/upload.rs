//! A file on its way into a buffer: this tool's way in both transaction formats, and the classic one.
//!
//! The classic one is that of `solana program write-buffer`: a buffer of the upgradeable loader, and one write per transaction,
//! as long as a legacy transaction allows, zeroes and all, sent at a fixed pace. It is sent through the same chain layer as the
//! others, and does not read back what it wrote, as they do. The arms are interleaved.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use committor_client::{
    SharedSigner, Signers,
    chain::{Chain, ChainError, RpcChain, RpcSettings, SignedTransaction},
    crypto::Unsigned,
    deploy::{DeploySettings, Deployer, Watch},
    types::TransactionVersion,
};
use committor_localnet::Localnet;
use serde::Serialize;
use solana_address::Address;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_loader_v3_interface::{instruction as loader, state::UpgradeableLoaderState};
use solana_message::{Message, VersionedMessage};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use tokio::task::JoinSet;

use crate::{
    args::{Global, Output},
    deployer,
    exit::{CommandError, Kind},
    files, output,
};

/// What the classic way waits between two writes.
const PACE: Duration = Duration::from_millis(5);
/// The longest legacy transaction, in bytes.
const MAX_LEGACY: usize = 1_232;
/// What a signature costs, in lamports.
const SIGNATURE_LAMPORTS: u64 = 5_000;

/// Measure uploads: this tool in both transaction formats, and one write per transaction
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It runs on a local validator of its own, or on the cluster that --url names: with the authority's keypair, and all that it
locks there comes back.")]
pub struct BenchUpload {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How often each is measured; the median is shown
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Time between two blocks of the local validator
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 400, value_parser = clap::value_parser!(u16).range(1..))]
    slot_ms: u16,
}

/// What one upload came to.
#[derive(Clone, Copy)]
struct Run {
    transactions: u64,
    fees_lamports: u64,
    time: Duration,
}

/// What one way came to.
#[derive(Serialize)]
struct Figures {
    transactions: u64,
    /// The median of the repeats.
    seconds: f64,
    fees_lamports: u64,
    /// Over the classic way's.
    transactions_ratio: f64,
    /// Of the medians.
    seconds_ratio: f64,
}

#[derive(Serialize)]
struct Document {
    bytes: usize,
    repeats: u32,
    v1: Figures,
    v0: Figures,
    classic: Figures,
}

pub async fn run(global: &Global, options: &BenchUpload) -> Result<Kind, CommandError> {
    let file: Arc<[u8]> = files::read(&options.file)?.into();
    let document = if global.url.is_empty() {
        let authority = Arc::new(Keypair::new());
        let builder = Localnet::builder()
            .slot_time(Duration::from_millis(options.slot_ms.into()))
            .airdrop(authority.pubkey(), 1_000_000_000_000);
        let localnet = super::super::localnet::start(builder).await?;
        let chain = Arc::new(RpcChain::new(RpcSettings {
            websocket_url: Some(localnet.ws_url().to_owned()),
            ..RpcSettings::new(localnet.rpc_url())
        }));
        let signers = Signers { payer: authority.clone(), authority };
        measure(&chain, &signers, &file, options).await?
    } else {
        let signers = global.signers()?;
        let chain = deployer::chain(global).await?;
        measure(&chain, &signers, &file, options).await?
    };
    match global.output {
        Output::Display => output::print(&display(&document))?,
        form => output::json(&document, form)?,
    }
    Ok(Kind::Success)
}

async fn measure(
    chain: &Arc<RpcChain>,
    signers: &Signers,
    file: &Arc<[u8]>,
    options: &BenchUpload,
) -> Result<Document, CommandError> {
    let (mut v1, mut v0, mut classics) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.repeats {
        classics.push(classic(chain, signers, file).await?);
        v0.push(upload(chain, signers, file, TransactionVersion::V0).await?);
        v1.push(upload(chain, signers, file, TransactionVersion::V1).await?);
    }
    chain.shutdown().await;
    let classic = median(classics);
    Ok(Document {
        bytes: file.len(),
        repeats: options.repeats,
        v1: figures(median(v1), classic),
        v0: figures(median(v0), classic),
        classic: figures(classic, classic),
    })
}

/// This tool's way. The buffer is closed afterwards.
async fn upload(
    chain: &Arc<RpcChain>,
    signers: &Signers,
    file: &Arc<[u8]>,
    version: TransactionVersion,
) -> Result<Run, CommandError> {
    let settings = DeploySettings { version: Some(version), ..DeploySettings::default() };
    let deployer = Deployer::new(chain.clone(), signers.clone(), settings);
    let quote = deployer.quote_upload(file).await?;
    if quote.price.transactions == 0 {
        let message = "this file is in a buffer of this authority already";
        return Err(CommandError::new(Kind::Usage, message).hint("`committor close` closes it"));
    }
    let started = Instant::now();
    let uploaded = deployer.upload(file, &Watch::default()).await?;
    let time = started.elapsed();
    close(&deployer, signers, uploaded.buffer).await?;
    let fees_lamports = quote.price.fee_lamports.0;
    Ok(Run { transactions: uploaded.transactions, fees_lamports, time })
}

async fn close(deployer: &Deployer, signers: &Signers, buffer: Address) -> Result<(), CommandError> {
    for closed in deployer.close(&[buffer], signers.payer.pubkey(), &Watch::default()).await {
        closed.outcome?;
    }
    Ok(())
}

/// The classic way. The buffer is closed afterwards.
async fn classic(chain: &Arc<RpcChain>, signers: &Signers, file: &Arc<[u8]>) -> Result<Run, CommandError> {
    let buffer = Arc::new(Keypair::new());
    let (payer, authority, address) = (signers.payer.pubkey(), signers.authority.pubkey(), buffer.pubkey());
    let keypairs: Vec<SharedSigner> = vec![signers.payer.clone(), signers.authority.clone(), buffer];
    let rent = chain.rent().await.map_err(failed)?;
    let len = UpgradeableLoaderState::size_of_buffer(file.len()) as u64;
    let lamports = rent.empty_account_lamports + rent.lamports_per_byte * len;
    let create = loader::create_buffer(&payer, &address, &authority, lamports, file.len())
        .map_err(|error| CommandError::new(Kind::Other, error.to_string()))?;
    let write =
        |offset: usize, bytes: &[u8]| loader::write(&address, &authority, offset as u32, bytes.to_vec());
    let chunk = chunk_len(&payer, write(0, &[]))?;

    let started = Instant::now();
    let (mut transactions, mut signatures) = (1, land(chain.clone(), payer, create, keypairs.clone()).await?);
    let mut sending = JoinSet::new();
    for (index, bytes) in file.chunks(chunk).enumerate() {
        let instructions = vec![write(index * chunk, bytes)];
        sending.spawn(land(chain.clone(), payer, instructions, keypairs.clone()));
        transactions += 1;
        tokio::time::sleep(PACE).await;
    }
    while let Some(landed) = sending.join_next().await {
        signatures += landed.map_err(|error| CommandError::new(Kind::Other, error))??;
    }
    let time = started.elapsed();
    close(&Deployer::new(chain.clone(), signers.clone(), DeploySettings::default()), signers, address)
        .await?;
    Ok(Run { transactions, fees_lamports: signatures * SIGNATURE_LAMPORTS, time })
}

/// Bytes that one write carries in a transaction of its own.
fn chunk_len(payer: &Address, empty: Instruction) -> Result<usize, CommandError> {
    let message = VersionedMessage::Legacy(Message::new(&[empty], Some(payer)));
    let signatures = vec![Default::default(); message.header().num_required_signatures.into()];
    let transaction = VersionedTransaction { signatures, message };
    let len =
        wincode::serialized_size(&transaction).map_err(|error| CommandError::new(Kind::Other, error))?;
    // The length of the instruction's data takes a second byte then.
    Ok(MAX_LEGACY - len as usize - 1)
}

/// Lands a transaction, signed again if it expires. Returns how many signatures it has.
async fn land(
    chain: Arc<RpcChain>,
    payer: Address,
    instructions: Vec<Instruction>,
    keypairs: Vec<SharedSigner>,
) -> Result<u64, CommandError> {
    loop {
        let recent = chain.recent_blockhash().await.map_err(failed)?;
        let message = Message::new_with_blockhash(&instructions, Some(&payer), &recent.blockhash);
        let unsigned = Unsigned { message: VersionedMessage::Legacy(message), keypairs: keypairs.clone() };
        let transaction = unsigned.sign().map_err(|error| CommandError::new(Kind::Other, error))?;
        let signatures = transaction.signatures.len() as u64;
        let last_valid_block_height = recent.last_valid_block_height;
        match chain.land(SignedTransaction { transaction, last_valid_block_height, preflight: false }).await {
            Ok(_) => return Ok(signatures),
            Err(ChainError::Expired { .. }) => (),
            Err(error) => return Err(failed(error)),
        }
    }
}

fn failed(error: ChainError) -> CommandError {
    CommandError::new(Kind::Cluster, error)
}

/// The run of median time.
fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by_key(|run| run.time);
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}

fn figures(run: Run, classic: Run) -> Figures {
    let round = |value: f64| (value * 1_000.0).round() / 1_000.0;
    Figures {
        transactions: run.transactions,
        seconds: round(run.time.as_secs_f64()),
        fees_lamports: run.fees_lamports,
        transactions_ratio: round(run.transactions as f64 / classic.transactions as f64),
        seconds_ratio: round(run.time.as_secs_f64() / classic.time.as_secs_f64()),
    }
}

fn display(document: &Document) -> String {
    let mut table = output::table(["", "transactions", "ratio", "seconds", "ratio", "fees, lamports"]);
    for (name, figures) in [("v1", &document.v1), ("v0", &document.v0), ("classic", &document.classic)] {
        table.add_row([
            name.to_owned(),
            figures.transactions.to_string(),
            format!("{:.2}", figures.transactions_ratio),
            format!("{:.2}", figures.seconds),
            format!("{:.2}", figures.seconds_ratio),
            figures.fees_lamports.to_string(),
        ]);
    }
    output::align_right(&mut table, 1..6);
    let Document { bytes, repeats, .. } = document;
    format!("{table}\n{bytes} bytes, median of {repeats} repeats, ratio to one write per transaction.\n")
}
