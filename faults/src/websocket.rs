//! Subscriptions over a websocket.

use std::sync::Arc;

use futures::{Sink, SinkExt, Stream, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::{
    accept_async, connect_async,
    tungstenite::{Error, Message},
};

use crate::{Fault, WEBSOCKET, proxy::Shared};

/// Passes messages on in both directions until either side goes away, or a fault breaks both off.
pub(crate) async fn pass_on(shared: Arc<Shared>, stream: TcpStream) {
    if shared.fault(WEBSOCKET).is_some() {
        return;
    }
    let Ok(client) = accept_async(stream).await else { return };
    let Ok((node, _)) = connect_async(shared.upstream.ws_url.as_str()).await else { return };
    let (to_client, from_client) = client.split();
    let (to_node, from_node) = node.split();
    tokio::select! {
        () = pump(&shared, from_client, to_node) => (),
        () = pump(&shared, from_node, to_client) => (),
    }
}

async fn pump(
    shared: &Shared,
    mut from: impl Stream<Item = Result<Message, Error>> + Unpin,
    mut to: impl Sink<Message, Error = Error> + Unpin,
) {
    while let Some(Ok(message)) = from.next().await {
        let text = message.to_text().unwrap_or_default();
        let content: Value = serde_json::from_str(text).unwrap_or_default();
        // Answers have no method, and are left alone.
        let fault = content["method"].as_str().and_then(|method| shared.fault(method));
        match fault {
            None => (),
            Some(Fault::Hang) => continue,
            Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
            Some(_) => return,
        }
        if to.send(message).await.is_err() {
            return;
        }
    }
}
