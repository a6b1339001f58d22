//! Where people look things up.

use crate::args::Global;

/// A page about an address, if the cluster is one that the explorer knows.
pub fn explorer(global: &Global, address: &impl std::fmt::Display) -> Option<String> {
    let url = global.cluster().ok()?.url;
    let cluster = match url.trim_end_matches('/') {
        "https://api.mainnet-beta.solana.com" => "",
        "https://api.testnet.solana.com" => "?cluster=testnet",
        "https://api.devnet.solana.com" => "?cluster=devnet",
        _ => return None,
    };
    Some(format!("https://explorer.solana.com/address/{address}{cluster}"))
}
