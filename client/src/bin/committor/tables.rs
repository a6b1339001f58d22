use std::sync::Arc;

use clap::Subcommand;
use committor_client::{
    Committor, Signers, Store,
    chain::RpcChain,
    engine::tables::{TableReport, TableState, Tables as Manager, Upkeep},
};
use serde_json::json;
use solana_address::Address;

use crate::{
    args::{Global, Output},
    exit::{CommandError, Kind},
    output, status,
};

/// Show and close lookup tables
#[derive(Debug, clap::Args)]
pub struct Tables {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Close(Close),
}

/// Show the authority's lookup tables
#[derive(Debug, clap::Args)]
struct List {
    /// Show closed ones too
    #[arg(long)]
    all: bool,
    /// Look on chain for tables that the store does not know
    #[arg(long)]
    discover: bool,
}

/// Deactivate lookup tables, and close those that have cooled down
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A table can be closed some 512 slots after it was deactivated. Its rent goes to the fee payer. Without --wait, run the
command again then: it closes what has cooled down.")]
struct Close {
    /// These tables, needed or not [default: all that this store made and that nobody needs]
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<Address>,
    /// Every table of the authority, needed or not; also those that the store does not know
    #[arg(long, conflicts_with = "addresses")]
    all: bool,
    /// Wait until they are closed
    #[arg(long)]
    wait: bool,
}

pub async fn run(global: &Global, tables: &Tables) -> Result<Kind, CommandError> {
    match &tables.command {
        Command::List(command) => list(global, command).await,
        Command::Close(command) => close(global, command).await,
    }
}

async fn list(global: &Global, command: &List) -> Result<Kind, CommandError> {
    let manager = if command.discover {
        let manager = open(global).await?;
        manager.discover().await?;
        manager
    } else {
        // Only reads, so that it can be asked while an engine works on the store.
        status::require_store(global)?;
        let authority = global.authority()?;
        let signers = Signers { payer: authority.clone(), authority };
        let chain = Arc::new(RpcChain::new(crate::cluster::settings(global).await?));
        Manager::new(chain, Store::open(global.store())?, signers, global.engine_settings()?.tables)
    };
    let mut tables = manager.list().await?;
    tables.retain(|table| command.all || table.state != TableState::Closed);
    print_list(&tables, global.output)?;
    Ok(Kind::Success)
}

async fn close(global: &Global, command: &Close) -> Result<Kind, CommandError> {
    let manager = open(global).await?;
    let mut upkeep = if command.all || !command.addresses.is_empty() {
        let known = manager.list().await?;
        let is_known = |address: &Address| known.iter().any(|table| table.address == *address);
        if command.all || !command.addresses.iter().all(is_known) {
            manager.discover().await?;
        }
        let mut addresses = command.addresses.clone();
        if command.all {
            let open = |table: &TableReport| !matches!(table.state, TableState::Closed | TableState::Frozen);
            addresses.extend(manager.list().await?.into_iter().filter(open).map(|table| table.address));
        }
        manager.close(&addresses).await?
    } else {
        manager.close_unused().await?
    };
    if command.wait {
        upkeep.closed.extend(manager.closed().await?);
        upkeep.failed.clear();
    }
    print_upkeep(&upkeep, global.output)?;
    let kind = if upkeep.failed.is_empty() { Kind::Success } else { Kind::Other };
    for (table, error) in upkeep.failed {
        eprint!("table {table}: {}", CommandError::new(Kind::Other, error));
    }
    let cooling = |table: &TableReport| matches!(table.state, TableState::Deactivating { .. });
    let cooling = manager.list().await?.iter().filter(|table| cooling(table)).count();
    if cooling > 0 {
        eprintln!("hint: {cooling} cooling down; `committor tables close` closes them in a few minutes");
    }
    Ok(kind)
}

async fn open(global: &Global) -> Result<Manager<RpcChain>, CommandError> {
    let settings = global.engine_settings()?.tables;
    let rpc = crate::cluster::settings(global).await?;
    let builder = Committor::builder().rpc(rpc).signers(global.signers()?).store(global.store());
    Ok(builder.tables(settings).await?)
}

fn print_list(tables: &[TableReport], form: Output) -> Result<(), CommandError> {
    if form != Output::Display {
        let document = |table: &TableReport| {
            json!({
                "pubkey": table.address.to_string(),
                "origin": table.origin.as_str(),
                "state": table.state.as_str(),
                "deactivated_since_slot": table.state.deactivated_since(),
                "entries": table.entries,
                "references": table.references,
                "lamports": table.lamports.0,
            })
        };
        let tables: Vec<_> = tables.iter().map(document).collect();
        return output::json(&json!({ "tables": tables }), form);
    }
    let mut shown = output::table(["table", "origin", "state", "entries", "references", "lamports"]);
    for table in tables {
        let state = match table.state.deactivated_since() {
            Some(slot) => format!("{} since slot {slot}", table.state.as_str()),
            None => table.state.as_str().to_owned(),
        };
        shown.add_row([
            table.address.to_string(),
            table.origin.to_string(),
            state,
            table.entries.to_string(),
            table.references.to_string(),
            table.lamports.to_string(),
        ]);
    }
    output::align_right(&mut shown, 3..6);
    output::print(&format!("{shown}\n"))
}

fn print_upkeep(upkeep: &Upkeep, form: Output) -> Result<(), CommandError> {
    if form == Output::Display {
        let lines = |what: &'static str, tables: &[Address]| -> String {
            tables.iter().map(|table| format!("{what} {table}\n")).collect()
        };
        let text = lines("deactivated", &upkeep.deactivated) + &lines("closed", &upkeep.closed);
        return output::print(&text);
    }
    let texts = |tables: &[Address]| tables.iter().map(Address::to_string).collect::<Vec<_>>();
    let failed: Vec<_> = upkeep
        .failed
        .iter()
        .map(|(table, error)| json!({ "pubkey": table.to_string(), "error": error.to_string() }))
        .collect();
    let (deactivated, closed) = (texts(&upkeep.deactivated), texts(&upkeep.closed));
    output::json(&json!({ "deactivated": deactivated, "closed": closed, "failed": failed }), form)
}
