use committor_client::{BundleId, ChangesetId, Store, types::BundleStatus};

use crate::{
    args::{Finalize, Global},
    commit,
    exit::{CommandError, Kind},
    output,
    progress::Progress,
    status,
};

pub async fn run(global: &Global, command: &Finalize) -> Result<Kind, CommandError> {
    status::require_store(global)?;
    let staged = Store::open(global.store())?.staged().await?;
    let chosen: Vec<_> = staged
        .into_iter()
        .filter(|bundle| command.changeset.is_none_or(|id| bundle.changeset == ChangesetId(id)))
        .filter(|bundle| command.bundle.is_none_or(|id| bundle.id == BundleId(id)))
        .collect();
    if chosen.is_empty() {
        let nothing = format!("nothing in {} is staged that was asked for", global.store().display());
        return Err(
            CommandError::new(Kind::Usage, nothing).hint("`committor status --all` lists what there is")
        );
    }
    let committor = commit::start(global, &command.engine).await?;
    let names: Vec<_> = chosen.iter().map(|bundle| (bundle.id, bundle.key)).collect();
    let work = async {
        let progress = Progress::follow(committor.events(), &names);
        let mut tickets = Vec::with_capacity(chosen.len());
        for bundle in &chosen {
            tickets.push(committor.finalize(bundle.key).await?);
        }
        for ticket in tickets {
            ticket.finished().await?;
        }
        progress.finish().await;
        committor.idle().await;
        let mut changesets: Vec<_> = chosen.iter().map(|bundle| bundle.changeset).collect();
        changesets.dedup();
        let (mut reports, mut mismatches) = (Vec::new(), 0);
        for changeset in changesets {
            mismatches += commit::verify(&committor, changeset).await?.mismatches.len();
            reports.push(committor.changeset(changeset).await?);
        }
        Ok::<_, CommandError>((reports, mismatches))
    };
    let done = commit::interruptible(&committor, &command.engine, work).await?;
    let Some((reports, mismatches)) = done.transpose()? else { return Ok(Kind::Interrupted) };
    output::reports(&reports, global.output)?;
    let landed = reports
        .iter()
        .flat_map(|report| &report.bundles)
        .filter(|bundle| chosen.iter().any(|chosen| chosen.key == bundle.key))
        .filter(|bundle| bundle.status == BundleStatus::Landed)
        .count();
    Ok(match landed {
        _ if mismatches > 0 => Kind::NotVerified,
        0 => Kind::Failed,
        some if some < chosen.len() => Kind::PartlyLanded,
        _ => Kind::Success,
    })
}
