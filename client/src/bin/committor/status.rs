use committor_client::{BundleId, ChangesetId, Store, store::BundleFilter};

use crate::{
    args::{Global, Status},
    exit::{CommandError, Kind},
    output,
};

/// Changesets that `--all` lists at most.
const MAX_LISTED: u32 = 1_000;
/// Bundles that are listed at most, if not told otherwise.
const MAX_FOUND: u32 = 100;

pub async fn run(global: &Global, command: &Status) -> Result<Kind, CommandError> {
    require_store(global)?;
    let store = Store::open(global.store())?;
    let filter = BundleFilter {
        account: command.account,
        bundle: command.bundle.map(BundleId),
        status: command.status,
        older_than: command.older_than,
        limit: command.limit.unwrap_or(MAX_FOUND),
    };
    let filters = filter.account.is_some() || filter.bundle.is_some() || filter.status.is_some();
    if command.totals {
        output::totals(&store.totals().await?, global.output)?;
    } else if filters || filter.older_than.is_some() {
        output::found(&store.find(filter).await?, global.output)?;
    } else if command.all {
        let limit = command.limit.unwrap_or(MAX_LISTED);
        output::summaries(&store.changesets(limit).await?, global.output)?;
    } else {
        output::report(&store.report(command.changeset.map(ChangesetId)).await?, global.output)?;
    }
    Ok(Kind::Success)
}

/// Refuses to make a store where one is only read.
pub fn require_store(global: &Global) -> Result<(), CommandError> {
    if global.store().exists() {
        return Ok(());
    }
    let missing = format!("there is no store at {}", global.store().display());
    Err(CommandError::new(Kind::Store, missing)
        .hint("`--store FILE` names another one; `committor commit` and `committor demo` make it"))
}
