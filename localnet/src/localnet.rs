use std::fmt;

use solana_address::Address;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::{
    builder::LocalnetBuilder,
    error::LocalnetError,
    node::{BIND_HOST, Node},
};

/// A running validator. It stops when dropped.
pub struct Localnet {
    node: Node,
    rpc_url: String,
    ws_url: String,
    payer: Keypair,
}

impl Localnet {
    /// Starts configuring a localnet.
    pub fn builder() -> LocalnetBuilder {
        LocalnetBuilder::default()
    }

    pub(crate) fn new(node: Node, rpc_port: u16, ws_port: u16, payer: Keypair) -> Self {
        Self {
            node,
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

    /// Adds `lamports` to the balance of `address`. No transaction shows for it; when this returns, every RPC call
    /// sees the new balance.
    ///
    /// # Errors
    /// [`LocalnetError::BalanceOverflow`] if the balance would exceed [`u64::MAX`].
    pub async fn airdrop(&self, address: Address, lamports: u64) -> Result<(), LocalnetError> {
        self.node.credit(address, lamports).await
    }

    /// Stops the localnet and waits until both of its ports are free. Dropping it stops it too, but does not wait.
    ///
    /// # Errors
    /// [`LocalnetError::TimedOut`] if a server is still busy after some seconds.
    pub async fn shutdown(self) -> Result<(), LocalnetError> {
        self.node.shutdown().await
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
