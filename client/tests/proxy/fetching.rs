//! What is fetched, when, and of which slot.

use std::sync::{Arc, atomic::Ordering};

use committor_client::proxy::{Fallback, Proxy, ProxySettings, View};
use committor_sdk::delegation;
use solana_transaction::versioned::VersionedTransaction;

use crate::{
    bank::{Node, deployed, programs},
    cases::cases,
};

/// A node, a proxy before it, and transactions by name.
struct World {
    node: Node,
    proxy: Proxy<Node>,
    cases: Vec<(String, VersionedTransaction)>,
}

impl World {
    fn new() -> Self {
        let (accounts, cases) = cases();
        let node = Node::new(accounts);
        // A slow machine does not make views old here.
        let settings = ProxySettings { max_age: std::time::Duration::MAX, ..ProxySettings::default() };
        Self { proxy: Proxy::new(node.clone(), settings), node, cases }
    }

    fn case(&self, name: &str) -> VersionedTransaction {
        let found = self.cases.iter().find(|(case, _)| case == name);
        self.node.with_blockhash(found.unwrap_or_else(|| panic!("no case {name}")).1.clone())
    }

    async fn view(&self, name: &str) -> Result<Arc<View>, Fallback> {
        self.proxy.view(&[self.case(name)]).await
    }

    fn calls(&self) -> u64 {
        self.node.calls.swap(0, Ordering::SeqCst)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_is_not_asked_for_again_and_what_is_not_there_is_known_too() {
    let world = World::new();
    for name in
        ["commit of 300 bytes, V1", "an account that is not there, V0", "create a buffer of 40 bytes, V1"]
    {
        let view = world.view(name).await.unwrap();
        assert!(world.calls() > 0, "{name}");
        let first = view.simulate(world.case(name)).await.unwrap();
        let again = world.view(name).await.unwrap();
        assert!(Arc::ptr_eq(&view, &again), "{name}");
        assert_eq!(again.simulate(world.case(name)).await.unwrap(), first, "{name}");
        assert_eq!(world.calls(), 0, "{name}");
    }
    assert_eq!(world.node.addresses_asked_twice(), []);
    assert_eq!(world.proxy.stats().views, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_rounds_are_enough_for_tables_and_programs() {
    let world = World::new();
    // The table, then what it holds and the program's code.
    world.view("commits with a lookup table").await.unwrap();
    assert_eq!(world.calls(), 2);
    // Both programs are named by the transaction itself.
    world.view("a bundle in one go of 300 bytes, V1").await.unwrap();
    assert!(world.calls() <= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_outlive_a_view() {
    let world = World::new();
    let name = "commit of 300 bytes, V1";
    let before = world.view(name).await.unwrap().simulate(world.case(name)).await.unwrap();
    world.node.asked.lock().unwrap().clear();
    // Something is known to have landed after that view.
    world.node.advance(&[]);
    world.node.floor.store(world.node.bank().slot(), Ordering::SeqCst);
    let later = world.view(name).await.unwrap();
    assert_eq!(later.slot(), world.node.bank().slot());
    let after = later.simulate(world.case(name)).await.unwrap();
    assert_eq!((after.compute_units, after.outcome), (before.compute_units, before.outcome));
    let asked = world.node.asked.lock().unwrap().clone();
    for (address, _) in programs() {
        assert!(!asked.contains(&address), "{address} was fetched whole again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_was_deployed_anew_is_fetched_anew() {
    let world = World::new();
    let name = "commit of 300 bytes, V1";
    world.view(name).await.unwrap().simulate(world.case(name)).await.unwrap();
    // From now on the delegation program is another one, which knows no such instruction.
    let slot = world.node.bank().slot();
    let [_, (code, account)] = deployed(delegation::ID, committor_localnet::programs::CHUNK_BUFFER, slot);
    world.node.advance(&[(code, account)]);
    world.node.floor.store(world.node.bank().slot(), Ordering::SeqCst);
    let later = world.view(name).await.unwrap();
    let after = later.simulate(world.case(name)).await.unwrap();
    assert!(after.outcome.is_err());
    assert_eq!(world.node.simulate(&world.case(name)).0.logs, after.logs);
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_different_moments_are_no_view() {
    let world = World::new();
    // Fetched again until they agree.
    world.node.torn.store(2, Ordering::SeqCst);
    let view = world.view("commit of 40 bytes, V1").await.unwrap();
    assert_eq!(view.slot(), world.node.bank().slot());
    assert_eq!(world.node.torn.load(Ordering::SeqCst), 0);
    // If they never do, the question is the node's.
    let world = World::new();
    world.node.torn.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(world.view("commit of 40 bytes, V1").await.err(), Some(Fallback::Moving));
    assert_eq!(world.proxy.stats().fallbacks, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_not_remembered() {
    let world = World::new();
    world.node.failing.store(1, Ordering::SeqCst);
    let failed = world.view("commit of 40 bytes, V1").await.err();
    assert!(matches!(failed, Some(Fallback::Unread(_))), "{failed:?}");
    assert!(world.view("commit of 40 bytes, V1").await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_see_what_those_before_them_did_and_the_view_does_not() {
    let world = World::new();
    let (name, next) = ("close of 40 bytes, V1", "write of 40 bytes, V1");
    let all = vec![world.case(next), world.case(name), world.case(next), world.case(name)];
    let view = world.proxy.view(&all).await.unwrap();
    let outcomes: Vec<bool> =
        view.simulate_in_order(all).await.unwrap().into_iter().map(|done| done.outcome.is_ok()).collect();
    // It ends with the first that fails: there is nothing left to write to.
    assert_eq!(outcomes, [true, true, false]);
    assert!(view.simulate(world.case(next)).await.unwrap().outcome.is_ok());
}
