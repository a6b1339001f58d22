use std::time::{Duration, SystemTime, UNIX_EPOCH};

use committor_client::{
    Lamports,
    config::parse_age,
    deploy::{Buffers, Closed},
};
use serde_json::json;
use solana_address::Address;
use solana_signer::Signer;

use crate::{
    args::{Global, Output},
    deployer::{self, Sending, confirm},
    exit::{CommandError, Kind},
    output,
};

/// Close buffers; what is locked in them comes back
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each buffer is closed for itself: one that can't be does not keep the others, and is named with its reason.")]
pub struct Close {
    /// The buffers
    #[arg(value_name = "ADDRESS", required_unless_present_any = ["all_unsealed", "all"])]
    buffers: Vec<Address>,
    /// All buffers of the authority that are not sealed, those of programs too
    #[arg(long, conflicts_with = "buffers")]
    all_unsealed: bool,
    /// All buffers of the authority
    #[arg(long, conflicts_with_all = ["buffers", "all_unsealed"])]
    all: bool,
    /// Of these, only those that no transaction named for so long: 90s, 15m, 12h, 30d
    #[arg(long, value_name = "AGE", value_parser = parse_age, conflicts_with = "buffers")]
    older_than: Option<Duration>,
    /// Who gets the lamports [default: the fee payer]
    #[arg(long, value_name = "PUBKEY")]
    receiver: Option<Address>,
    #[command(flatten)]
    sending: Sending,
}

pub async fn run(global: &Global, command: &Close) -> Result<Kind, CommandError> {
    let authority = global.authority()?.pubkey();
    let payer = global.payer()?.map_or(authority, |payer| payer.pubkey());
    let (deployer, chain) = deployer::deployer(global, &command.sending).await?;
    let closed = async {
        let addresses = chosen(command, &Buffers::new(chain.clone()), authority).await?;
        let watch = deployer::stoppable()?;
        Ok::<_, CommandError>(deployer.close(&addresses, command.receiver.unwrap_or(payer), &watch).await)
    };
    let closed = closed.await;
    chain.shutdown().await;
    report(global, closed?)
}

/// The buffers that are to be closed. If they are not named one by one, the user is asked.
async fn chosen(
    command: &Close,
    buffers: &Buffers,
    authority: Address,
) -> Result<Vec<Address>, CommandError> {
    if !command.all && !command.all_unsealed {
        return Ok(command.buffers.clone());
    }
    let (files, programs) = tokio::try_join!(buffers.of(authority), buffers.of_loader(authority))?;
    let files = files.iter().filter(|buffer| command.all || !buffer.sealed);
    let mut chosen: Vec<(Address, Lamports)> = files.map(|buffer| (buffer.pubkey, buffer.lamports)).collect();
    // A buffer of the loader is never sealed.
    chosen.extend(programs.iter().map(|buffer| (buffer.pubkey, buffer.lamports)));
    if let Some(age) = command.older_than {
        chosen = unused(chosen, age, buffers).await?;
    }
    if !chosen.is_empty() {
        let locked: Lamports = chosen.iter().map(|(_, lamports)| *lamports).sum();
        eprintln!("{} buffers with {locked} lamports are to be closed; their content is lost", chosen.len());
        confirm("Go on?", command.sending.yes)?;
    }
    Ok(chosen.into_iter().map(|(buffer, _)| buffer).collect())
}

/// Those that have not been used for so long.
async fn unused(
    found: Vec<(Address, Lamports)>,
    age: Duration,
    buffers: &Buffers,
) -> Result<Vec<(Address, Lamports)>, CommandError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let latest = now.saturating_sub(age).as_secs() as i64;
    let mut unused = Vec::with_capacity(found.len());
    for (buffer, lamports) in found {
        match buffers.last_used(buffer).await? {
            Some(used) if used <= latest => unused.push((buffer, lamports)),
            Some(_) => (),
            None => eprintln!("buffer {buffer} stays: the node does not know when it was used"),
        }
    }
    Ok(unused)
}

fn report(global: &Global, closed: Vec<Closed>) -> Result<Kind, CommandError> {
    if global.output == Output::Display {
        let line = |closed: &Closed| {
            let lamports = closed.outcome.as_ref().ok()?;
            Some(format!("closed {}, {lamports} lamports back\n", closed.buffer))
        };
        output::print(&closed.iter().filter_map(line).collect::<String>())?;
    } else {
        let document = |closed: &Closed| {
            json!({
                "pubkey": closed.buffer.to_string(),
                "lamports": closed.outcome.as_ref().ok(),
                "error": closed.outcome.as_ref().err().map(ToString::to_string),
            })
        };
        let buffers: Vec<_> = closed.iter().map(document).collect();
        output::json(&json!({ "buffers": buffers }), global.output)?;
    }
    let all = closed.len();
    let failed = closed.iter().filter(|closed| closed.outcome.is_err()).count();
    let mut kind = Kind::Success;
    for closed in closed {
        let Err(error) = closed.outcome else { continue };
        let error = CommandError::from(error).about(format!("buffer {} was not closed", closed.buffer));
        eprint!("{error}");
        kind = match all {
            1 => error.kind(),
            all if failed < all => Kind::PartlyLanded,
            _ => Kind::Failed,
        };
    }
    Ok(kind)
}
