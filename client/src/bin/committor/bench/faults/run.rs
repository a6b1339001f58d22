//! One seed, from its first commit to the verdict.

use std::{path::Path, sync::Arc, time::Duration};

use committor_client::{
    Committor, EngineError, EngineSettings, Event, Store,
    chain::{Chain, RpcChain, RpcSettings},
};
use committor_localnet::Localnet;
use rand::Rng;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::{
    SLOT_TIME,
    history::History,
    schedule::{MAX_DELAY, Way},
    verdict::{Verdict, told},
    work::Work,
};
use crate::exit::{CommandError, Kind};

/// After so long a seed counts as one that never ends. The slowest take half a minute alone, and several times that beside others
/// on a machine that has other work.
const LIMIT: Duration = Duration::from_secs(600);
/// How often an engine is started on a node that is out of reach: more often than the longest outage has requests.
const STARTS: u32 = 60;
/// How often what is staged is finalized, if that fails.
const FINALIZATIONS: u32 = 5;

/// What a seed came to.
pub struct Outcome {
    pub verdict: Verdict,
    pub retries: u64,
    pub faults: u64,
    /// Buffers that the engine could not close.
    pub buffers_left: u64,
    pub resumed: bool,
    pub expired: u64,
}

/// The engines of a seed, one after the other.
struct Engines<'a> {
    work: &'a Work,
    rpc: RpcSettings,
    store: &'a Path,
    /// Events until the running engine is stopped.
    stop_after: Option<u32>,
    retries: u64,
    expired: u64,
    resumed: bool,
}

pub async fn run(localnet: &Localnet, mut work: Work) -> Result<Outcome, CommandError> {
    let other = |error| CommandError::new(Kind::Other, error);
    let folder = tempfile::tempdir().map_err(other)?;
    let store = folder.path().join("faults.db");
    let way = Way::draw(work.seed, &mut work.random, localnet).await?;
    let (rpc, stop_after) = (way.settings.clone(), work.stop_after);
    let mut engines =
        Engines { work: &work, rpc, store: &store, stop_after, retries: 0, expired: 0, resumed: false };
    let problem = match tokio::time::timeout(LIMIT, engines.work()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("it has not ended after {} s", LIMIT.as_secs())),
    };
    let (retries, expired, resumed) = (engines.retries, engines.expired, engines.resumed);
    // Past the proxies, and not before all that they keep has been sent.
    let chain = Arc::new(RpcChain::new(RpcSettings {
        websocket_url: Some(localnet.ws_url().to_owned()),
        ..RpcSettings::new(localnet.rpc_url())
    }));
    let cluster = |error| CommandError::new(Kind::Cluster, error);
    let kept = MAX_DELAY.as_millis() / SLOT_TIME.as_millis() + 2;
    let until = chain.slot().await.map_err(cluster)? + kept as u64;
    chain.wait_for_slot(until, LIMIT).await.map_err(cluster)?;
    let history = History::read(&chain, &work).await?;
    chain.shutdown().await;
    let told = told(&Store::open(&store)?).await?;
    let mut verdict = Verdict::new(&work, &told, &history);
    verdict.problems.extend(problem);
    let (faults, buffers_left) = (way.faults(), history.buffers as u64);
    Ok(Outcome { verdict, retries, expired, faults, buffers_left, resumed })
}

impl Engines<'_> {
    /// Lands the changesets, one after the other, and finalizes what each has staged.
    async fn work(&mut self) -> Result<(), CommandError> {
        let mut engine = self.start().await?;
        for changeset in &self.work.changesets {
            engine.commit(changeset.clone()).await?;
            engine = self.idle(engine).await?;
            for _ in 0..FINALIZATIONS {
                let staged = engine.store().staged().await?;
                if staged.is_empty() {
                    break;
                }
                for bundle in staged {
                    engine.finalize(bundle.key).await?;
                }
                engine = self.idle(engine).await?;
            }
        }
        self.stop(engine, Duration::ZERO).await
    }

    /// Starts an engine, and again if the node is out of reach then, as whoever runs one does.
    async fn start(&self) -> Result<Committor, EngineError> {
        let mut left = STARTS;
        loop {
            left -= 1;
            match self.start_once().await {
                Err(error) if error.is_transient() && left > 0 => (),
                started => return started,
            }
        }
    }

    async fn start_once(&self) -> Result<Committor, EngineError> {
        let settings = EngineSettings {
            version: Some(self.work.version),
            share_transactions: self.work.share_transactions,
            first_retry_delay: Duration::from_millis(20),
            ..EngineSettings::default()
        };
        Committor::builder()
            .rpc(self.rpc.clone())
            .authority(self.work.authority.clone())
            .store(self.store)
            .settings(settings)
            .start()
            .await
    }

    /// Waits until nothing is left to do. If the engine is to be stopped before, it is, and another one goes on.
    async fn idle(&mut self, engine: Committor) -> Result<Committor, CommandError> {
        let Some(left) = &mut self.stop_after else {
            engine.idle().await;
            return Ok(engine);
        };
        let events = engine.events();
        tokio::select! {
            () = engine.idle() => return Ok(engine),
            () = count_down(events, left) => (),
        }
        self.stop_after = None;
        self.resumed = true;
        let within = self.work.random.clone().random_range(0..200);
        self.stop(engine, Duration::from_millis(within)).await?;
        let engine = self.start().await?;
        engine.idle().await;
        Ok(engine)
    }

    async fn stop(&mut self, engine: Committor, within: Duration) -> Result<(), CommandError> {
        engine.shutdown(within).await?;
        let stats = engine.chain().stats();
        self.retries += stats.retries.values().sum::<u64>() + stats.resent;
        self.expired += stats.expired;
        Ok(())
    }
}

/// Comes back after so many events.
async fn count_down(mut events: Receiver<Event>, left: &mut u32) {
    while *left > 0 {
        match events.recv().await {
            Ok(_) => *left -= 1,
            Err(RecvError::Lagged(_)) => (),
            Err(RecvError::Closed) => return,
        }
    }
}
