//! A bundle that failed is tried once more; and how such a bundle is named, for `abandon` too.

use committor_client::{
    BundleId, ChangesetId, Store,
    store::{BundleFilter, BundleReport},
    types::BundleStatus,
};

use crate::{
    args::{Engine, Global},
    commit,
    exit::{CommandError, Kind},
    output,
    progress::Progress,
    status,
};

/// Bundles of one id that are looked at: callers may use an id in every changeset.
const MAX_FOUND: u32 = 1_000;

/// Try a bundle that failed once more
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is applied twice: what has landed after all is found, and a state goes to no other delegation of an account than
the one that it was first planned for. A bundle is refused if a newer one commits to one of its accounts.")]
pub struct Retry {
    #[command(flatten)]
    failed: Failed,
    #[command(flatten)]
    engine: Engine,
}

/// A bundle that failed.
#[derive(Debug, clap::Args)]
pub struct Failed {
    /// The bundle's id, as the changeset has it
    #[arg(value_name = "ID")]
    id: u64,
    /// The changeset, where several have a bundle of that id that failed
    #[arg(long, value_name = "ID")]
    changeset: Option<u64>,
}

pub async fn run(global: &Global, command: &Retry) -> Result<Kind, CommandError> {
    // Settings and keypairs first: what is wrong with them costs nothing to find.
    command.engine.settings(global)?;
    global.authority()?;
    let bundle = command.failed.find(global).await?;
    say(&bundle);
    let plural = if bundle.accounts.len() == 1 { "account" } else { "accounts" };
    eprintln!(
        "retry: looks whether it has landed after all, and if not commits {} {plural} in a new attempt",
        bundle.accounts.len()
    );
    let committor = commit::start(global, &command.engine).await?;
    let work = async {
        let progress = Progress::follow(committor.events(), &[(bundle.bundle, bundle.key)]);
        committor.retry(bundle.key).await?.finished().await?;
        progress.finish().await;
        let mismatches = commit::verify(&committor, bundle.changeset).await?.mismatches.len();
        Ok::<_, CommandError>((committor.bundle(bundle.key).await?, mismatches))
    };
    let done = commit::interruptible(&committor, &command.engine, work).await?;
    let Some((report, mismatches)) = done.transpose()? else { return Ok(Kind::Interrupted) };
    let landed = matches!(report.status, BundleStatus::Landed | BundleStatus::Staged);
    output::found(&[report], global.output)?;
    Ok(match landed {
        _ if mismatches > 0 => Kind::NotVerified,
        true => Kind::Success,
        false => Kind::Failed,
    })
}

/// Says which bundle it is, and what became of it.
pub fn say(bundle: &BundleReport) {
    let error = bundle.error.as_deref().unwrap_or_default();
    eprintln!("bundle {} of changeset {} failed: {error}", bundle.bundle, bundle.changeset);
}

impl Failed {
    /// The bundle that is meant: the one of this id that failed.
    pub async fn find(&self, global: &Global) -> Result<BundleReport, CommandError> {
        status::require_store(global)?;
        let filter = BundleFilter {
            account: None,
            bundle: Some(BundleId(self.id)),
            status: None,
            older_than: None,
            limit: MAX_FOUND,
        };
        let mut found = Store::open(global.store())?.find(filter).await?;
        found.retain(|bundle| self.changeset.is_none_or(|id| bundle.changeset == ChangesetId(id)));
        let named = self.changeset.map_or_else(String::new, |id| format!(" in changeset {id}"));
        let error = match found.iter().filter(|bundle| bundle.status == BundleStatus::Failed).count() {
            1 => {
                found.retain(|bundle| bundle.status == BundleStatus::Failed);
                return Ok(found.remove(0));
            }
            0 => match found.first() {
                None => format!("there is no bundle {}{named} in {}", self.id, global.store().display()),
                Some(bundle) => format!(
                    "bundle {} of changeset {} has not failed: it is {}",
                    self.id, bundle.changeset, bundle.status
                ),
            },
            _ => {
                let failed = found.iter().filter(|bundle| bundle.status == BundleStatus::Failed);
                let changesets: Vec<String> = failed.map(|bundle| bundle.changeset.to_string()).collect();
                let error =
                    format!("bundle {} failed in each of the changesets {}", self.id, changesets.join(", "));
                return Err(CommandError::new(Kind::Usage, error).hint("`--changeset ID` names one"));
            }
        };
        Err(CommandError::new(Kind::Usage, error)
            .hint("`committor status --status failed` lists those that failed"))
    }
}
