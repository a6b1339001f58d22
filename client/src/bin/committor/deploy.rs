//! `committor deploy`: programs through the upgradeable loader.

mod report;
mod targets;

use std::{path::PathBuf, sync::Arc};

use committor_client::{
    chain::RpcChain,
    config::KeypairSource,
    deploy::{Deployer, ProgramDeployError, ProgramQuote, Quote},
    plan::{ProgramGoal, UpgradeAuthority},
};
use solana_address::Address;

use self::{
    report::{Documents, Program},
    targets::{ProgramId, Target, targets},
};
use crate::{
    args::Global,
    deployer::{self, ComesBack, Sending, Transfer},
    exit::{CommandError, Kind},
};

/// Deploy or upgrade a program
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program goes through a buffer of the upgradeable loader whose address follows from the authority, the program and the
file's content. So the same command after an interruption goes on where that ended, and sends nothing if the program holds
these bytes already. A program that is too long for its account gets more room first.

The file is checked as the cluster would check it before anything is spent. docs/deploy.md is the guide.")]
pub struct Deploy {
    /// The program
    #[arg(value_name = "PROGRAM.so", required_unless_present = "bundled")]
    file: Option<PathBuf>,
    /// This project's own two programs, which this command carries with it
    #[arg(long, conflicts_with_all = ["file", "program_id", "max_len"])]
    bundled: bool,
    /// Which program: a keypair, or for an upgrade its address [default: PROGRAM-keypair.json beside the file]
    #[arg(long, value_name = "KEYPAIR_OR_ADDRESS")]
    program_id: Option<ProgramId>,
    /// Keypair of one of the bundled programs, which its first deploy takes; once for each
    #[arg(long, value_name = "KEYPAIR", requires = "bundled", conflicts_with = "file")]
    program_keypair: Vec<KeypairSource>,
    /// Make room for longer programs to come
    #[arg(long, value_name = "BYTES")]
    max_len: Option<usize>,
    /// Give the program to this upgrade authority, together with the deploy
    #[arg(long, value_name = "PUBKEY")]
    new_authority: Option<Address>,
    /// Make the program immutable, together with the deploy: nobody can ever upgrade it again
    #[arg(long = "final", conflicts_with = "new_authority")]
    is_final: bool,
    /// Only write the buffer, and print what a multisig needs for the upgrade
    #[arg(long, conflicts_with_all = ["new_authority", "is_final"])]
    buffer_only: bool,
    /// Hand the buffer to whoever upgrades the program with it
    #[arg(long, value_name = "PUBKEY", requires = "buffer_only")]
    buffer_authority: Option<Address>,
    /// Print what it would take, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    sending: Sending,
}

impl Deploy {
    const fn goal(&self) -> ProgramGoal {
        match (self.buffer_only, self.is_final, self.new_authority) {
            (true, ..) => ProgramGoal::InBuffer { handed_to: self.buffer_authority },
            (false, true, _) => ProgramGoal::Deployed(UpgradeAuthority::Nobody),
            (false, false, Some(new)) => ProgramGoal::Deployed(UpgradeAuthority::Other(new)),
            (false, false, None) => ProgramGoal::Deployed(UpgradeAuthority::Same),
        }
    }
}

pub async fn run(global: &Global, command: &Deploy) -> Result<Kind, CommandError> {
    let targets = targets(global, command)?;
    let (deployer, chain) = deployer::deployer(global, &command.sending).await?;
    let ended = deploy(global, command, &deployer, &chain, targets).await;
    chain.shutdown().await;
    ended
}

async fn deploy(
    global: &Global,
    command: &Deploy,
    deployer: &Deployer,
    chain: &Arc<RpcChain>,
    targets: Vec<Target>,
) -> Result<Kind, CommandError> {
    // All are checked and priced before anything is sent.
    let mut quotes = Vec::with_capacity(targets.len());
    for target in &targets {
        let quote = deployer.quote_program(&target.deploy).await;
        quotes.push(quote.map_err(|error| about(target, error))?);
    }
    let total = quotes.iter().map(|quote| quote.quote).reduce(Quote::then);
    let Some(total) = total else { return Ok(Kind::Success) };
    let payer = total.payer;
    let what: Vec<String> = targets.iter().zip(&quotes).map(|(target, quote)| plan(target, quote)).collect();
    let what = what.join("\n");
    let comes_back = if command.buffer_only { ComesBack::WithUpgrade } else { ComesBack::ByTheEnd };
    if command.dry_run {
        let quoted = targets.iter().zip(&quotes).map(|(target, quote)| Program::quoted(target, quote));
        let documents = Documents::new(quoted.collect(), command.bundled);
        return deployer::dry_run(&documents, &total, &what, comes_back, global.output);
    }
    deployer::agree(&total, &what, comes_back, &command.sending)?;
    let mut watch = deployer::stoppable()?;
    let mut programs = Vec::with_capacity(targets.len());
    for target in &targets {
        let transfer = Transfer::follow(&mut watch, chain.clone());
        let deployed = deployer.deploy_program(&target.deploy, &watch).await;
        transfer.finish();
        programs.push(Program::deployed(target, &deployed.map_err(|error| about(target, error))?, payer));
    }
    report::print(global, programs, command.bundled)
}

/// What is about to happen to a program.
fn plan(target: &Target, quote: &ProgramQuote) -> String {
    use committor_client::deploy::ProgramAction as Action;
    let (name, program, len) = (&target.name, target.deploy.program, target.deploy.elf.len());
    let what = match quote.action {
        Action::Deploy => format!("{name} ({len} bytes) becomes program {program}"),
        Action::Upgrade => format!("{name} ({len} bytes) replaces what program {program} holds"),
        Action::Buffer => {
            format!("{name} ({len} bytes) goes to buffer {}, for program {program}", quote.buffer)
        }
        Action::Settle => format!("program {program} holds {name} already; the rest is settled"),
        Action::Nothing if quote.is_deployed => return format!("program {program} holds {name} already"),
        Action::Nothing => return format!("buffer {} holds {name} already", quote.buffer),
    };
    let then = match target.deploy.goal {
        ProgramGoal::Deployed(UpgradeAuthority::Same) | ProgramGoal::InBuffer { handed_to: None } => {
            String::new()
        }
        ProgramGoal::Deployed(UpgradeAuthority::Other(new)) => {
            format!("\n  its upgrade authority becomes {new}")
        }
        ProgramGoal::Deployed(UpgradeAuthority::Nobody) => {
            "\n  it becomes immutable: nobody can ever upgrade it again".to_owned()
        }
        ProgramGoal::InBuffer { handed_to: Some(to) } => format!("\n  the buffer goes to {to}"),
    };
    what + &then
}

fn about(target: &Target, error: ProgramDeployError) -> CommandError {
    CommandError::from(error).about(target.name.clone())
}

impl From<ProgramDeployError> for CommandError {
    fn from(error: ProgramDeployError) -> Self {
        let kind = match error {
            ProgramDeployError::Deploy(error) => return error.into(),
            ProgramDeployError::Overtaken { .. } => Kind::NotVerified,
            ProgramDeployError::File(_)
            | ProgramDeployError::NoKeypair(_)
            | ProgramDeployError::NotAProgram { .. }
            | ProgramDeployError::Closed(_)
            | ProgramDeployError::DataExists { .. }
            | ProgramDeployError::Immutable(_)
            | ProgramDeployError::WrongAuthority { .. }
            | ProgramDeployError::MaxLen { .. } => Kind::Usage,
        };
        let hint = error.hint();
        Self::new(kind, error).hints(hint)
    }
}
