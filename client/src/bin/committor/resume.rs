use committor_client::{ChangesetReport, Store, Verification};

use crate::{
    args::{Global, Resume},
    commit,
    exit::{CommandError, Kind},
    output,
    progress::Progress,
    status,
};

pub async fn run(global: &Global, command: &Resume) -> Result<Kind, CommandError> {
    status::require_store(global)?;
    let unfinished = Store::open(global.store())?.unfinished().await?;
    let bundles: Vec<_> = unfinished.iter().map(|bundle| (bundle.id, bundle.key)).collect();
    let mut changesets: Vec<_> = unfinished.iter().map(|bundle| bundle.changeset).collect();
    drop(unfinished);
    changesets.dedup();
    if changesets.is_empty() {
        eprintln!("nothing to resume: every bundle in {} has ended", global.store().display());
        return Ok(Kind::Success);
    }
    let committor = commit::start(global, &command.engine).await?;
    let work = async {
        let progress = Progress::follow(committor.events(), &bundles);
        committor.idle().await;
        progress.finish().await;
        let mut kinds = Vec::new();
        let mut reports: Vec<ChangesetReport> = Vec::new();
        for changeset in changesets {
            let verification: Verification = committor.verify(changeset).await?;
            let report = committor.changeset(changeset).await?;
            kinds.push(commit::outcome(&report, &verification));
            reports.push(report);
        }
        Ok::<_, CommandError>((kinds, reports))
    };
    let done = commit::interruptible(&committor, &command.engine, work).await?;
    let Some((kinds, reports)) = done.transpose()? else { return Ok(Kind::Interrupted) };
    output::reports(&reports, global.output)?;
    Ok(kinds.into_iter().find(|kind| *kind != Kind::Success).unwrap_or(Kind::Success))
}
