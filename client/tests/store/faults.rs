//! A store whose file, log, disk or folder lets it down: it is an earlier store then, or it is refused by name. Nothing is
//! invented, and what was acknowledged is lost only with the bytes that held it.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use committor_client::{
    Lamports, Store,
    store::{BundleEnd, SeenTable, StoreError, TableTransaction},
    types::{BundleKey, ChangesetId, Stage, TableHolder, TableStatus, TableStep},
};
use solana_address::Address;

use crate::place::{LANDED, bundle, changeset, decision, signature, transaction};

/// Length of a log's header, and of the header of each of its frames, in bytes.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const PAGE: usize = 4096;

/// All that a store says.
async fn dump(store: &Store) -> Result<String, StoreError> {
    let mut text = serde_json::to_string(&store.totals().await?).unwrap();
    for summary in store.changesets(1_000).await? {
        let report = store.report(Some(summary.changeset)).await?;
        text += &format!("{summary:?}{report:?}");
        for found in &report.bundles {
            let stored = store.bundle(found.key).await?;
            text += &format!("{stored:?}{:?}", store.open_transactions(found.key, Stage::Commit).await?);
        }
    }
    let authority = account(AUTHORITY);
    text += &format!("{:?}", store.tables(authority).await?);
    text += &format!("{:?}", store.open_table_transactions(authority).await?);
    Ok(text)
}

fn account(byte: u8) -> Address {
    Address::new_from_array([byte; 32])
}

/// The authority of the lookup table, and the table.
const AUTHORITY: u8 = 250;
const TABLE: u8 = 251;

/// Makes a lookup table that has the accounts of `killed`; returns what the store said after each change.
async fn make_table(store: &Store) -> Vec<String> {
    let create = TableTransaction {
        table: account(TABLE),
        step: TableStep::Create,
        signature: signature(TABLE),
        last_valid_block_height: 9,
        wire: vec![TABLE; 1_232],
    };
    let seen = SeenTable {
        address: account(TABLE),
        status: TableStatus::Active,
        deactivation_slot: None,
        lamports: Lamports(5),
        absent_since_slot: None,
        entries: [1, 2, 3, 4, 200].map(account).to_vec(),
    };
    let mut states = Vec::new();
    store.table_planned(account(AUTHORITY), create).await.unwrap();
    states.push(dump(store).await.unwrap());
    store.table_settled(signature(TABLE), LANDED).await.unwrap();
    states.push(dump(store).await.unwrap());
    store.tables_seen(vec![seen]).await.unwrap();
    states.push(dump(store).await.unwrap());
    states
}

/// A store that was killed after some changes: its file, its log, and what it said after each change.
struct Killed {
    file: Vec<u8>,
    log: Vec<u8>,
    states: Vec<String>,
}

async fn killed() -> Killed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let mut states = vec![dump(&store).await.unwrap()];
    states.append(&mut make_table(&store).await);
    for id in 1..=4u8 {
        let submitted = changeset(&[bundle(id.into(), &[id, 200]), bundle(100, &[50 + id])]);
        let (_, bundles) = store.accept(submitted, vec![]).await.unwrap();
        states.push(dump(&store).await.unwrap());
        let key = bundles[0].key;
        let holder = TableHolder::Bundle(key);
        store.reserve_keys(holder.clone(), vec![account(id), account(200)]).await.unwrap();
        states.push(dump(&store).await.unwrap());
        store.decide(key, vec![decision(), decision()]).await.unwrap();
        states.push(dump(&store).await.unwrap());
        store.signed(vec![transaction(key, Stage::Commit, id, &[0, 1])]).await.unwrap();
        states.push(dump(&store).await.unwrap());
        store.settled(signature(id), LANDED).await.unwrap();
        states.push(dump(&store).await.unwrap());
        store.cost(signature(id), 9, Lamports(5_000)).await.unwrap();
        states.push(dump(&store).await.unwrap());
        store.release_keys(holder).await.unwrap();
        states.push(dump(&store).await.unwrap());
        store.end(key, BundleEnd::Landed(Some(signature(id)))).await.unwrap();
        states.push(dump(&store).await.unwrap());
        store.end(bundles[1].key, BundleEnd::Failed("no".into())).await.unwrap();
        states.push(dump(&store).await.unwrap());
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    Killed { file: read("s.db"), log: read("s.db-wal"), states }
}

/// What a store of these bytes says.
async fn opened(file: &[u8], log: &[u8]) -> Result<String, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    std::fs::write(&path, file).unwrap();
    if !log.is_empty() {
        std::fs::write(folder.path().join("s.db-wal"), log).unwrap();
    }
    let said = async { dump(&Store::open(&path)?).await }.await;
    if let Err(error) = &said {
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    said
}

#[tokio::test]
async fn a_log_that_is_cut_anywhere_gives_what_was_acknowledged_before_the_cut() {
    let Killed { file, log, states } = killed().await;
    let frame = FRAME_HEADER + PAGE;
    assert_eq!((log.len() - LOG_HEADER) % frame, 0);
    let frames = (log.len() - LOG_HEADER) / frame;
    let mut last = 0;
    for count in 0..=frames {
        let end = LOG_HEADER + count * frame;
        let said = opened(&file, &log[..end]).await.unwrap();
        let state = states.iter().rposition(|state| *state == said).expect("a state that was never there");
        assert!(state >= last, "more of the log gives less: {state} after {last}");
        last = state;
        // A frame of which only a part was written is none.
        if count < frames && count % 7 == 0 {
            for part in [1, FRAME_HEADER, frame / 2, frame - 1] {
                assert_eq!(opened(&file, &log[..end + part]).await.unwrap(), said);
            }
        }
        // Nor is one with other bytes, whatever comes after it.
        if count < frames && count % 11 == 0 {
            let mut torn = log.clone();
            torn[end + FRAME_HEADER + 100] ^= 1;
            assert_eq!(opened(&file, &torn).await.unwrap(), said);
        }
    }
    assert_eq!(last, states.len() - 1, "the whole log gives the last state");
}

#[tokio::test]
async fn a_file_that_is_cut_anywhere_is_refused_or_says_what_it_once_said() {
    let Killed { file, log, states } = killed().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    std::fs::write(&path, &file).unwrap();
    std::fs::write(folder.path().join("s.db-wal"), &log).unwrap();
    // Closed as it should be: all of it is in the file.
    drop(Store::open(&path).unwrap());
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(opened(&whole, &[]).await.unwrap(), *states.last().unwrap());
    let (mut refused, mut earlier) = (0, 0);
    for cut in (0..whole.len()).step_by(1_024).chain([1, 15, 16, 99, 100, 101, whole.len() - 1]) {
        match opened(&whole[..cut], &[]).await {
            Ok(said) => {
                assert!(states.contains(&said), "cut at {cut}: {said}");
                earlier += 1;
            }
            Err(error) => {
                let is_named = cut < 100 || matches!(error, StoreError::Cut { .. });
                assert!(is_named, "cut at {cut}: {error}");
                refused += 1;
            }
        }
    }
    // An empty file is a new store.
    assert!(refused > 100 && earlier >= 1, "{refused} {earlier}");
    // With a log beside it, it is none.
    let emptied = opened(&[], &log).await;
    assert!(matches!(emptied, Err(StoreError::Emptied { .. })), "{emptied:?}");
}

/// Runs one of the tests below, which do nothing by themselves, in a process of its own: `wrap` is put before it. `None` if
/// the machine can't do that.
fn child(name: &str, path: &Path, wrap: &[&str]) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    // Also for a user who may not look into the build folder.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("store");
    let this = std::env::current_exe().unwrap();
    std::fs::hard_link(&this, &program).or_else(|_| std::fs::copy(&this, &program).map(drop)).unwrap();
    let mut command = Command::new(wrap.first().copied().unwrap_or(program.to_str().unwrap()));
    if let Some(rest) = wrap.get(1..) {
        command.args(rest).arg(&program);
    }
    let name = format!("faults::{name}");
    command.args(["--exact", &name, "--ignored", "--nocapture", "--test-threads=1"]);
    let output = command.env("COMMITTOR_TEST_STORE", path).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains("running 1 test") {
        let why = String::from_utf8_lossy(&output.stderr);
        eprintln!("SKIPPED: {wrap:?} does not work here: {why}");
        return None;
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(output)
}

/// The store that a child is to use.
fn given() -> Option<PathBuf> {
    std::env::var_os("COMMITTOR_TEST_STORE").map(PathBuf::from)
}

/// Accepts changesets until it fails. Returns those that were acknowledged, and the error.
async fn fill(store: &Store) -> (Vec<ChangesetId>, StoreError) {
    let mut accepted = Vec::new();
    loop {
        match store.accept(changeset(&[bundle(1, &[200, 199, 198])]), vec![]).await {
            Ok((id, _)) => accepted.push(id),
            Err(error) => return (accepted, error),
        }
        assert!(accepted.len() < 100_000, "it never fills");
    }
}

#[tokio::test]
#[ignore = "a part of another test"]
async fn fill_a_disk() {
    let Some(path) = given() else { return };
    let ballast = path.with_extension("ballast");
    std::fs::write(&ballast, vec![1; 512 * 1024]).unwrap();
    let store = Store::open(&path).unwrap();
    let (mut accepted, error) = fill(&store).await;
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert!(error.hint().unwrap().contains("free some space"), "{error:?}");
    assert!(accepted.len() > 10);
    assert_eq!(store.unfinished().await.unwrap().len(), accepted.len());
    std::fs::remove_file(ballast).unwrap();
    accepted.push(store.accept(changeset(&[bundle(1, &[1])]), vec![]).await.unwrap().0);
    drop(store);
    let store = Store::open(&path).unwrap();
    let found: Vec<_> =
        store.unfinished().await.unwrap().into_iter().map(|bundle| bundle.changeset).collect();
    assert_eq!(found, accepted);
}

#[test]
fn a_full_disk_is_named_loses_nothing_and_can_be_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=2m tmpfs {} && exec \"$0\" \"$@\"", folder.path().display());
    child("fill_a_disk", &folder.path().join("s.db"), &["unshare", "-m", "sh", "-c", &mount]);
}

#[tokio::test]
#[ignore = "a part of another test"]
async fn reach_the_longest_file() {
    let Some(path) = given() else { return };
    let store = Store::open(&path).unwrap();
    let (accepted, error) = fill(&store).await;
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert!(error.hint().unwrap().contains("quota"), "{error:?}");
    assert_eq!(store.unfinished().await.unwrap().len(), accepted.len());
    println!("accepted {}", accepted.len());
}

#[tokio::test]
async fn a_file_that_may_not_grow_is_named_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let limit = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\"";
    let Some(output) = child("reach_the_longest_file", &path, &["sh", "-c", limit]) else { return };
    let said = String::from_utf8(output.stdout).unwrap();
    // The harness has begun the line.
    let (_, said) = said.split_once("accepted ").unwrap();
    let accepted: usize = said.split_whitespace().next().unwrap().parse().unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.unfinished().await.unwrap().len(), accepted);
}

#[tokio::test]
#[ignore = "a part of another test"]
async fn open_what_may_not_be_written() {
    let Some(path) = given() else { return };
    let error = Store::open(&path).unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert!(error.hint().unwrap().contains("writable"), "{error:?}");
}

#[tokio::test]
async fn a_folder_that_can_not_be_written_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (there, missing) = (folder.path().join("s.db"), folder.path().join("none.db"));
    let store = Store::open(&there).unwrap();
    store.accept(changeset(&[bundle(1, &[1])]), vec![]).await.unwrap();
    drop(store);
    let before = std::fs::read(&there).unwrap();
    // Whoever runs the tests may write there: the child is somebody else.
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    for path in [&there, &missing] {
        child("open_what_may_not_be_written", path, &nobody);
    }
    assert_eq!(std::fs::read(&there).unwrap(), before);
    assert!(!missing.exists());
}

#[tokio::test]
async fn a_file_that_another_process_holds_is_named_and_nothing_is_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Those that wait together are told together.
    let (one, two) = tokio::join!(
        store.accept(changeset(&[bundle(1, &[1])]), vec![]),
        store.end(BundleKey(1), BundleEnd::Landed(None))
    );
    for error in [one.unwrap_err(), two.unwrap_err()] {
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert!(error.hint().unwrap().contains("another process"), "{error:?}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    let (id, _) = store.accept(changeset(&[bundle(1, &[1])]), vec![]).await.unwrap();
    assert_eq!(id, ChangesetId(1), "the one that was refused took no number");

    drop(store);
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;").unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert!(error.hint().unwrap().contains("another process"), "{error:?}");
}

#[tokio::test]
#[ignore = "a part of another test"]
async fn write_beside_another() {
    let Some(path) = given() else { return };
    let store = Store::open(&path).unwrap();
    for _ in 0..100 {
        store.accept(changeset(&[bundle(1, &[1, 2])]), vec![]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_can_write_to_one_file_and_neither_loses_anything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Arc::new(Store::open(&path).unwrap());
    let other = std::thread::spawn(move || child("write_beside_another", &path, &[]));
    for _ in 0..100 {
        store.accept(changeset(&[bundle(2, &[3])]), vec![]).await.unwrap();
    }
    assert!(other.join().unwrap().is_some());
    let unfinished = store.unfinished().await.unwrap();
    assert_eq!(unfinished.len(), 200);
    assert_eq!(unfinished.iter().filter(|bundle| bundle.accounts.len() == 2).count(), 100);
}
