//! Sending straight to the leaders, over QUIC.
//!
//! What is sent this way is neither simulated nor acknowledged: that it landed shows by its status alone. The leaders are
//! those of the cluster's schedule, which the node tells; connections to the next ones are made ahead of time.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::{Stream, stream};
use solana_keypair::Keypair;
use solana_tpu_client_next::{
    Client, ClientBuilder, ConnectionWorkersSchedulerError, TransactionSender,
    connection_workers_scheduler::WorkersBroadcaster,
    leader_updater::LeaderUpdater,
    node_address_service::{LeaderTpuCacheServiceConfig, NodeAddressService, SlotEvent},
    transaction_batch::TransactionBatch,
    workers_cache::WorkersCache,
};
use tokio::{
    sync::{Mutex as AsyncMutex, OnceCell},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::{FaultKind, fault::Fault, node::Node};

/// How often the node is asked where the chain is. A leader has four slots.
const SLOT_INTERVAL: Duration = Duration::from_millis(400);
/// How often the addresses of the nodes are asked for.
const ADDRESSES_INTERVAL: Duration = Duration::from_secs(60);
/// Transactions that wait for a connection at most, each.
const QUEUED: usize = 16;
/// How long a busy connection is waited for: a leader's slot.
const PATIENCE: Duration = Duration::from_millis(400);
/// Leaders to which connections are kept.
const CACHED_LEADERS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// How transactions are sent to the leaders.
#[derive(Clone)]
pub struct TpuSettings {
    /// Connections to each leader. A leader takes a few of one sender only, and closes what is more.
    pub connections: NonZeroUsize,
    /// How many of the next leaders get each transaction, those of one node in a row counted once.
    pub fanout: NonZeroUsize,
    /// Whose stake connections are made with; without one, a leader serves them after all that have some.
    pub identity: Option<Arc<Keypair>>,
    /// Where to send to, whatever the schedule says; empty for the leaders.
    pub addresses: Vec<SocketAddr>,
    /// The address to send from.
    pub bind: IpAddr,
}

impl Default for TpuSettings {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::MIN,
            fanout: NonZeroUsize::MIN.saturating_add(1),
            identity: None,
            addresses: Vec::new(),
            bind: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        }
    }
}

// The identity is a secret.
impl std::fmt::Debug for TpuSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TpuSettings")
            .field("connections", &self.connections)
            .field("fanout", &self.fanout)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// The way to the leaders. Connects when it is used first.
pub(super) struct Tpu {
    settings: TpuSettings,
    node: Arc<Node>,
    pool: OnceCell<Pool>,
    cancelled: CancellationToken,
}

/// As many senders as there are connections to each leader, one after the other.
struct Pool {
    senders: Vec<TransactionSender>,
    clients: Mutex<Vec<Client>>,
    next: AtomicUsize,
}

impl Tpu {
    pub(super) fn new(settings: TpuSettings, node: Arc<Node>, cancelled: CancellationToken) -> Self {
        Self { settings, node, pool: OnceCell::new(), cancelled }
    }

    /// Hands a transaction to a connection. Waits while all of them are busy.
    pub(super) async fn send(&self, bytes: Vec<u8>) -> Result<(), Fault> {
        let pool = self.pool.get_or_try_init(|| self.start()).await?;
        let turn = pool.next.fetch_add(1, Ordering::Relaxed) % pool.senders.len();
        let sent = pool.senders[turn].send_transactions_in_batch(vec![bytes]).await;
        sent.map_err(|error| Fault::of(FaultKind::Connect, 1, error.to_string()))
    }

    /// Ends all connections.
    pub(super) async fn shutdown(&self) {
        let Some(pool) = self.pool.get() else { return };
        let clients = std::mem::take(&mut *pool.clients.lock().unwrap_or_else(PoisonError::into_inner));
        for client in clients {
            // Whatever it says, it has ended.
            let _ = client.shutdown().await;
        }
    }

    async fn start(&self) -> Result<Pool, Fault> {
        let failed = |error: String| Fault::of(FaultKind::Connect, 1, error);
        let leaders = if self.settings.addresses.is_empty() {
            let config = LeaderTpuCacheServiceConfig {
                // One more than transactions are sent to: connections are made ahead of time.
                lookahead_leaders: u8::try_from(self.settings.fanout.get() + 1).unwrap_or(u8::MAX),
                refresh_nodes_info_every: ADDRESSES_INTERVAL,
                // The schedule of an epoch does not change; without a node there is nothing to send for anyway.
                max_consecutive_failures: usize::MAX,
            };
            let slots = slots(self.node.clone());
            let cancelled = self.cancelled.child_token();
            let service =
                NodeAddressService::run(Arc::new(self.node.client()), slots, config, cancelled).await;
            Some(Arc::new(AsyncMutex::new(service.map_err(|error| failed(error.to_string()))?)))
        } else {
            None
        };
        let mut pool = Pool { senders: Vec::new(), clients: Mutex::default(), next: AtomicUsize::new(0) };
        for _ in 0..self.settings.connections.get() {
            let leaders: Box<dyn LeaderUpdater> = match &leaders {
                Some(service) => Box::new(Scheduled { service: service.clone(), last: Vec::new() }),
                None => Box::new(Fixed(self.settings.addresses.clone())),
            };
            let socket =
                UdpSocket::bind((self.settings.bind, 0)).map_err(|error| failed(error.to_string()))?;
            let builder = ClientBuilder::new(leaders)
                .bind_socket(socket)
                .leader_send_fanout(self.settings.fanout.get().max(self.settings.addresses.len()))
                .identity(self.settings.identity.as_deref())
                .max_cache_size(CACHED_LEADERS)
                .worker_channel_size(QUEUED)
                .sender_channel_size(QUEUED)
                .broadcaster(Patient)
                .cancel_token(self.cancelled.clone());
            let (sender, client) = builder.build().map_err(|error| failed(error.to_string()))?;
            pool.senders.push(sender);
            pool.clients.get_mut().unwrap_or_else(PoisonError::into_inner).push(client);
        }
        Ok(pool)
    }
}

/// Where the chain is, again and again.
fn slots(node: Arc<Node>) -> impl Stream<Item = SlotEvent> + Send + 'static {
    let mut ticks = interval(SLOT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    stream::unfold((node, ticks), |(node, mut ticks)| async move {
        loop {
            ticks.tick().await;
            // While the node does not tell, the last slot is as good as any.
            if let Ok(position) = node.position().await {
                return Some((SlotEvent::Start(position.slot), (node, ticks)));
            }
        }
    })
}

/// The same leaders for all connections.
struct Scheduled {
    service: Arc<AsyncMutex<NodeAddressService>>,
    last: Vec<SocketAddr>,
}

#[async_trait]
impl LeaderUpdater for Scheduled {
    fn next_leaders(&mut self, lookahead_leaders: usize) -> Vec<SocketAddr> {
        // Another connection asks at this very moment: what it was told last is at most that old.
        if let Ok(mut service) = self.service.try_lock() {
            self.last = service.next_leaders(lookahead_leaders);
        }
        self.last.clone()
    }

    async fn stop(&mut self) {
        self.service.lock().await.stop().await;
    }
}

/// Always the same addresses.
struct Fixed(Vec<SocketAddr>);

#[async_trait]
impl LeaderUpdater for Fixed {
    fn next_leaders(&mut self, _: usize) -> Vec<SocketAddr> {
        self.0.clone()
    }

    async fn stop(&mut self) {}
}

/// Waits for a connection that is busy, so that whoever sends waits too; but not for one that goes nowhere.
struct Patient;

#[async_trait]
impl WorkersBroadcaster for Patient {
    async fn send_to_workers(
        &self,
        workers: &mut WorkersCache,
        leaders: &[SocketAddr],
        batch: TransactionBatch,
    ) -> Result<(), ConnectionWorkersSchedulerError> {
        for leader in leaders {
            // A leader that went away is connected to again when something is to be sent, and what it did not get is sent
            // again like everything that does not land.
            let sent = workers.send_transactions_to_address(leader, batch.clone());
            let _ = tokio::time::timeout(PATIENCE, sent).await;
        }
        Ok(())
    }
}
