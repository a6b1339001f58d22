use std::fmt;

use solana_address::Address;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::{
    agave::Agave,
    builder::LocalnetBuilder,
    error::LocalnetError,
    node::{BIND_HOST, Node},
};

/// A running validator. It stops when dropped.
pub struct Localnet {
    running: Running,
    rpc_url: String,
    ws_url: String,
    payer: Keypair,
}

enum Running {
    Embedded(Node),
    Agave(Agave),
}

impl Localnet {
    /// Starts configuring a localnet.
    pub fn builder() -> LocalnetBuilder {
        LocalnetBuilder::default()
    }

    pub(crate) fn new(node: Node, rpc_port: u16, ws_port: u16, payer: Keypair) -> Self {
        Self::at(Running::Embedded(node), rpc_port, ws_port, payer)
    }

    pub(crate) fn on_agave(agave: Agave, payer: Keypair) -> Self {
        let rpc_port = agave.rpc_port;
        Self::at(Running::Agave(agave), rpc_port, rpc_port + 1, payer)
    }

    fn at(running: Running, rpc_port: u16, ws_port: u16, payer: Keypair) -> Self {
        Self {
            running,
            rpc_url: format!("http://{BIND_HOST}:{rpc_port}"),
            ws_url: format!("ws://{BIND_HOST}:{ws_port}"),
            payer,
        }
    }

    /// Where JSON-RPC is served, such as `http://127.0.0.1:8899`.
    pub fn rpc_url(&self) -> &str {
        &self.rpc_url
    }

    /// Where subscriptions are served, such as `ws://127.0.0.1:8900`.
    pub fn ws_url(&self) -> &str {
        &self.ws_url
    }

    /// A keypair that was given [`PAYER_LAMPORTS`](crate::PAYER_LAMPORTS).
    pub fn payer(&self) -> &Keypair {
        &self.payer
    }

    /// Adds `lamports` to the balance of `address`. When this returns, every RPC call at `confirmed` sees the new balance. On
    /// the embedded validator no transaction shows for it.
    ///
    /// # Errors
    /// [`LocalnetError::BalanceOverflow`] if the balance would exceed [`u64::MAX`].
    pub async fn airdrop(&self, address: Address, lamports: u64) -> Result<(), LocalnetError> {
        match &self.running {
            Running::Embedded(node) => node.credit(address, lamports).await,
            Running::Agave(agave) => agave.airdrop(address, lamports).await,
        }
    }

    /// Stops the localnet and waits until both of its ports are free. Dropping it stops it too, but does not wait.
    ///
    /// # Errors
    /// [`LocalnetError::TimedOut`] if a server is still busy after some seconds.
    pub async fn shutdown(self) -> Result<(), LocalnetError> {
        match self.running {
            Running::Embedded(node) => node.shutdown().await,
            // It has ended when it is dropped.
            Running::Agave(_) => Ok(()),
        }
    }
}

// The payer is a secret.
impl fmt::Debug for Localnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Localnet")
            .field("rpc_url", &self.rpc_url)
            .field("ws_url", &self.ws_url)
            .field("payer", &self.payer.pubkey())
            .finish_non_exhaustive()
    }
}
