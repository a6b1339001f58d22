//! Starting, running side by side, and stopping.

mod common;

use std::{error::Error as _, io, net::TcpListener};

use committor_localnet::{Localnet, LocalnetError, Server};
use solana_address::Address;
use solana_signer::Signer;
use solana_system_interface::instruction as system;

use common::{client, legacy, send, start};

fn port(url: &str) -> u16 {
    url.rsplit(':').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn two_localnets_side_by_side_are_two_chains() {
    let (one, two) = tokio::join!(Localnet::builder().start(), Localnet::builder().start());
    let (one, two) = (one.unwrap(), two.unwrap());
    let (payer, address) = (one.payer(), Address::new_unique());

    let rpc = client(&one);
    let blockhash = rpc.get_latest_blockhash().await.unwrap();
    let transfer = system::transfer(&payer.pubkey(), &address, 1_000_000);
    send(&rpc, &legacy(payer, &[transfer], blockhash)).await;

    assert_eq!(rpc.get_balance(&address).await.unwrap(), 1_000_000);
    assert_eq!(client(&two).get_balance(&address).await.unwrap(), 0);

    one.shutdown().await.unwrap();
    client(&two).get_slot().await.unwrap();
}

#[tokio::test]
async fn a_busy_port_is_named() {
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port();

    let rpc = Localnet::builder().rpc_port(port).start().await.unwrap_err();
    assert!(
        matches!(rpc, LocalnetError::PortInUse { server: Server::Rpc, port: named, .. } if named == port)
    );
    assert_eq!(rpc.to_string(), format!("RPC port {port} is already in use"));
    let source = rpc.source().and_then(|source| source.downcast_ref::<io::Error>()).unwrap();
    assert_eq!(source.kind(), io::ErrorKind::AddrInUse);

    let websocket = Localnet::builder().ws_port(port).start().await.unwrap_err();
    assert_eq!(websocket.to_string(), format!("websocket port {port} is already in use"));
}

#[tokio::test]
async fn a_running_localnet_keeps_its_ports_and_a_stopped_one_frees_them() {
    let (localnet, rpc) = start(Localnet::builder()).await;
    let (rpc_port, ws_port) = (port(localnet.rpc_url()), port(localnet.ws_url()));
    // The client keeps its connection open, which must not keep the server running.
    rpc.get_slot().await.unwrap();

    let taken = Localnet::builder().rpc_port(rpc_port).start().await.unwrap_err();
    assert!(matches!(taken, LocalnetError::PortInUse { .. }), "{taken:?}");

    localnet.shutdown().await.unwrap();
    assert!(rpc.get_slot().await.is_err());

    let again = Localnet::builder().rpc_port(rpc_port).ws_port(ws_port).start().await.unwrap();
    assert_eq!((port(again.rpc_url()), port(again.ws_url())), (rpc_port, ws_port));
    client(&again).get_slot().await.unwrap();
}

#[tokio::test]
async fn one_port_cannot_serve_both() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = Localnet::builder().rpc_port(free).ws_port(free).start().await.unwrap_err();
    assert!(matches!(error, LocalnetError::SamePort { port } if port == free), "{error:?}");
}
