//! The whole path, on a validator in this process: delegate accounts, commit real states to them, read them back.

use std::{path::PathBuf, sync::Arc, time::Instant};

use committor_client::{
    AccountCommit, BundleId, Changeset, CommitBundle, Committor,
    chain::{Chain, RpcChain, RpcSettings, SignedTransaction},
};
use committor_localnet::{Localnet, owner_program};
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use crate::{
    args::{Demo, Global, Output, SendVia},
    commit,
    exit::{CommandError, Kind},
    input, localnet, output,
};

/// Accounts are created with at most this length; what is missing they grow by in their first commit.
const MAX_CREATED_LEN: usize = 9_000;

/// The states, by bundle: small ones together, large ones by themselves.
const BUNDLES: [&[&str]; 4] = [
    &[
        include_str!("../../../../assets/accounts/usdc_mint_82.json"),
        include_str!("../../../../assets/accounts/token_vault_165.json"),
    ],
    &[
        include_str!("../../../../assets/accounts/oracle_feed_248.json"),
        include_str!("../../../../assets/accounts/amm_config_800.json"),
    ],
    &[include_str!("../../../../assets/accounts/amm_state_10240.json")],
    &[include_str!("../../../../assets/accounts/phoenix_market_871520.json")],
];

pub async fn run(global: &Global, command: &Demo) -> Result<Kind, CommandError> {
    global.refuse("demo", &["--url", "--ws", "--config", "--keypair", "--fee-payer"])?;
    if command.engine.route.send_via == SendVia::Tpu {
        let message = "`demo` can't use --send-via tpu: its local validator has no leaders to send to";
        return Err(
            CommandError::new(Kind::Usage, message).hint("leave it out, or name a cluster to `commit`")
        );
    }
    let started = Instant::now();
    let store = store(global)?;
    let localnet = localnet::start(Localnet::builder()).await?;
    let authority = Arc::new(localnet.payer().insecure_clone());
    let rpc = RpcSettings {
        proxy: command.engine.proxy(global)?,
        websocket_url: Some(localnet.ws_url().to_owned()),
        ..RpcSettings::new(localnet.rpc_url())
    };
    eprintln!("a local validator listens on {}", localnet.rpc_url());

    let changeset = changeset(&authority.pubkey())?;
    delegate(&rpc, &changeset, &authority).await?;
    let committor = Committor::builder()
        .rpc(rpc)
        .authority(authority)
        .store(&store)
        .settings(command.engine.settings(global)?)
        .start()
        .await?;
    let (report, verification) = commit::land(&committor, changeset).await?;
    committor.shutdown(command.engine.shutdown_timeout()).await?;
    output::report(&report, global.output)?;
    let kind = commit::outcome(&report, &verification);
    if global.output == Output::Display && kind == Kind::Success {
        let equal = verification.equal.len();
        output::print(&format!("{equal} accounts verified: read back and equal in every byte.\n"))?;
        eprintln!(
            "done in {:.1} s; `committor status --store {}` shows the same",
            started.elapsed().as_secs_f64(),
            store.display()
        );
    }
    Ok(kind)
}

/// The store that was asked for, or a new one that stays: each demo is a cluster of its own, which no other store is for.
fn store(global: &Global) -> Result<PathBuf, CommandError> {
    if let Some(store) = &global.store {
        return Ok(store.clone());
    }
    let folder = tempfile::Builder::new().prefix("committor-demo-").tempdir();
    Ok(folder.map_err(|error| CommandError::new(Kind::Other, error))?.keep().join("committor.db"))
}

/// The changeset, for accounts that `payer` has in the example program, numbered in the order of the states.
fn changeset(payer: &Address) -> Result<Changeset, CommandError> {
    let mut number = 0;
    let mut bundles = Vec::new();
    for (dumps, id) in BUNDLES.iter().zip(1..) {
        let mut commits = Vec::new();
        for dump in *dumps {
            let dump = input::parse_dump(dump).map_err(|error| CommandError::new(Kind::Other, error))?;
            commits.push(AccountCommit {
                account: owner_program::account(payer, number),
                state: dump.state.into(),
            });
            number += 1;
        }
        bundles.push(CommitBundle::new(BundleId(id), commits));
    }
    Ok(Changeset { bundles })
}

/// Creates the accounts and delegates them, as their owner's users would.
async fn delegate(rpc: &RpcSettings, changeset: &Changeset, authority: &Keypair) -> Result<(), CommandError> {
    let cluster = |error| CommandError::new(Kind::Cluster, error);
    let chain = RpcChain::new(rpc.clone());
    let payer: Address = authority.pubkey();
    let commits = changeset.bundles.iter().flat_map(|bundle| &bundle.commits);
    for (commit, number) in commits.zip(0..) {
        let len = commit.state.len().min(MAX_CREATED_LEN) as u32;
        let instructions =
            [owner_program::create(&payer, number, len), owner_program::delegate(&payer, number, &payer)];
        let recent = chain.recent_blockhash().await.map_err(cluster)?;
        let message = v0::Message::try_compile(&payer, &instructions, &[], recent.blockhash)
            .map_err(|error| CommandError::new(Kind::Other, error))?;
        let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), &[authority])
            .map_err(|error| CommandError::new(Kind::Other, error))?;
        let last_valid_block_height = recent.last_valid_block_height;
        let signed = SignedTransaction { transaction, last_valid_block_height, preflight: true };
        chain.land(signed).await.map_err(cluster)?;
        eprintln!("delegated {} ({len} bytes)", commit.account);
    }
    chain.shutdown().await;
    Ok(())
}
