//! States that differ little from what the accounts hold travel as what changes.

use std::sync::Arc;

use committor_client::{CommitMode, types::TransactionVersion};
use futures::{StreamExt, stream};

use crate::{
    CELLS_IN_FLIGHT, TURN, Task,
    model::{Cell, Finalize, Way},
    world::World,
};

/// A bundle whose accounts change in a few places.
struct Change {
    len: usize,
    count: usize,
    /// How many ranges of how many bytes change.
    ranges: (usize, usize),
    version: TransactionVersion,
    mode: CommitMode,
    /// The way of all its accounts, and the transactions until they are applied or staged.
    expected: (&'static str, usize),
}

use CommitMode::{Finalize as FINALIZE, Stage as STAGE, Undelegate as UNDELEGATE};
use TransactionVersion::{V0, V1};

/// A patch takes four bytes, and eight for every range. What one transaction carries of it is in `docs/programs.md`: of an
/// upload, 749 bytes in v0 and 3,648 in v1 beside the buffer's creation, then 969 and 3,871.
const CHANGES: [Change; 19] = [
    // An order book of 10,240 bytes in which 200 change.
    change(10_240, 1, (1, 200), V1, FINALIZE, "inline-patch-v1", 1),
    change(10_240, 1, (1, 200), V0, FINALIZE, "inline-patch-v0", 1),
    change(10_240, 1, (10, 20), V1, FINALIZE, "inline-patch-v1", 1),
    change(10_240, 1, (10, 20), V0, FINALIZE, "inline-patch-v0", 1),
    change(10_240, 1, (1, 200), V1, UNDELEGATE, "inline-patch-v1", 1),
    change(10_240, 1, (1, 200), V0, UNDELEGATE, "inline-patch-v0", 1),
    // The buffer is made, written and sealed in the staging transaction.
    change(10_240, 1, (1, 200), V1, STAGE, "buffer-patch-v1", 1),
    change(10_240, 1, (1, 200), V0, STAGE, "buffer-patch-v0", 1),
    // Three patches of 212 bytes fit even v0, and twelve v1.
    change(10_240, 3, (1, 200), V0, FINALIZE, "inline-patch-v0", 1),
    change(10_240, 12, (1, 200), V1, FINALIZE, "inline-patch-v1", 1),
    // 5,044 bytes of patch.
    change(65_536, 1, (5, 1_000), V1, FINALIZE, "buffer-patch-v1", 2 + 1),
    change(65_536, 1, (5, 1_000), V0, FINALIZE, "buffer-patch-v0", 7 + 1),
    change(65_536, 1, (5, 1_000), V1, STAGE, "buffer-patch-v1", 2 + 1),
    change(65_536, 1, (5, 1_000), V0, STAGE, "buffer-patch-v0", 7 + 1),
    // 40,012 bytes of patch each: few ranges, but so long that there could be many.
    change(131_072, 8, (1, 40_000), V1, STAGE, "buffer-patch-v1", 8 * 11 + 1),
    // A long state is handed back from a buffer that holds all of it.
    change(65_536, 1, (5, 1_000), V1, UNDELEGATE, "buffer-v1", 18 + 1),
    change(65_536, 1, (1, 300), V1, UNDELEGATE, "buffer-v1", 18 + 1),
    change(1 << 20, 2, (1, 300), V0, FINALIZE, "inline-patch-v0", 1),
    change(1 << 20, 3, (1, 1_000), V1, FINALIZE, "inline-patch-v1", 1),
];

const fn change(
    len: usize,
    count: usize,
    ranges: (usize, usize),
    version: TransactionVersion,
    mode: CommitMode,
    strategy: &'static str,
    transactions: usize,
) -> Change {
    Change { len, count, ranges, version, mode, expected: (strategy, transactions) }
}

impl Change {
    fn task(self, number: usize) -> (Task, Self) {
        let Self { len, count, ranges: (ranges, bytes), version, mode, .. } = self;
        let cell = Cell { len, old_len: len, count, version, mode, own_payer: false };
        let mut task = Task::new(number, cell);
        for (old, new) in task.old.iter().zip(&mut task.new) {
            let mut changed = old.clone();
            for range in 0..ranges {
                let start = range * (len / ranges) + 11;
                changed[start..start + bytes].iter_mut().for_each(|byte| *byte = !*byte);
            }
            *new = Arc::from(changed);
        }
        (task, self)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_changes_of_long_states() {
    let tasks: Vec<(Task, Change)> =
        CHANGES.into_iter().enumerate().map(|(number, change)| change.task(number)).collect();
    let _turn = TURN.lock().await;
    let world = World::new(tasks.iter().map(|(task, _)| task.genesis())).await;
    let checks = stream::iter(&tasks).map(async |(task, change)| {
        let (strategy, transactions) = change.expected;
        let finalize = (change.mode == STAGE).then_some(Finalize { tables: false, transactions: 1 });
        let way = Way { buffers: 0, tables: false, transactions, finalize };
        let strategies = vec![strategy.to_owned(); change.count];
        let check = task.lands(&world, world.desk_that_lands(&task.cell), &way, strategies).await;
        check.map_err(|error| format!("{} with changes of {:?}: {error}", task.cell, change.ranges))
    });
    let checks = checks.buffer_unordered(CELLS_IN_FLIGHT);
    let wrong: Vec<String> = checks.filter_map(async |check| check.err()).collect().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.check().await;
    world.end().await;
}
