use std::collections::BTreeMap;

use committor_client::{
    Store,
    chain::RpcChain,
    engine::{Audit as Auditor, AuditedAccount, Verdict},
};
use serde_json::json;
use solana_address::Address;

use crate::{
    args::{Global, Output},
    deployer,
    exit::{CommandError, Kind},
    output, status,
};

/// Compare what the store calls landed with the chain
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Neither store nor chain is changed. Verdicts: equal, handed-back (as the last bundle was to), chain-ahead, store-ahead,
changed-by-others, gone. The exit code is 0 if all are equal or handed back, and 5 otherwise.")]
pub struct Audit {
    /// Only these accounts [default: all that the store knows]
    #[arg(value_name = "PUBKEY")]
    accounts: Vec<Address>,
    /// Go on after this account, as an interrupted audit said
    #[arg(long, value_name = "PUBKEY", conflicts_with = "accounts")]
    after: Option<Address>,
    /// Accounts that are compared at a time
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// List accounts that are equal or handed back too
    #[arg(long)]
    all: bool,
}

pub async fn run(global: &Global, command: &Audit) -> Result<Kind, CommandError> {
    status::require_store(global)?;
    let store = Store::open(global.store())?;
    let chain = deployer::chain(global).await?;
    let auditor = Auditor::new(chain.clone(), store);
    let audited = audit(command, &auditor).await;
    chain.shutdown().await;
    let (listed, totals) = audited?;
    print(&listed, &totals, global.output)?;
    let good = totals.keys().all(|verdict| verdict.is_good());
    Ok(if good { Kind::Success } else { Kind::NotVerified })
}

async fn audit(
    command: &Audit,
    auditor: &Auditor<RpcChain>,
) -> Result<(Vec<AuditedAccount>, BTreeMap<Verdict, u64>), CommandError> {
    let (mut listed, mut totals) = (Vec::new(), BTreeMap::new());
    let mut take = |accounts: Vec<AuditedAccount>| {
        for (verdict, count) in Auditor::<RpcChain>::totals(&accounts) {
            *totals.entry(verdict).or_default() += count;
        }
        listed.extend(accounts.into_iter().filter(|account| command.all || !account.verdict.is_good()));
    };
    if !command.accounts.is_empty() {
        take(auditor.accounts(&command.accounts).await?);
        return Ok((listed, totals));
    }
    let mut after = command.after;
    loop {
        let batch = auditor.batch(after, command.batch).await.map_err(|error| {
            let error = CommandError::from(error);
            match after {
                Some(after) => error.hint(format!("`committor audit --after {after}` goes on from here")),
                None => error,
            }
        })?;
        take(batch.accounts);
        after = batch.next;
        match after {
            Some(after) => eprintln!("compared up to {after}"),
            None => return Ok((listed, totals)),
        }
    }
}

fn print(
    listed: &[AuditedAccount],
    totals: &BTreeMap<Verdict, u64>,
    form: Output,
) -> Result<(), CommandError> {
    if form != Output::Display {
        return output::json(&json!({ "accounts": listed, "totals": totals }), form);
    }
    let mut text = String::new();
    if !listed.is_empty() {
        let mut table = output::table(["account", "verdict", "bundle key", ""]);
        for account in listed {
            let unfinished = if account.unfinished { "; bundles of it have not ended" } else { "" };
            let detail = account.detail.as_deref().unwrap_or_default();
            table.add_row([
                account.pubkey.to_string(),
                name(account.verdict).to_owned(),
                account.bundle.to_string(),
                format!("{detail}{unfinished}"),
            ]);
        }
        output::align_right(&mut table, [2]);
        text = format!("{table}\n");
    }
    let count: u64 = totals.values().sum();
    let parts: Vec<String> =
        totals.iter().map(|(verdict, count)| format!("{count} {}", name(*verdict))).collect();
    let parts = if parts.is_empty() { "nothing landed from this store".to_owned() } else { parts.join(", ") };
    output::print(&format!("{text}{count} accounts: {parts}.\n"))
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "equal",
        Verdict::HandedBack => "handed back",
        Verdict::ChainAhead => "chain ahead",
        Verdict::StoreAhead => "store ahead",
        Verdict::ChangedByOthers => "changed by others",
        Verdict::Gone => "gone",
    }
}
