//! The command line.

use anchor_client::Cluster;
use anyhow::{Context, Result, anyhow};

pub struct Options {
    pub cluster: Cluster,
    /// Path of the keypair file.
    pub keypair: String,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let (mut url, mut websocket, mut keypair) = (None, None, None);
        while let Some(name) = arguments.next() {
            let option = match name.as_str() {
                "--url" => &mut url,
                "--ws" => &mut websocket,
                "--keypair" => &mut keypair,
                _ => return Err(anyhow!("unknown argument `{name}`: it takes --url, --ws and --keypair")),
            };
            *option = Some(arguments.next().with_context(|| format!("`{name}` needs a value"))?);
        }
        let url = url.context("`--url URL` is missing")?;
        let cluster = match websocket {
            Some(websocket) => Cluster::Custom(url, websocket),
            // Also takes the names localnet, devnet, testnet and mainnet. The websocket is on the next port.
            None => url.parse().with_context(|| format!("`{url}` is no cluster"))?,
        };
        Ok(Self { cluster, keypair: keypair.context("`--keypair FILE` is missing")? })
    }
}
