//! The `committor` command. Parses, calls the library, prints.

mod abandon;
mod args;
mod audit;
mod bench;
mod close;
mod cluster;
mod commit;
mod completions;
mod demo;
mod deploy;
mod deployer;
mod download;
mod exit;
mod files;
mod finalize;
mod input;
mod keys;
mod list;
mod localnet;
mod man;
mod output;
mod progress;
mod prune;
mod resume;
mod retry;
mod set_authority;
mod show;
mod status;
mod tables;
mod upload;
mod verify;

use std::process::ExitCode;

use args::{Args, Command};
use clap::Parser;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { exit::Kind::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("COMMITTOR_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("committor=error,committor_client=error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&exit::CommandError::new(exit::Kind::Other, error)),
    };
    match runtime.block_on(run(args)) {
        Ok(kind) => kind.into(),
        Err(error) => exit::report(&error),
    }
}

async fn run(args: Args) -> Result<exit::Kind, exit::CommandError> {
    match &args.command {
        Command::Commit(command) => commit::run(&args.global, command).await,
        Command::Finalize(command) => finalize::run(&args.global, command).await,
        Command::Status(command) => status::run(&args.global, command).await,
        Command::Resume(command) => resume::run(&args.global, command).await,
        Command::Audit(command) => audit::run(&args.global, command).await,
        Command::Retry(command) => retry::run(&args.global, command).await,
        Command::Abandon(command) => abandon::run(&args.global, command).await,
        Command::Upload(command) => upload::run(&args.global, command).await,
        Command::Deploy(command) => deploy::run(&args.global, command).await,
        Command::Download(command) => download::run(&args.global, command).await,
        Command::Verify(command) => verify::run(&args.global, command).await,
        Command::List(command) => list::run(&args.global, command).await,
        Command::Show(command) => show::run(&args.global, command).await,
        Command::Close(command) => close::run(&args.global, command).await,
        Command::SetAuthority(command) => set_authority::run(&args.global, command).await,
        Command::Tables(command) => tables::run(&args.global, command).await,
        Command::Prune(command) => prune::run(&args.global, command).await,
        Command::Localnet(command) => localnet::run(&args.global, command).await,
        Command::Demo(command) => demo::run(&args.global, command).await,
        Command::Bench(command) => bench::run(&args.global, command).await,
        Command::Completions(command) => completions::run(command),
        Command::Man(command) => man::run(command),
    }
}
