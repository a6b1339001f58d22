//! Listening.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Counts, Fault, Rule, http::serve, recorded::Recorded, rule::Rules, upstream::Upstream, websocket::pass_on,
};

/// Why a proxy could not be started.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// No port could be listened on.
    #[error("could not listen")]
    Listen(#[from] std::io::Error),
    /// There can't be an HTTP client.
    #[error("could not make an HTTP client")]
    Http(#[from] reqwest::Error),
}

/// A proxy in front of a node. Dropping it breaks every connection off.
pub struct FaultProxy {
    shared: Arc<Shared>,
    rpc_url: String,
    ws_url: String,
}

/// What the connections share.
pub(crate) struct Shared {
    pub(crate) upstream: Upstream,
    rules: Mutex<Rules>,
    counts: watch::Sender<Counts>,
    recorded: Mutex<Recorded>,
    /// A transaction that waits for the next one to be sent before it.
    held: Mutex<Option<Bytes>>,
    tasks: TaskTracker,
    cancelled: CancellationToken,
}

impl FaultProxy {
    /// Listens on two free ports of 127.0.0.1 and passes everything on.
    ///
    /// # Errors
    /// [`ProxyError`] if it can't listen.
    pub async fn start(
        rpc_url: impl Into<String>,
        ws_url: impl Into<String>,
        seed: u64,
    ) -> Result<Self, ProxyError> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let upstream = Upstream { http, rpc_url: rpc_url.into(), ws_url: ws_url.into() };
        let shared = Arc::new(Shared {
            upstream,
            rules: Mutex::new(Rules::new(seed)),
            counts: watch::Sender::default(),
            recorded: Mutex::default(),
            held: Mutex::default(),
            tasks: TaskTracker::new(),
            cancelled: CancellationToken::new(),
        });
        let http = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let websocket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let rpc_url = format!("http://{}", http.local_addr()?);
        let ws_url = format!("ws://{}", websocket.local_addr()?);
        shared.spawn(listen_http(shared.clone(), http));
        shared.spawn(listen_websocket(shared.clone(), websocket));
        Ok(Self { shared, rpc_url, ws_url })
    }

    /// Where JSON-RPC is served.
    pub fn rpc_url(&self) -> &str {
        &self.rpc_url
    }

    /// Where subscriptions are served.
    pub fn ws_url(&self) -> &str {
        &self.ws_url
    }

    /// Adds a rule behind those that there are.
    pub fn add(&self, rule: Rule) {
        lock(&self.shared.rules).add(rule);
    }

    /// Takes all rules away: from here on, everything is passed on.
    pub fn clear(&self) {
        lock(&self.shared.rules).clear();
    }

    /// What was asked and done so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts.borrow().clone()
    }

    /// Waits until enough was asked and done.
    pub async fn until(&self, enough: impl FnMut(&Counts) -> bool) {
        // The sender lives as long as this value.
        let _ = self.shared.counts.subscribe().wait_for(enough).await;
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.shared.cancelled.cancel();
    }
}

impl Shared {
    pub(crate) fn count_bytes(&self, bytes: u64) {
        self.counts.send_modify(|counts| counts.bytes += bytes);
    }

    /// Counts a call, and says what goes wrong with it.
    pub(crate) fn fault(&self, method: &str) -> Option<Fault> {
        let fault = lock(&self.rules).next(method);
        self.counts.send_modify(|counts| {
            *counts.calls.entry(method.to_owned()).or_default() += 1;
            if let Some(fault) = &fault {
                *counts.faults.entry((method.to_owned(), fault.name())).or_default() += 1;
            }
        });
        fault
    }

    pub(crate) fn recorded(&self) -> MutexGuard<'_, Recorded> {
        lock(&self.recorded)
    }

    /// The transaction that waits for another one, which is given up for it.
    pub(crate) fn swap_held(&self, transaction: Option<Bytes>) -> Option<Bytes> {
        std::mem::replace(&mut *lock(&self.held), transaction)
    }

    /// Runs something that ends with the proxy.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.cancelled.clone().run_until_cancelled_owned(task));
    }
}

async fn listen_http(shared: Arc<Shared>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let of_connection = shared.clone();
        let service = service_fn(move |request| serve(of_connection.clone(), request));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        shared.spawn(async move {
            // It ends with an error where that is the fault.
            let _ = connection.await;
        });
    }
}

async fn listen_websocket(shared: Arc<Shared>, listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        shared.spawn(pass_on(shared.clone(), stream));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
