use std::{path::PathBuf, sync::Arc};

use committor_client::{
    chain::RpcChain,
    deploy::{DeployError, Deployer},
};
use committor_sdk::digest::payload_digest;
use serde::Serialize;

use crate::{
    args::{Global, Output},
    deployer::{self, ComesBack, Sending, Transfer, explorer},
    exit::{CommandError, Kind},
    files, output,
};

/// Put a file into a sealed buffer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The buffer's address follows from the authority and the file's content. So the same command after an interruption goes on
where that ended, and sends nothing if everything is there.")]
pub struct Upload {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print what it would take, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    sending: Sending,
}

#[derive(Serialize)]
struct Document {
    pubkey: String,
    bytes: u64,
    digest: String,
    /// Transactions that landed; of a dry run, those that would be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    landed: Option<u64>,
}

pub async fn run(global: &Global, command: &Upload) -> Result<Kind, CommandError> {
    let file: Arc<[u8]> = files::read(&command.file)?.into();
    let (deployer, chain) = deployer::deployer(global, &command.sending).await?;
    let ended = upload(global, command, &deployer, &chain, &file).await;
    chain.shutdown().await;
    ended
}

async fn upload(
    global: &Global,
    command: &Upload,
    deployer: &Deployer,
    chain: &Arc<RpcChain>,
    file: &Arc<[u8]>,
) -> Result<Kind, CommandError> {
    let name = command.file.display();
    let about = |error: DeployError| CommandError::from(error).about(format!("file {name}"));
    let quote = deployer.quote_upload(file).await.map_err(about)?;
    let buffer = deployer.file_address(file)?;
    let (pubkey, bytes, digest) = (buffer.to_string(), file.len() as u64, output::hex(&payload_digest(file)));
    let document = Document { pubkey, bytes, digest, landed: None };
    let what = format!("{name} ({bytes} bytes) goes to {buffer}");
    if command.dry_run {
        return deployer::dry_run(&document, &quote, &what, ComesBack::WhenClosed, global.output);
    }
    deployer::agree(&quote, &what, ComesBack::WhenClosed, &command.sending)?;
    let mut watch = deployer::stoppable()?;
    let transfer = Transfer::follow(&mut watch, chain.clone());
    let uploaded = deployer.upload(file, &watch).await;
    transfer.finish();
    let landed = uploaded.map_err(about)?.transactions;
    match global.output {
        Output::Display => {
            output::print(&format!("{buffer}\n"))?;
            let how = if landed == 0 { "was there already" } else { "is sealed and read back" };
            eprintln!("{name} {how}: {bytes} bytes, SHA-256 {}", document.digest);
            explorer(global, &buffer).iter().for_each(|link| eprintln!("{link}"));
        }
        form => output::json(&Document { landed: Some(landed), ..document }, form)?,
    }
    Ok(Kind::Success)
}
