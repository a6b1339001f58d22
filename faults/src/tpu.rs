//! A leader's TPU in front of a node that has none: Solana's own QUIC server, which loses some of what it takes if it is to.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    num::NonZeroUsize,
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use quinn::Endpoint;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;
use solana_keypair::Keypair;
use solana_perf::packet::PacketBatch;
use solana_streamer::{
    nonblocking::swqos::SwQosConfig,
    quic::{QuicStreamerConfig, SpawnServerResult, spawn_stake_weighted_qos_server},
    streamer::StakedNodes,
};
use tokio_util::sync::CancellationToken;

use crate::{ProxyError, upstream::Upstream};

/// The longest transaction: of the v1 format.
const MAX_TRANSACTION_LEN: u32 = 4_096;
/// Connections that a sender may make, however short they are.
const CONNECTIONS_PER_MINUTE: u64 = 60_000;
/// Packets that wait to be passed on.
const QUEUED: usize = 4_096;
/// How often the end is looked for while nothing comes.
const LOOK: Duration = Duration::from_millis(100);

/// How a TPU behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TpuSettings {
    /// Connections that one sender may have; the server closes what is more.
    pub max_connections_per_peer: usize,
    /// The chance that a transaction is taken and lost, from 0 to 1.
    pub loss: f64,
    /// Where that chance begins.
    pub seed: u64,
    /// The port; 0 for a free one.
    pub port: u16,
}

impl Default for TpuSettings {
    fn default() -> Self {
        Self { max_connections_per_peer: 8, loss: 0.0, seed: 1, port: 0 }
    }
}

#[derive(Debug, Default)]
struct Counters {
    taken: AtomicU64,
    lost: AtomicU64,
}

/// A leader's TPU in front of a node. Dropping it ends it.
pub struct Tpu {
    address: SocketAddr,
    endpoints: Vec<Endpoint>,
    counters: Arc<Counters>,
    cancelled: CancellationToken,
    server: Option<std::thread::JoinHandle<()>>,
    passing: Option<std::thread::JoinHandle<()>>,
}

impl Tpu {
    /// Listens on 127.0.0.1 and passes every transaction on to the node at `rpc_url`.
    ///
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ProxyError`] if it can't listen.
    pub fn start(rpc_url: impl Into<String>, settings: TpuSettings) -> Result<Self, ProxyError> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let upstream = Upstream { http, rpc_url: rpc_url.into(), ws_url: String::new() };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, settings.port))?;
        let address = socket.local_addr()?;
        let (sender, receiver) = bounded(QUEUED);
        let cancelled = CancellationToken::new();
        let limits = QuicStreamerConfig {
            max_connections_per_ipaddr_per_min: CONNECTIONS_PER_MINUTE,
            num_threads: NonZeroUsize::MIN,
            stream_receive_window_size: MAX_TRANSACTION_LEN,
            max_stream_data_bytes: MAX_TRANSACTION_LEN,
            ..QuicStreamerConfig::default()
        };
        let fairness = SwQosConfig {
            max_connections_per_unstaked_peer: settings.max_connections_per_peer,
            ..SwQosConfig::default()
        };
        let server = spawn_stake_weighted_qos_server(
            "tpu",
            "tpu",
            [socket.into()],
            &Keypair::new(),
            sender,
            Arc::new(RwLock::new(StakedNodes::default())),
            limits,
            fairness,
            cancelled.clone(),
        );
        let SpawnServerResult { endpoints, thread, .. } =
            server.map_err(|error| std::io::Error::other(error.to_string()))?;
        let counters = Arc::new(Counters::default());
        let passing = {
            let (counters, cancelled) = (counters.clone(), cancelled.clone());
            let runtime = tokio::runtime::Handle::current();
            std::thread::spawn(move || pass(&receiver, &upstream, settings, &counters, &cancelled, &runtime))
        };
        Ok(Self { address, endpoints, counters, cancelled, server: Some(thread), passing: Some(passing) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        self.endpoints.iter().map(Endpoint::open_connections).sum()
    }

    /// Transactions that came whole.
    pub fn taken(&self) -> u64 {
        self.counters.taken.load(Ordering::SeqCst)
    }

    /// Transactions that came and were lost.
    pub fn lost(&self) -> u64 {
        self.counters.lost.load(Ordering::SeqCst)
    }

    /// Ends it, and waits until its port is free.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.cancelled.cancel();
        for thread in [self.server.take(), self.passing.take()].into_iter().flatten() {
            // If it panicked, it has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for Tpu {
    fn drop(&mut self) {
        self.cancelled.cancel();
    }
}

/// Passes packets on until the end.
fn pass(
    packets: &Receiver<PacketBatch>,
    upstream: &Upstream,
    settings: TpuSettings,
    counters: &Counters,
    cancelled: &CancellationToken,
    runtime: &tokio::runtime::Handle,
) {
    let mut chances = StdRng::seed_from_u64(settings.seed);
    while !cancelled.is_cancelled() {
        let batch = match packets.recv_timeout(LOOK) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for packet in &batch {
            let Some(bytes) = packet.data(..) else { continue };
            counters.taken.fetch_add(1, Ordering::SeqCst);
            if chances.random_bool(settings.loss) {
                counters.lost.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            let config = json!({ "encoding": "base64", "skipPreflight": true, "maxRetries": 0 });
            let params = json!([BASE64_STANDARD.encode(bytes), config]);
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "sendTransaction", "params": params });
            let (upstream, body) = (upstream.clone(), Bytes::from(body.to_string()));
            // A leader tells nobody what it thinks of a transaction.
            runtime.spawn(async move { upstream.ask(body).await });
        }
    }
}
