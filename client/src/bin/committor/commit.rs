use std::sync::Arc;

use committor_client::{
    Changeset, ChangesetReport, Committor, EngineError, Preview, Store, Verification,
    chain::{Chain, RpcChain, RpcSettings},
    types::BundleStatus,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args::{Commit, Engine, Global},
    cluster,
    exit::{CommandError, Kind},
    input, output,
    progress::Progress,
};

pub async fn run(global: &Global, command: &Commit) -> Result<Kind, CommandError> {
    // Settings, keypairs and files first: what is wrong with them costs nothing to find.
    command.engine.settings(global)?;
    global.authority()?;
    let mode = command.mode.into();
    let changeset = input::read_changeset(&command.files, command.atomic, command.account.as_deref(), mode)?;
    changeset.check().map_err(EngineError::from)?;
    if command.dry_run {
        return dry_run(global, &command.engine, &changeset).await;
    }
    let committor = start(global, &command.engine).await?;
    // What an earlier command left is finished too, not abandoned halfway.
    let landed = async {
        let landed = land(&committor, changeset).await;
        committor.idle().await;
        landed
    };
    let landed = interruptible(&committor, &command.engine, landed).await?;
    let Some((report, verification)) = landed.transpose()? else { return Ok(Kind::Interrupted) };
    output::report(&report, global.output)?;
    Ok(outcome(&report, &verification))
}

/// Does `work`, and then stops the committor. If the process is told to end meanwhile, gives what is on its way some time to
/// end; `None` if something is left to do.
pub async fn interruptible<T>(
    committor: &Committor,
    engine: &Engine,
    work: impl Future<Output = T>,
) -> Result<Option<T>, CommandError> {
    let signals = |kind| signal(kind).map_err(|error| CommandError::new(Kind::Other, error));
    let (mut interrupt, mut terminate) =
        (signals(SignalKind::interrupt())?, signals(SignalKind::terminate())?);
    tokio::pin!(work);
    let done = tokio::select! {
        done = &mut work => Some(done),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    if let Some(done) = done {
        committor.shutdown(engine.shutdown_timeout()).await?;
        return Ok(Some(done));
    }
    eprintln!("stopping; what is on its way has {} s to end", engine.shutdown_timeout().as_secs());
    match committor.shutdown(engine.shutdown_timeout()).await? {
        // The end may have come in the meantime.
        0 => Ok(Some(work.await)),
        left => {
            let plural = if left == 1 { "bundle has" } else { "bundles have" };
            eprintln!("{left} {plural} not ended; `committor resume` goes on with what is left");
            Ok(None)
        }
    }
}

/// Plans a changeset and prints what it would take.
async fn dry_run(global: &Global, engine: &Engine, changeset: &Changeset) -> Result<Kind, CommandError> {
    let signers = global.signers()?;
    let chain = Arc::new(RpcChain::new(cluster::settings(global).await?));
    let folder = tempfile::tempdir().map_err(|error| CommandError::new(Kind::Other, error))?;
    // Without a store, nothing is known of what was committed before, and none is made.
    let path =
        if global.store().exists() { global.store().to_owned() } else { folder.path().join("none.db") };
    let store = Store::open(&path)?;
    let preview = Preview::new(chain.clone(), store, signers, engine.settings(global)?, changeset).await;
    chain.shutdown().await;
    let preview = preview?;
    output::preview(&preview, global.output)?;
    let planned = preview.bundles.iter().filter(|bundle| bundle.plan.is_ok()).count();
    Ok(match planned {
        0 => Kind::Failed,
        some if some < preview.bundles.len() => Kind::PartlyLanded,
        _ => Kind::Success,
    })
}

/// A committor as the command line describes it, on a cluster that can be reached.
pub async fn start(global: &Global, engine: &Engine) -> Result<Committor, CommandError> {
    let settings = engine.settings(global)?;
    let rpc = RpcSettings { proxy: engine.proxy(global)?, ..cluster::settings(global).await? };
    let rpc = engine.route.apply(rpc);
    // Before anything is stored: a changeset that waits for a wrong URL helps nobody.
    let chain = RpcChain::new(rpc.clone());
    let reached = chain.rent().await;
    chain.shutdown().await;
    reached.map_err(|error| {
        CommandError::new(Kind::Cluster, error).hint("`--url` names another cluster; nothing was done")
    })?;
    let builder = Committor::builder().rpc(rpc).signers(global.signers()?);
    Ok(builder.store(global.store()).settings(settings).start().await?)
}

/// Commits a changeset, shows how it goes, and reads everything back.
pub async fn land(
    committor: &Committor,
    changeset: Changeset,
) -> Result<(ChangesetReport, Verification), CommandError> {
    let events = committor.events();
    let ticket = committor.commit(changeset).await?;
    for (bundle, error) in ticket.refused() {
        eprintln!("bundle {bundle} was refused: {error}");
        if let Some(hint) = error.hint() {
            eprintln!("hint: {hint}");
        }
    }
    let id = ticket.changeset();
    let progress = Progress::follow(events, ticket.bundles());
    ticket.finished().await?;
    progress.finish().await;
    let verification = verify(committor, id).await?;
    Ok((committor.store().report(Some(id)).await?, verification))
}

/// Reads a changeset's accounts back, and says which are not what was committed.
pub async fn verify(
    committor: &Committor,
    changeset: committor_client::ChangesetId,
) -> Result<Verification, CommandError> {
    let verification = committor.verify(changeset).await?;
    for mismatch in &verification.mismatches {
        eprintln!("account {} is not what was committed: {}", mismatch.account, mismatch.reason);
    }
    Ok(verification)
}

/// What the exit code says about a changeset. What is staged has come as far as it was to, and what gave way to a newer
/// bundle is not missed.
pub fn outcome(report: &ChangesetReport, verification: &Verification) -> Kind {
    let good = |status: BundleStatus| {
        status.is_settled() && !matches!(status, BundleStatus::Failed | BundleStatus::Abandoned)
    };
    let good = report.bundles.iter().filter(|bundle| good(bundle.status)).count();
    if !verification.mismatches.is_empty() {
        Kind::NotVerified
    } else if good == 0 {
        Kind::Failed
    } else if good < report.bundles.len() {
        Kind::PartlyLanded
    } else {
        Kind::Success
    }
}
