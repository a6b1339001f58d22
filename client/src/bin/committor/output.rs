//! What goes to stdout.

use std::io::{ErrorKind, Write, stdout};

use comfy_table::{CellAlignment, Table, TableComponent, presets};
use committor_client::{
    ChangesetReport, Preview,
    engine::BundlePreview,
    plan::{CommitPlan, Price},
    store::{BundleReport, ChangesetSummary, CommitReport, StepReport, Totals},
};
use serde::Serialize;

use crate::{
    args::Output,
    exit::{CommandError, Kind},
};

/// A report in the shape of the JSON output: accounts first, since they are what people look for.
#[derive(Serialize)]
pub struct ReportDocument<'a> {
    changeset: u64,
    created_at_ms: i64,
    /// Every account of every bundle.
    accounts: Vec<AccountDocument<'a>>,
    bundles: Vec<BundleDocument<'a>>,
}

#[derive(Serialize)]
struct AccountDocument<'a> {
    bundle: u64,
    status: &'static str,
    #[serde(flatten)]
    account: &'a CommitReport,
}

#[derive(Serialize)]
struct BundleDocument<'a> {
    bundle: u64,
    mode: &'a str,
    status: &'static str,
    error: Option<&'a str>,
    transactions: u64,
    compute_units: u64,
    fee_lamports: u64,
    steps: &'a [StepReport],
}

impl<'a> ReportDocument<'a> {
    pub fn new(report: &'a ChangesetReport) -> Self {
        let account = |bundle: &'a BundleReport| {
            let (id, status) = (bundle.bundle.0, bundle.status.as_str());
            bundle.accounts.iter().map(move |account| AccountDocument { bundle: id, status, account })
        };
        Self {
            changeset: report.changeset.0,
            created_at_ms: report.created_at_ms,
            accounts: report.bundles.iter().flat_map(account).collect(),
            bundles: report.bundles.iter().map(BundleDocument::new).collect(),
        }
    }
}

impl<'a> BundleDocument<'a> {
    fn new(bundle: &'a BundleReport) -> Self {
        Self {
            bundle: bundle.bundle.0,
            mode: &bundle.mode,
            status: bundle.status.as_str(),
            error: bundle.error.as_deref(),
            transactions: bundle.transactions,
            compute_units: bundle.compute_units,
            fee_lamports: bundle.fee_lamports.0,
            steps: &bundle.steps,
        }
    }
}

/// A bundle that was looked for, wherever it is.
#[derive(Serialize)]
struct FoundDocument<'a> {
    changeset: u64,
    updated_at_ms: i64,
    #[serde(flatten)]
    bundle: BundleDocument<'a>,
    accounts: &'a [CommitReport],
}

impl<'a> FoundDocument<'a> {
    fn new(report: &'a BundleReport) -> Self {
        let (changeset, updated_at_ms) = (report.changeset.0, report.updated_at_ms);
        Self { changeset, updated_at_ms, bundle: BundleDocument::new(report), accounts: &report.accounts }
    }
}

/// Prints bundles of several changesets.
pub fn found(bundles: &[BundleReport], output: Output) -> Result<(), CommandError> {
    if output != Output::Display {
        let bundles: Vec<_> = bundles.iter().map(FoundDocument::new).collect();
        return json(&serde_json::json!({ "bundles": bundles }), output);
    }
    let mut table =
        table(["changeset", "bundle", "account", "bytes", "nonce", "transactions", "signatures", ""]);
    let mut errors = String::new();
    for bundle in bundles {
        let (changeset, id) = (bundle.changeset, bundle.bundle);
        for account in &bundle.accounts {
            table.add_row([
                changeset.to_string(),
                id.to_string(),
                account.pubkey.clone(),
                account.bytes.to_string(),
                account.nonce.map_or_else(|| "-".to_owned(), |nonce| nonce.to_string()),
                account.transactions.to_string(),
                signatures(&account.signatures),
                bundle.status.to_string(),
            ]);
        }
        if let Some(error) = &bundle.error {
            errors.push_str(&format!("changeset {changeset}, bundle {id}: {error}\n"));
        }
    }
    align_right(&mut table, [0, 1, 3, 4, 5]);
    print(&format!("{table}\n{errors}"))
}

/// Prints the sums over a store.
pub fn totals(totals: &Totals, output: Output) -> Result<(), CommandError> {
    if output != Output::Display {
        return json(totals, output);
    }
    let mut table = table(["", "total"]);
    let bundles = totals.bundles.iter().map(|(status, count)| (format!("bundles {status}"), *count));
    let rest = [
        ("changesets", totals.changesets),
        ("commits", totals.commits),
        ("bytes of states", totals.state_bytes),
        ("transactions landed", totals.transactions),
        ("compute units", totals.compute_units),
        ("fees in lamports", totals.fee_lamports.0),
    ];
    for (name, total) in bundles.chain(rest.map(|(name, total)| (name.to_owned(), total))) {
        table.add_row([name, total.to_string()]);
    }
    align_right(&mut table, [1]);
    print(&format!("{table}\n"))
}

/// Prints a changeset's report.
pub fn report(report: &ChangesetReport, output: Output) -> Result<(), CommandError> {
    match output {
        Output::Display => print(&display(report)),
        _ => json(&ReportDocument::new(report), output),
    }
}

/// Prints several changesets' reports.
pub fn reports(reports: &[ChangesetReport], output: Output) -> Result<(), CommandError> {
    if output == Output::Display {
        return reports.iter().try_for_each(|report| print(&display(report)));
    }
    let changesets: Vec<_> = reports.iter().map(ReportDocument::new).collect();
    json(&serde_json::json!({ "changesets": changesets }), output)
}

/// Prints a list of changesets.
pub fn summaries(summaries: &[ChangesetSummary], output: Output) -> Result<(), CommandError> {
    if output != Output::Display {
        return json(&serde_json::json!({ "changesets": summaries }), output);
    }
    let mut table =
        table(["changeset", "bundles", "landed", "staged", "failed", "superseded", "abandoned", "to go"]);
    for summary in summaries {
        let ChangesetSummary { changeset, bundles, landed, staged, failed, superseded, abandoned, .. } =
            summary;
        let left = bundles - landed - staged - failed - superseded - abandoned;
        let numbers = [&changeset.0, bundles, landed, staged, failed, superseded, abandoned, &left];
        table.add_row(numbers.map(|number| number.to_string()));
    }
    align_right(&mut table, 0..8);
    print(&format!("{table}\n"))
}

#[derive(Serialize)]
struct PreviewDocument {
    #[serde(flatten)]
    price: Price,
    bundles: Vec<BundlePreviewDocument>,
}

#[derive(Serialize)]
struct BundlePreviewDocument {
    bundle: u64,
    /// Why it has no plan.
    error: Option<String>,
    /// The bundle whose transaction it shares.
    shares_with: Option<u64>,
    #[serde(flatten)]
    price: Price,
    accounts: Vec<AccountPreviewDocument>,
}

#[derive(Serialize)]
struct AccountPreviewDocument {
    pubkey: String,
    strategy: String,
    nonce: u64,
    rent_lamports: u64,
}

/// Prints what a changeset would take.
pub fn preview(preview: &Preview, output: Output) -> Result<(), CommandError> {
    if output == Output::Display {
        return print(&display_preview(preview));
    }
    let account = |commit: &CommitPlan| AccountPreviewDocument {
        pubkey: commit.account.to_string(),
        strategy: commit.strategy.to_string(),
        nonce: commit.nonce.0,
        rent_lamports: commit.rent.0,
    };
    let bundle = |bundle: &BundlePreview| BundlePreviewDocument {
        bundle: bundle.id.0,
        error: bundle.plan.as_ref().err().map(ToString::to_string),
        shares_with: bundle.shares_with.map(|id| id.0),
        price: bundle.price,
        accounts: bundle.plan.iter().flat_map(|plan| &plan.commits).map(account).collect(),
    };
    json(
        &PreviewDocument { price: preview.price, bundles: preview.bundles.iter().map(bundle).collect() },
        output,
    )
}

fn display_preview(preview: &Preview) -> String {
    let mut table = table([
        "bundle",
        "accounts",
        "strategies",
        "transactions",
        "rounds",
        "compute units",
        "fees",
        "rent locked",
        "comes back",
    ]);
    let numbers = |price: &Price| {
        [
            price.transactions,
            price.rounds,
            price.compute_units,
            price.fee_lamports.0,
            price.rent_locked_lamports.0,
            price.rent_returned_lamports.0,
        ]
        .map(|number| number.to_string())
    };
    let mut refusals = String::new();
    for bundle in &preview.bundles {
        let plan = match &bundle.plan {
            Ok(plan) => plan,
            Err(error) => {
                refusals.push_str(&format!("bundle {} has no plan: {error}\n", bundle.id));
                if let Some(hint) = error.hint() {
                    refusals.push_str(&format!("hint: {hint}\n"));
                }
                continue;
            }
        };
        let mut strategies: Vec<String> =
            plan.commits.iter().map(|commit| commit.strategy.to_string()).collect();
        strategies.sort();
        strategies.dedup();
        if let Some(other) = bundle.shares_with {
            strategies.push(format!("(in bundle {other}'s transaction)"));
        }
        let mut row = vec![bundle.id.to_string(), plan.commits.len().to_string(), strategies.join(" ")];
        row.extend(numbers(&bundle.price));
        table.add_row(row);
    }
    let mut row = vec!["all".to_owned(), String::new(), String::new()];
    row.extend(numbers(&preview.price));
    table.add_row(row);
    align_right(&mut table, [0, 1, 3, 4, 5, 6, 7, 8]);
    format!("{table}\n{refusals}Amounts are in lamports. Nothing was sent.\n")
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints any value as JSON.
pub fn json(value: &impl Serialize, output: Output) -> Result<(), CommandError> {
    let text = match output {
        Output::JsonCompact => serde_json::to_string(value),
        _ => serde_json::to_string_pretty(value),
    };
    print(&format!("{}\n", text.map_err(|error| CommandError::new(Kind::Other, error))?))
}

/// Prints to stdout. A reader that went away has seen what it wanted.
pub fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CommandError::new(Kind::Other, error)),
        _ => Ok(()),
    }
}

fn display(report: &ChangesetReport) -> String {
    let mut table = table([
        "bundle",
        "account",
        "bytes",
        "strategy",
        "transactions",
        "compute units",
        "lamports",
        "signatures",
        "",
    ]);
    for bundle in &report.bundles {
        for account in &bundle.accounts {
            table.add_row([
                bundle.bundle.to_string(),
                account.pubkey.clone(),
                account.bytes.to_string(),
                account.strategy.clone().unwrap_or_else(|| "-".to_owned()),
                account.transactions.to_string(),
                account.compute_units.to_string(),
                account.fee_lamports.to_string(),
                signatures(&account.signatures),
                if account.verified { "verified".to_owned() } else { bundle.status.to_string() },
            ]);
        }
    }
    align_right(&mut table, [0, 2, 4, 5, 6]);
    let mut text = format!("Changeset {}\n{table}\n", report.changeset);
    for bundle in &report.bundles {
        let what = match (&bundle.error, bundle.steps.first()) {
            (Some(error), _) => format!("{}: {error}", bundle.status),
            (None, Some(_)) => format!("{}: {}", bundle.status, steps(&bundle.steps)),
            (None, None) => bundle.status.to_string(),
        };
        text.push_str(&format!("bundle {} {what}\n", bundle.bundle));
    }
    text
}

/// Which transaction took which steps: often one takes all of them.
fn steps(steps: &[StepReport]) -> String {
    let by_transaction = steps.chunk_by(|one, other| one.signature == other.signature).map(|steps| {
        let names: Vec<&str> = steps.iter().map(|step| step.step.as_str()).collect();
        let signature = steps.first().map_or("", |step| step.signature.as_str());
        format!("{} with {signature}", names.join(", "))
    });
    by_transaction.collect::<Vec<_>>().join("; ")
}

/// The last transaction, which is the committing one where it landed, and how many came before it.
fn signatures(signatures: &[String]) -> String {
    let short = |signature: &String| format!("{}…", signature.chars().take(8).collect::<String>());
    match signatures {
        [] => "-".to_owned(),
        [only] => short(only),
        [before @ .., last] => format!("{} +{}", short(last), before.len()),
    }
}

/// An empty table with a header.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    // One line below the header is enough.
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    table
}

/// Aligns columns of numbers.
pub fn align_right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
