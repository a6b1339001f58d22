use committor_client::{Store, store::Pruned};

use crate::{
    args::{Global, Output, Prune},
    exit::{CommandError, Kind},
    output, status,
};

/// Rows that are removed in one step: a running engine waits no longer than that takes.
const ROWS_PER_STEP: u32 = 2_000;

pub async fn run(global: &Global, command: &Prune) -> Result<Kind, CommandError> {
    status::require_store(global)?;
    let store = Store::open(global.store())?;
    let mut pruned = Pruned { more: true, ..Pruned::default() };
    while pruned.more {
        let step = store.prune(command.older_than, ROWS_PER_STEP).await?;
        pruned.changesets += step.changesets;
        pruned.bundles += step.bundles;
        pruned.rows += step.rows;
        pruned.more = step.more;
    }
    match global.output {
        Output::Display => output::print(&format!(
            "removed {} changesets with {} bundles; the space is used for what comes next\n",
            pruned.changesets, pruned.bundles
        ))?,
        _ => {
            let Pruned { changesets, bundles, rows, .. } = pruned;
            let document = serde_json::json!({ "changesets": changesets, "bundles": bundles, "rows": rows });
            output::json(&document, global.output)?;
        }
    }
    Ok(Kind::Success)
}
