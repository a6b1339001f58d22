use std::{io::Write, path::Path};

use committor_client::config::KeypairSource;
use committor_localnet::{Localnet, LocalnetBuilder, LocalnetError};
use serde::Serialize;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::{
    args::{Global, Localnet as Command, Output},
    exit::{CommandError, Kind},
    input, output,
};

/// What tools need to know in order to use a localnet.
#[derive(Serialize)]
struct Running {
    rpc_url: String,
    websocket_url: String,
    keypair: String,
    pubkey: String,
    delegated: Vec<String>,
}

pub async fn run(global: &Global, command: &Command) -> Result<Kind, CommandError> {
    global.refuse("localnet", &["--url", "--ws", "--fee-payer"])?;
    let source = global.keypair_source()?;
    let keypair = match &source {
        KeypairSource::File(path) if !path.exists() => new_keypair(path)?,
        // The validator's own payer has to be a key that it holds.
        file => file.read()?,
    };
    let authority = keypair.pubkey();
    let mut builder = Localnet::builder().rpc_port(command.rpc_port).ws_port(command.ws_port).payer(keypair);
    let mut delegated = Vec::new();
    for dump in input::read_dumps(&command.delegate)? {
        delegated.push(dump.pubkey.to_string());
        builder = builder.delegated(dump.pubkey, authority, Vec::new());
    }
    let localnet = start(builder).await?;
    let running = Running {
        rpc_url: localnet.rpc_url().to_owned(),
        websocket_url: localnet.ws_url().to_owned(),
        keypair: source.to_string(),
        pubkey: authority.to_string(),
        delegated,
    };
    show(&running, global.output)?;
    let interrupted = tokio::signal::ctrl_c().await;
    interrupted.map_err(|error| CommandError::new(Kind::Other, error))?;
    eprintln!("stopping");
    localnet.shutdown().await.map_err(failed)?;
    Ok(Kind::Success)
}

pub async fn start(builder: LocalnetBuilder) -> Result<Localnet, CommandError> {
    builder.start().await.map_err(failed)
}

fn failed(error: LocalnetError) -> CommandError {
    match error {
        LocalnetError::PortInUse { .. } | LocalnetError::SamePort { .. } => {
            CommandError::new(Kind::Usage, error)
                .hint("`--rpc-port` and `--ws-port` name other ports; 0 takes any free one")
        }
        error => CommandError::new(Kind::Other, error),
    }
}

fn show(running: &Running, form: Output) -> Result<(), CommandError> {
    if form != Output::Display {
        return output::json(running, form);
    }
    let mut text = format!(
        "JSON-RPC   {}\nwebsocket  {}\nfunded     {} ({})\n",
        running.rpc_url, running.websocket_url, running.pubkey, running.keypair
    );
    for account in &running.delegated {
        text.push_str(&format!("delegated  {account}\n"));
    }
    text.push_str("Ctrl-C stops it.\n");
    output::print(&text)
}

/// Makes a keypair where there is none, readable by its owner only.
fn new_keypair(path: &Path) -> Result<Keypair, CommandError> {
    let failed = |error| {
        CommandError::new(
            Kind::Usage,
            format!("could not write a new keypair to {}: {error}", path.display()),
        )
        .hint("`--keypair FILE` names another file")
    };
    let keypair = Keypair::new();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let bytes = format!("{:?}", keypair.to_bytes().to_vec());
    options.open(path).and_then(|mut file| file.write_all(bytes.as_bytes())).map_err(failed)?;
    eprintln!("wrote a new keypair to {}", path.display());
    Ok(keypair)
}
