use committor_client::{
    Changeset, ChangesetReport, Committor, EngineSettings, Verification, types::BundleStatus,
};

use crate::{
    args::{Commit, Global},
    exit::{CommandError, Kind},
    input, output, progress,
};

pub async fn run(global: &Global, command: &Commit) -> Result<Kind, CommandError> {
    let changeset = input::read_changeset(&command.files, command.atomic, command.account.as_deref())?;
    let mut builder = Committor::builder()
        .rpc(global.cluster()?)
        .authority(global.authority()?)
        .store(&global.store)
        .settings(EngineSettings {
            version: command.transaction_version.forced(),
            ..EngineSettings::default()
        });
    if let Some(payer) = global.payer()? {
        builder = builder.payer(payer);
    }
    let committor = builder.start().await?;
    // Before anything is stored: a changeset that waits for a wrong URL helps nobody.
    committor.ping().await.map_err(|error| {
        CommandError::from(error).hint("`--url` names another cluster; nothing was stored")
    })?;
    let (report, verification) = land(&committor, changeset).await?;
    committor.shutdown().await;
    output::report(&report, global.output)?;
    Ok(outcome(&report, &verification))
}

/// Commits a changeset, shows how it goes, and reads everything back.
pub async fn land(
    committor: &Committor,
    changeset: Changeset,
) -> Result<(ChangesetReport, Verification), CommandError> {
    let events = committor.events();
    let ticket = committor.commit(changeset).await?;
    let id = ticket.changeset();
    let progress = progress::follow(events, ticket.bundles());
    ticket.finished().await?;
    // It ends with the last bundle; if it panicked, there is nothing to show.
    let _ = progress.await;
    let verification = committor.verify(id).await?;
    for mismatch in &verification.mismatches {
        eprintln!("account {} is not what was committed: {}", mismatch.account, mismatch.reason);
    }
    Ok((committor.store().report(Some(id)).await?, verification))
}

/// What the exit code says about a changeset.
pub fn outcome(report: &ChangesetReport, verification: &Verification) -> Kind {
    let landed = report.bundles.iter().filter(|bundle| bundle.status == BundleStatus::Landed).count();
    if landed == 0 {
        Kind::Failed
    } else if landed < report.bundles.len() {
        Kind::PartlyLanded
    } else if !verification.mismatches.is_empty() {
        Kind::NotVerified
    } else {
        Kind::Success
    }
}
