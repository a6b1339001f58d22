//! Notifications of signatures, over one websocket for all.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use solana_commitment_config::CommitmentConfig;
use solana_pubsub_client::nonblocking::pubsub_client::PubsubClient;
use solana_rpc_client_api::{
    config::RpcSignatureSubscribeConfig,
    response::{Response, RpcSignatureResult},
};
use solana_signature::Signature;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, timeout},
};
use tokio_util::task::TaskTracker;

use super::{RetrySettings, RpcSettings, settings::host};

/// How long connecting and subscribing may take; after that the poller does the work.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What the websocket says about a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notification {
    /// It is in a block, at the commitment asked for, which this slot has seen.
    Landed { slot: u64 },
    /// The node saw an error.
    Failed,
}

/// A connection that is made when it is needed and again after it broke.
pub(super) struct Websocket {
    /// Where to connect, the preferred service first.
    urls: Vec<String>,
    commitment: CommitmentConfig,
    connection: Mutex<Connection>,
    /// How long to leave services alone that could not be reached.
    retry: RetrySettings,
    /// Who waits for the tasks that listen.
    tasks: TaskTracker,
}

/// The connection, if there is one.
struct Connection {
    open: Option<Arc<PubsubClient>>,
    /// Failures since the last subscription that worked.
    failures: u32,
    /// None is made before.
    ready_at: Instant,
}

impl Connection {
    fn failed(&mut self, retry: &RetrySettings) {
        self.open = None;
        self.failures = self.failures.saturating_add(1);
        self.ready_at = Instant::now() + retry.delay(self.failures);
    }
}

/// A subscription to one signature. Dropping it unsubscribes.
pub(super) struct Subscription {
    notification: oneshot::Receiver<Notification>,
    /// Its end tells the task that nobody listens any more.
    _listening: mpsc::Sender<()>,
}

impl Subscription {
    /// The notification; `None` if the connection broke before there was one.
    pub(super) async fn next(self) -> Option<Notification> {
        self.notification.await.ok()
    }
}

impl Websocket {
    pub(super) fn new(settings: &RpcSettings, tasks: TaskTracker) -> Self {
        Self {
            urls: settings.endpoints().into_iter().filter_map(|endpoint| endpoint.websocket_url).collect(),
            commitment: settings.commitment,
            connection: Mutex::new(Connection { open: None, failures: 0, ready_at: Instant::now() }),
            retry: settings.retry,
            tasks,
        }
    }

    /// Subscribes to a signature; `None` if that can't be done now.
    pub(super) async fn subscribe(&self, signature: Signature) -> Option<Subscription> {
        let client = self.connected().await?;
        let (ready, subscribed) = oneshot::channel();
        let (sender, notification) = oneshot::channel();
        let (listening, gone) = mpsc::channel(1);
        let config = RpcSignatureSubscribeConfig {
            commitment: Some(self.commitment),
            enable_received_notification: Some(false),
        };
        // The stream borrows the connection, so a task of its own holds both. It ends with the subscription.
        self.tasks.spawn(listen(client.clone(), signature, config, ready, sender, gone));
        let subscribed = timeout(CONNECT_TIMEOUT, subscribed).await;
        let subscribed = subscribed.is_ok_and(|subscribed| subscribed.is_ok());
        let mut connection = self.connection.lock().await;
        // Another one may have found out before, and made a new connection.
        if connection.open.as_ref().is_some_and(|open| Arc::ptr_eq(open, &client)) {
            if subscribed {
                connection.failures = 0;
            } else {
                connection.failed(&self.retry);
            }
        }
        subscribed.then_some(Subscription { notification, _listening: listening })
    }

    async fn connected(&self) -> Option<Arc<PubsubClient>> {
        if self.urls.is_empty() {
            return None;
        }
        let mut connection = self.connection.lock().await;
        if connection.open.is_some() || Instant::now() < connection.ready_at {
            return connection.open.clone();
        }
        for url in &self.urls {
            if let Ok(Ok(client)) = timeout(CONNECT_TIMEOUT, PubsubClient::new(url)).await {
                let client = Arc::new(client);
                connection.open = Some(client.clone());
                return Some(client);
            }
            tracing::debug!(endpoint = host(url), "no websocket");
        }
        connection.failed(&self.retry);
        None
    }
}

type Notifications<'a> = BoxStream<'a, Response<RpcSignatureResult>>;
type Unsubscribe = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

async fn listen(
    client: Arc<PubsubClient>,
    signature: Signature,
    config: RpcSignatureSubscribeConfig,
    ready: oneshot::Sender<()>,
    sender: oneshot::Sender<Notification>,
    mut gone: mpsc::Receiver<()>,
) {
    let subscribed = client.signature_subscribe(&signature, Some(config)).await;
    let Ok((mut notifications, unsubscribe)): Result<(Notifications, Unsubscribe), _> = subscribed else {
        return;
    };
    // Whoever asked may have gone already.
    let _ = ready.send(());
    let notification = tokio::select! {
        notification = first(&mut notifications) => notification,
        _ = gone.recv() => None,
    };
    if let Some(notification) = notification {
        let _ = sender.send(notification);
    }
    unsubscribe().await;
}

async fn first(notifications: &mut Notifications<'_>) -> Option<Notification> {
    loop {
        let Response { context, value } = notifications.next().await?;
        match value {
            RpcSignatureResult::ProcessedSignature(result) if result.err.is_some() => {
                return Some(Notification::Failed);
            }
            RpcSignatureResult::ProcessedSignature(_) => {
                return Some(Notification::Landed { slot: context.slot });
            }
            RpcSignatureResult::ReceivedSignature(_) => (),
        }
    }
}
