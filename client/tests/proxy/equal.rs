//! The same error, logs, units, return data, fee and accounts as Agave's own runtime, for transactions of every strategy.

use std::collections::BTreeMap;

use committor_client::proxy::{Execution, Fallback, Proxy, ProxySettings};

use crate::{bank::Node, cases::cases};

/// What no node tells of a transaction that it would not take a fee for.
fn without_fee(execution: Execution, has_fee: bool) -> Execution {
    if has_fee { execution } else { Execution { fee_lamports: 0, loaded_data: 0, ..execution } }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_the_nodes_own_or_left_to_it() {
    let (accounts, cases) = cases();
    let node = Node::new(accounts);
    let proxy = Proxy::new(node.clone(), ProxySettings::default());
    let mut fallbacks = BTreeMap::new();
    let (mut succeeded, mut failed) = (0, 0);
    for (name, transaction) in cases {
        let transaction = node.with_blockhash(transaction);
        let here = async {
            proxy.view(std::slice::from_ref(&transaction)).await?.simulate(transaction.clone()).await
        };
        match here.await {
            Ok(here) => {
                let (there, has_fee) = node.simulate(&transaction);
                assert_eq!(without_fee(here.clone(), has_fee), there, "{name}");
                if here.outcome.is_ok() { succeeded += 1 } else { failed += 1 }
            }
            Err(fallback) => *fallbacks.entry(kind(&fallback)).or_insert(0) += 1,
        }
    }
    assert!(succeeded >= 150 && failed >= 50, "{succeeded} succeeded, {failed} failed, {fallbacks:?}");
    // All that is left to the node, and nothing else.
    let left: Vec<&str> = fallbacks.keys().copied().collect();
    assert_eq!(left, ["builtin", "durable nonce", "loaded data", "no program"], "{fallbacks:?}");
}

fn kind(fallback: &Fallback) -> &'static str {
    match fallback {
        Fallback::Builtin(_) => "builtin",
        Fallback::DurableNonce => "durable nonce",
        Fallback::LoadedData { .. } => "loaded data",
        Fallback::NoProgram(_) => "no program",
        other => panic!("{other}"),
    }
}
