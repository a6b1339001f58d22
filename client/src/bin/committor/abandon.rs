use committor_client::Store;

use crate::{
    args::Global,
    exit::{CommandError, Kind},
    output,
    retry::{Failed, say},
};

/// Give a bundle that failed up for good
#[derive(Debug, clap::Args)]
pub struct Abandon {
    #[command(flatten)]
    failed: Failed,
}

pub async fn run(global: &Global, command: &Abandon) -> Result<Kind, CommandError> {
    let bundle = command.failed.find(global).await?;
    say(&bundle);
    eprintln!("abandon: it is never tried again; its accounts stay as they are on chain");
    let store = Store::open(global.store())?;
    store.abandon(bundle.key).await?;
    output::found(&[store.bundle_report(bundle.key).await?], global.output)?;
    Ok(Kind::Success)
}
