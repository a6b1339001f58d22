use committor_client::{
    Changeset, ChangesetReport, Committor, EngineSettings, Verification,
    chain::{Chain, RpcChain},
    types::BundleStatus,
};

use crate::{
    args::{Commit, Global, Version},
    exit::{CommandError, Kind},
    input, output,
    progress::Progress,
};

pub async fn run(global: &Global, command: &Commit) -> Result<Kind, CommandError> {
    // Keypairs and files first: what is wrong with them costs nothing to find.
    global.authority()?;
    let changeset = input::read_changeset(&command.files, command.atomic, command.account.as_deref())?;
    let committor = start(global, command.transaction_version).await?;
    let (report, verification) = land(&committor, changeset).await?;
    // What an earlier command left is finished too, not abandoned halfway.
    committor.idle().await;
    committor.shutdown().await;
    output::report(&report, global.output)?;
    Ok(outcome(&report, &verification))
}

/// A committor as the command line describes it, on a cluster that can be reached.
pub async fn start(global: &Global, version: Version) -> Result<Committor, CommandError> {
    let rpc = global.cluster()?;
    // Before anything is stored: a changeset that waits for a wrong URL helps nobody.
    let chain = RpcChain::new(rpc.clone());
    let reached = chain.rent().await;
    chain.shutdown().await;
    reached.map_err(|error| {
        CommandError::new(Kind::Cluster, error).hint("`--url` names another cluster; nothing was done")
    })?;
    let mut builder = Committor::builder()
        .rpc(rpc)
        .authority(global.authority()?)
        .store(&global.store)
        .settings(EngineSettings { version: version.forced(), ..EngineSettings::default() });
    if let Some(payer) = global.payer()? {
        builder = builder.payer(payer);
    }
    Ok(builder.start().await?)
}

/// Commits a changeset, shows how it goes, and reads everything back.
pub async fn land(
    committor: &Committor,
    changeset: Changeset,
) -> Result<(ChangesetReport, Verification), CommandError> {
    let events = committor.events();
    let ticket = committor.commit(changeset).await?;
    let id = ticket.changeset();
    let progress = Progress::follow(events, ticket.bundles());
    ticket.finished().await?;
    progress.finish().await;
    let verification = committor.verify(id).await?;
    for mismatch in &verification.mismatches {
        eprintln!("account {} is not what was committed: {}", mismatch.account, mismatch.reason);
    }
    Ok((committor.store().report(Some(id)).await?, verification))
}

/// What the exit code says about a changeset.
pub fn outcome(report: &ChangesetReport, verification: &Verification) -> Kind {
    let landed = report.bundles.iter().filter(|bundle| bundle.status == BundleStatus::Landed).count();
    if !verification.mismatches.is_empty() {
        Kind::NotVerified
    } else if landed == 0 {
        Kind::Failed
    } else if landed < report.bundles.len() {
        Kind::PartlyLanded
    } else {
        Kind::Success
    }
}
