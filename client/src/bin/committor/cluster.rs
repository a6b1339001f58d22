//! The cluster: one endpoint, or several of the same.

use std::collections::BTreeMap;

use committor_client::chain::{RpcChain, RpcSettings};

use crate::{
    args::Global,
    exit::{CommandError, Kind},
};

/// How to talk to the cluster. Of several endpoints, all that answer must serve the same one.
pub async fn settings(global: &Global) -> Result<RpcSettings, CommandError> {
    let settings = global.cluster()?;
    if settings.fallbacks.is_empty() {
        return Ok(settings);
    }
    let mut clusters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (endpoint, genesis) in RpcChain::genesis_hashes(&settings).await {
        match genesis {
            Ok(genesis) => {
                clusters.entry(genesis.to_string()).or_default().push(endpoint.host().to_owned());
            }
            Err(_) => {
                eprintln!("warning: {} does not answer; others are used until it does", endpoint.host())
            }
        }
    }
    match clusters.len() {
        0 => Err(CommandError::new(Kind::Cluster, "no endpoint of the cluster answers")
            .hint("`--url` names others; nothing was done")),
        1 => Ok(settings),
        _ => {
            let named = |(genesis, hosts): (&String, &Vec<String>)| {
                format!("{} of the cluster with the genesis {genesis}", hosts.join(", "))
            };
            let named: Vec<String> = clusters.iter().map(named).collect();
            let message = format!("the endpoints are not of one cluster: {}", named.join("; "));
            Err(CommandError::new(Kind::Usage, message)
                .hint("`--url`, or `urls` in the settings file, may name several endpoints of one cluster"))
        }
    }
}
