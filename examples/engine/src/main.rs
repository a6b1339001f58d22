//! A small engine: four players score points off chain, and the committor brings their accounts to Solana.
//!
//! `engine-example` starts a validator of its own; `engine-example URL KEYPAIR` plays on a cluster that has the programs,
//! such as that of `committor localnet`, and keeps `engine.db` there.

use std::{error::Error, sync::Arc, time::Duration};

use committor_client::{
    AccountCommit, BundleId, Changeset, ChangesetReport, CommitBundle, CommitMode, Committor, Event,
    chain::{Chain, RpcChain, RpcSettings, SignedTransaction},
    config,
    types::BundleStatus,
};
use committor_localnet::{Localnet, owner_program};
use committor_sdk::delegation;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast::{Receiver, error::RecvError};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;
const PLAYERS: u64 = 4;
const TICKS: u64 = 5;
/// In lamports: enough for an account that does not exist yet.
const PRIZE: u64 = 1_000_000;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = tempfile::tempdir()?;
    let (rpc, authority, store, localnet) = if let [url, keypair] = args.as_slice() {
        let rpc = RpcSettings::new(config::cluster_url(url)?);
        (rpc, config::KeypairSource::File(keypair.into()).read()?, "engine.db".into(), None)
    } else {
        let localnet = Localnet::builder().start().await?;
        let websocket_url = Some(localnet.ws_url().to_owned());
        let rpc = RpcSettings { websocket_url, ..RpcSettings::new(localnet.rpc_url()) };
        (rpc, localnet.payer().insecure_clone(), folder.path().join("engine.db"), Some(localnet))
    };
    let authority = Arc::new(authority);
    let players = delegate(&rpc, &authority).await?;

    // What an earlier run left unfinished goes on from here.
    let committor = Committor::builder().rpc(rpc).authority(authority.clone()).store(store).start().await?;
    let listener = tokio::spawn(listen(committor.events()));
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let played = tokio::select! {
        played = play(&committor, &players, authority.pubkey()) => played,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    // Nothing new starts; what is on its way may end. The rest is on disk, and the next start takes it up.
    let left = committor.shutdown(Duration::from_secs(10)).await?;
    println!("stopped, {left} bundles left");
    drop((committor, localnet));
    listener.await?;
    played
}

/// The game: the engine's own state is in memory, and each tick brings what changed to the chain.
async fn play(committor: &Committor, players: &[Address], payer: Address) -> Result<()> {
    let mut points = vec![0u64; players.len()];
    let commit = |player: usize, points: &[u64]| AccountCommit {
        account: players[player],
        state: points[player].to_le_bytes().as_slice().into(),
    };
    for tick in 1..=TICKS {
        for (player, points) in points.iter_mut().enumerate() {
            *points += tick * (player as u64 + 1);
        }
        // Two bundles: each lands as a whole or not at all, and neither waits for the other.
        let first = CommitBundle::new(BundleId(1), vec![commit(0, &points), commit(1, &points)]);
        let mut second = CommitBundle::new(BundleId(2), vec![commit(2, &points), commit(3, &points)]);
        if tick == TICKS {
            // An action takes effect together with the states: the winner is paid for exactly these points.
            second = second.action(transfer(&payer, &Keypair::new().pubkey(), PRIZE));
        }
        // When this returns, the tick is on disk; the game need not wait for the chain.
        let ticket = committor.commit(Changeset { bundles: vec![first, second] }).await?;
        println!("tick {tick} is changeset {}", ticket.changeset());
        if tick == TICKS {
            landed(&ticket.finished().await?)?;
        }
    }

    // Staged first, so that somebody can look at it, and applied later.
    points[0] += 100;
    let staged = CommitBundle::new(BundleId(1), vec![commit(0, &points)]).mode(CommitMode::Stage);
    let ticket = committor.commit(Changeset { bundles: vec![staged] }).await?;
    let Some(&(_, key)) = ticket.bundles().first() else { return Err("it was refused".into()) };
    let report = ticket.finished().await?;
    println!("changeset {} is {}", report.changeset, report.bundles[0].status);
    landed(&committor.finalize(key).await?.finished().await?)?;

    // The last states, and the accounts go back to their owner program.
    let last = (0..players.len()).map(|player| commit(player, &points)).collect();
    let last = CommitBundle::new(BundleId(1), last).mode(CommitMode::Undelegate);
    let report = committor.commit(Changeset { bundles: vec![last] }).await?.finished().await?;
    landed(&report)?;
    let equal = committor.verify(report.changeset).await?.equal.len();
    println!("{equal} accounts are back with their last states");
    Ok(())
}

/// A bundle that failed is in the report, not an error.
fn landed(report: &ChangesetReport) -> Result<()> {
    if let Some(bundle) = report.bundles.iter().find(|bundle| bundle.status != BundleStatus::Landed) {
        let error = bundle.error.as_deref().unwrap_or("not yet");
        return Err(format!("bundle {} of changeset {}: {error}", bundle.bundle, report.changeset).into());
    }
    println!("changeset {} landed", report.changeset);
    Ok(())
}

/// Shows what happens. Whoever falls too far behind is told how many events it missed; the store knows what they said.
async fn listen(mut events: Receiver<Event>) {
    loop {
        match events.recv().await {
            Ok(Event::Landed { signature, .. }) => println!("landed {signature}"),
            Ok(_) => (),
            Err(RecvError::Lagged(missed)) => println!("missed {missed} events"),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Has the example owner program create the players' accounts and delegate them, as their users would.
async fn delegate(rpc: &RpcSettings, authority: &Keypair) -> Result<Vec<Address>> {
    let (chain, payer) = (RpcChain::new(rpc.clone()), authority.pubkey());
    let players: Vec<Address> = (0..PLAYERS).map(|number| owner_program::account(&payer, number)).collect();
    for (number, header) in (0..PLAYERS).zip(chain.headers(&players).await?) {
        if header.is_some_and(|header| header.owner == delegation::ID) {
            continue; // An earlier run that was stopped left it delegated.
        }
        let instructions =
            [owner_program::create(&payer, number, 8), owner_program::delegate(&payer, number, &payer)];
        let recent = chain.recent_blockhash().await?;
        let message = v0::Message::try_compile(&payer, &instructions, &[], recent.blockhash)?;
        let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), &[authority])?;
        let last_valid_block_height = recent.last_valid_block_height;
        chain.land(SignedTransaction { transaction, last_valid_block_height, preflight: true }).await?;
    }
    chain.shutdown().await;
    Ok(players)
}
