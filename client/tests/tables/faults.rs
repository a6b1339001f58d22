//! Calls to the chain that fail, lie or never come back.

use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use committor_client::engine::tables::{TableSettings, Tables};
use committor_localnet::Validator;
use futures::{StreamExt, stream};
use solana_signer::Signer;

use crate::{
    chain::{Fault, FaultyChain},
    world::{World, keys, named, until_ok},
};

/// Everything that a manager does, in order.
async fn life(tables: &Tables<FaultyChain>) {
    let reserve = async |name, range: std::ops::Range<u16>| {
        let serving = until_ok(async || tables.reserve(named(name), &keys(range.clone())).await).await;
        let served: BTreeSet<_> = serving.into_iter().flat_map(|table| table.addresses).collect();
        assert!(keys(range).iter().all(|key| served.contains(key)));
    };
    reserve("a", 0..40).await;
    reserve("b", 30..45).await;
    for name in ["a", "b"] {
        until_ok(async || tables.release(named(name)).await).await;
    }
    until_ok(async || tables.close_unused().await).await;
    until_ok(async || tables.closed().await).await;
}

/// The slot is asked for rarely while a cool-down is waited for: each time is a point to fail at.
fn rarely() -> TableSettings {
    TableSettings { slot_poll_interval: Duration::from_millis(400), ..TableSettings::default() }
}

/// How many points an undisturbed run passes.
async fn undisturbed_points() -> usize {
    let world = World::new(Validator::Embedded).await;
    let (tables, chain) = world.faulty(Fault::None, usize::MAX, rarely());
    life(&tables).await;
    world.check_all_closed("undisturbed").await;
    chain.points.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail_anywhere_strand_nothing() {
    let points = undisturbed_points().await;
    let worlds = World::many(points).await;
    let run = |(at, world): (usize, World)| async move {
        let (tables, _) = world.faulty(Fault::Fail(1 + at % 3), at, rarely());
        life(&tables).await;
        world.check_all_closed(&format!("failures from point {at} of {points}")).await;
    };
    stream::iter(worlds.into_iter().enumerate()).for_each_concurrent(24, run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_that_dies_anywhere_strands_nothing() {
    let points = undisturbed_points().await;
    let worlds = World::many(points).await;
    let run = |(at, world): (usize, World)| async move {
        let (tables, chain) = world.faulty(Fault::Die, at, rarely());
        // How many calls a run makes varies a little: the last points may not be reached.
        tokio::select! {
            () = chain.reached.notified() => (),
            () = life(&tables) => (),
        }
        drop((tables, chain));
        let (tables, _) = world.faulty(Fault::None, usize::MAX, rarely());
        life(&tables).await;
        world.check_all_closed(&format!("death at point {at} of {points}")).await;
        let store = world.store();
        let open = store.open_table_transactions(world.authority.pubkey()).await.unwrap();
        assert_eq!(open, [], "death at point {at}: what became of every transaction is known");
    };
    stream::iter(worlds.into_iter().enumerate()).for_each_concurrent(24, run).await;
}
