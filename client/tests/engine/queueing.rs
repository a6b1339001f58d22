//! When bundles are worked on, and when not.

use std::time::Duration;

use committor_client::{EngineError, EngineSettings, Event, types::BundleStatus};

use crate::world::{World, settings};
use committor_localnet::{Validator, on_each_validator};

async fn bundles_without_a_common_account_are_on_their_way_at_once_but_no_more_than_allowed(
    validator: Validator,
) {
    let world = World::new(validator).await;
    let limited = EngineSettings { bundles_in_flight: 3, ..settings() };
    let (committor, gate) = world.gated(limited).await;
    let mut tickets = Vec::new();
    // The queue of the first account is long, and delays no other.
    for _ in 0..20 {
        tickets.push(committor.commit(world.one(1, 10)).await.unwrap());
    }
    for byte in 2..=5 {
        tickets.push(committor.commit(world.one(byte, 10)).await.unwrap());
    }
    gate.holds(3).await;
    gate.open();
    for ticket in tickets {
        assert_eq!(ticket.finished().await.unwrap().bundles[0].status, BundleStatus::Landed);
    }
    committor.shutdown(Duration::ZERO).await.unwrap();
}

async fn a_bundle_that_waits_gives_way_to_a_newer_one_if_that_is_wanted(validator: Validator) {
    let world = World::new(validator).await;
    for coalesce in [false, true] {
        let (committor, gate) = world.gated(EngineSettings { coalesce, ..settings() }).await;
        let mut events = committor.events();
        let first = committor.commit(world.one(1, 10)).await.unwrap();
        gate.holds(1).await;
        let second = committor.commit(world.one(1, 11)).await.unwrap();
        let third = committor.commit(world.one(1, 12)).await.unwrap();
        let keys = [second.bundles()[0].1, third.bundles()[0].1];
        gate.open();
        let mut statuses = Vec::new();
        for ticket in [first, second, third] {
            statuses.push(ticket.finished().await.unwrap().bundles[0].status);
        }
        let middle = if coalesce { BundleStatus::Superseded } else { BundleStatus::Landed };
        assert_eq!(statuses, [BundleStatus::Landed, middle, BundleStatus::Landed]);
        committor.shutdown(Duration::ZERO).await.unwrap();
        let told = std::iter::from_fn(|| events.try_recv().ok())
            .any(|event| event == Event::Superseded { bundle: keys[0], by: keys[1] });
        assert_eq!(told, coalesce);
        let superseded = committor.bundle(keys[0]).await.unwrap().superseded_by;
        assert_eq!(superseded, coalesce.then_some(keys[1]));
    }
}

async fn shutting_down_takes_nothing_new_and_waits_for_what_is_on_its_way_within_a_bound(
    validator: Validator,
) {
    let world = World::new(validator).await;
    let (committor, gate) = world.gated(settings()).await;
    let running = committor.commit(world.one(1, 10)).await.unwrap();
    let waiting = committor.commit(world.one(1, 11)).await.unwrap();
    gate.holds(1).await;
    assert_eq!(committor.shutdown(Duration::from_millis(20)).await.unwrap(), 2, "nothing could end");
    let late = committor.commit(world.one(2, 10)).await;
    assert!(matches!(late, Err(EngineError::ShuttingDown)));
    assert!(matches!(running.finished().await, Err(EngineError::ShuttingDown)));
    assert!(matches!(waiting.finished().await, Err(EngineError::ShuttingDown)));
    drop(committor);

    let (committor, gate) = world.gated(settings()).await;
    gate.holds(1).await;
    let (left, ()) = tokio::join!(committor.shutdown(Duration::from_secs(60)), async { gate.open() });
    assert_eq!(left.unwrap(), 1, "what was on its way has ended, what waited is parked");
    drop(committor);

    let committor = world.sound(settings()).await;
    committor.idle().await;
    assert_eq!(committor.shutdown(Duration::ZERO).await.unwrap(), 0);
    let report = world.store().report(None).await.unwrap();
    assert_eq!(report.bundles[0].status, BundleStatus::Landed);
}

on_each_validator!(
    bundles_without_a_common_account_are_on_their_way_at_once_but_no_more_than_allowed,
    a_bundle_that_waits_gives_way_to_a_newer_one_if_that_is_wanted,
    shutting_down_takes_nothing_new_and_waits_for_what_is_on_its_way_within_a_bound
);
