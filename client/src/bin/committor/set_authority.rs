use serde_json::json;
use solana_address::Address;

use crate::{
    args::{Global, Output},
    deployer::{self, Sending, confirm},
    exit::{CommandError, Kind},
    output,
};

/// Hand a buffer to another authority
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Only the new authority can write to the buffer, close it and get its lamports from then on.")]
pub struct SetAuthority {
    /// The buffer
    #[arg(value_name = "ADDRESS")]
    buffer: Address,
    /// The new authority
    #[arg(value_name = "PUBKEY")]
    new_authority: Address,
    #[command(flatten)]
    sending: Sending,
}

pub async fn run(global: &Global, command: &SetAuthority) -> Result<Kind, CommandError> {
    let (buffer, new) = (command.buffer, command.new_authority);
    let (deployer, chain) = deployer::deployer(global, &command.sending).await?;
    let done = async {
        eprintln!("buffer {buffer} goes to {new}, and only that one can give it back");
        confirm("Go on?", command.sending.yes)?;
        let watch = deployer::stoppable()?;
        Ok::<_, CommandError>(deployer.set_authority(buffer, new, &watch).await?)
    };
    let done = done.await;
    chain.shutdown().await;
    done?;
    match global.output {
        Output::Display => output::print(&format!("{buffer} belongs to {new}\n"))?,
        form => output::json(&json!({ "pubkey": buffer.to_string(), "authority": new.to_string() }), form)?,
    }
    Ok(Kind::Success)
}
