//! Every call to the chain fails, or is the last one of the process: the end is the same.

use std::{sync::atomic::Ordering, time::Duration};

use futures::{StreamExt, stream};

use crate::world::{Fault, World};
use committor_localnet::Validator;

/// How many points an undisturbed run passes.
async fn undisturbed_points() -> usize {
    let world = World::new(Validator::Embedded).await;
    let (committor, points, _) = world.committor(Fault::None, usize::MAX).await;
    committor.commit(world.changeset()).await.unwrap().finished().await.unwrap();
    world.finalize_all(&committor).await;
    committor.shutdown(Duration::ZERO).await.unwrap();
    world.check("undisturbed").await;
    points.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail_anywhere_and_for_however_long_change_nothing_about_the_end() {
    let points = undisturbed_points().await;
    let run = |at| async move {
        // 7 failures are more than the attempts that a bundle has: an outage is waited out.
        for count in [1, 7] {
            let world = World::new(Validator::Embedded).await;
            let (committor, ..) = world.committor(Fault::Fail(count), at).await;
            committor.commit(world.changeset()).await.unwrap().finished().await.unwrap();
            world.finalize_all(&committor).await;
            committor.shutdown(Duration::ZERO).await.unwrap();
            world.check(&format!("{count} failures from point {at} of {points}")).await;
        }
    };
    stream::iter(0..points).for_each_concurrent(8, run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_dies_anywhere_comes_to_the_same_end_after_a_restart() {
    let points = undisturbed_points().await;
    let run = |at| async move {
        let world = World::new(Validator::Embedded).await;
        let (committor, _, reached) = world.committor(Fault::Die, at).await;
        let ticket = committor.commit(world.changeset()).await.unwrap();
        // How many calls a run makes varies a little: the last points may not be reached.
        let run = async {
            ticket.finished().await.unwrap();
            world.finalize_all(&committor).await;
        };
        tokio::select! {
            () = reached.notified() => (),
            () = run => (),
        }
        committor.shutdown(Duration::ZERO).await.unwrap();
        drop(committor);
        let (committor, ..) = world.committor(Fault::None, usize::MAX).await;
        committor.idle().await;
        world.finalize_all(&committor).await;
        committor.shutdown(Duration::ZERO).await.unwrap();
        world.check(&format!("death at point {at} of {points}")).await;
    };
    stream::iter(0..points).for_each_concurrent(8, run).await;
}
