//! What every instruction costs, and the page that says so.

use std::fmt::Write;

use committor_localnet::{owner_program, programs};
use committor_sdk::{
    address,
    delegation::{self, BeginDelegateArgs, DelegateArgs},
    digest::payload_digest,
};
use serde::{Deserialize, Serialize};
use solana_address::Address;
use solana_instruction::Instruction;

use crate::{BufferBytes, PATCH, RECORD_LEN, World, landed, patch, pattern};

const SEED: &str = "buffer";
const CHUNK_SIZE: u32 = 3_856;
const MIB: usize = 1024 * 1024;
/// The largest payload in chunks of [`CHUNK_SIZE`].
const MAX_PAYLOAD_LEN: usize = 10 * MIB - 96 - 340;
/// Heading of the part of the page that [`parse`] reads.
const HEADING: &str = "## Measured";

/// One measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub program: String,
    /// Its instruction.
    pub instruction: String,
    /// What was done.
    pub case: String,
    /// What it took.
    pub compute_units: u64,
}

/// A program as it is deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binary {
    file: &'static str,
    bytes: usize,
}

const BINARIES: [Binary; 3] = [
    Binary { file: "chunk_buffer.so", bytes: programs::CHUNK_BUFFER.len() },
    Binary { file: "delegation.so", bytes: programs::DELEGATION.len() },
    Binary { file: "owner_program.so (example)", bytes: programs::OWNER_PROGRAM.len() },
];

/// Measures everything. The same programs always give the same figures.
pub fn measure() -> Vec<Row> {
    let mut table = Table { rows: Vec::new(), program: "chunk-buffer" };
    init(&mut table);
    write(&mut table);
    seal(&mut table);
    resize(&mut table);
    set_buffer_authority(&mut table);
    close(&mut table);
    table.program = "delegation";
    reserve(&mut table);
    delegate(&mut table);
    grow(&mut table);
    commit(&mut table);
    commit_patch(&mut table);
    commit_buffer(&mut table);
    stage_and_finalize(&mut table);
    unstage(&mut table);
    set_authority(&mut table);
    withdraw(&mut table);
    undelegate(&mut table);
    undelegate_buffer(&mut table);
    table.rows
}

struct Table {
    rows: Vec<Row>,
    program: &'static str,
}

impl Table {
    /// Sends one instruction in a transaction of its own.
    fn add(&mut self, world: &mut World, instruction: &str, case: String, sent: Instruction) {
        let compute_units = landed(world.send(&[sent])).compute_units;
        let (program, instruction) = (self.program.to_owned(), instruction.to_owned());
        self.rows.push(Row { program, instruction, case, compute_units });
    }
}

fn init(table: &mut Table) {
    for payload_len in [0, 1_024, 10_240, MIB, MAX_PAYLOAD_LEN] {
        let mut world = World::new();
        let mut instructions = world.create_buffer_instructions(SEED, payload_len, CHUNK_SIZE);
        let init = instructions.pop().expect("the last one is init");
        landed(world.send(&instructions));
        table.add(&mut world, "init", format!("payload of {}", bytes(payload_len)), init);
    }
}

fn write(table: &mut Table) {
    for len in [1_012, 3_856] {
        let mut world = World::new();
        // One signature less leaves room for the larger chunk.
        world.payer = world.authority;
        let buffer = world.create_buffer(SEED, 10 * len, len as u32);
        let write = world.write(buffer, len as u32, &pattern(len, 1));
        table.add(&mut world, "write", format!("chunk of {}", bytes(len)), write);
    }
    // Compares the bytes with those that are there, and finds a difference in the last one.
    let len = 3_856;
    let mut world = World::new();
    world.payer = world.authority;
    let full = BufferBytes::full(world.authority, pattern(10 * len, 1), len as u32);
    let buffer = world.forge_buffer(SEED, &BufferBytes { hashed_segments: 1, ..full });
    let mut chunk = pattern(len, 1);
    chunk[len - 1] ^= 1;
    let write = world.write(buffer, 0, &chunk);
    table.add(&mut world, "write", format!("chunk of {}, hashing begun", bytes(len)), write);
}

fn seal(table: &mut Table) {
    for payload_len in [0, 1_024, 10_240, MIB, 2 * MIB] {
        let mut world = World::new();
        let payload = pattern(payload_len, 1);
        let digest = payload_digest(&payload);
        let buffer = world.forge_buffer(SEED, &BufferBytes::full(world.authority, payload, CHUNK_SIZE));
        let seal = world.seal(buffer, digest);
        table.add(&mut world, "seal", format!("payload of {}", bytes(payload_len)), seal);
    }
}

fn resize(table: &mut Table) {
    let cases = [
        (100_000, 110_240, "10,240 bytes longer"),
        (100_000, 89_760, "10,240 bytes shorter"),
        (MAX_PAYLOAD_LEN, 0, "cut down to nothing"),
    ];
    for (old, new, what) in cases {
        let mut world = World::new();
        let buffer = BufferBytes::full(world.authority, pattern(old, 1), CHUNK_SIZE);
        let buffer = world.forge_buffer(SEED, &buffer);
        world.give(buffer, world.rent(10_240));
        let resize = world.resize(buffer, new, world.payer);
        table.add(&mut world, "resize", format!("payload of {}, {what}", bytes(old)), resize);
    }
}

fn set_buffer_authority(table: &mut Table) {
    let mut world = World::new();
    let buffer = world.forge_sealed(SEED, pattern(10_240, 1));
    let set_authority = world.set_buffer_authority(buffer, world.payer);
    table.add(&mut world, "set_authority", "any length".to_owned(), set_authority);
}

fn close(table: &mut Table) {
    let mut world = World::new();
    let buffer = world.forge_sealed(SEED, pattern(10_240, 1));
    let close = world.close(buffer, world.payer);
    table.add(&mut world, "close", format!("payload of {}", bytes(10_240)), close);
}

/// The smallest number whose account, and that account's record, are found at the first try. Every further try would
/// cost 1,500 compute units in the instructions that look for the address.
fn number(world: &World) -> u64 {
    let first_try = |seeds: &[&[u8]], program| Address::find_program_address(seeds, program).1 == u8::MAX;
    (0..)
        .find(|number: &u64| {
            let account = owner_program::account(&world.payer, *number);
            let seeds = [b"state", world.payer.as_ref(), &number.to_le_bytes()];
            first_try(&seeds, &programs::OWNER_PROGRAM_ID)
                && first_try(&[address::RECORD_SEED, account.as_ref()], &delegation::ID)
        })
        .expect("one in four is such a number")
}

/// A world with a delegated account.
fn delegated(len: usize) -> (World, Address) {
    let mut world = World::new();
    let account = world.delegated(number(&world), &pattern(len, 1));
    (world, account)
}

fn reserve(table: &mut Table) {
    let mut world = World::new();
    let account = world.own(number(&world), &[]);
    world.give(address::record(&account), world.rent(30_000));
    let len = 10_240 - RECORD_LEN;
    let first = world.reserve(account, len as u32);
    table.add(&mut world, "reserve", format!("new record, room for {}", bytes(len)), first);
    let second = world.reserve(account, len as u32 + 10_240);
    table.add(&mut world, "reserve", format!("room for {} more", bytes(10_240)), second);
}

fn delegate(table: &mut Table) {
    for len in [0, 1_024, 10_240 - RECORD_LEN] {
        let mut world = World::new();
        world.own(number(&world), &pattern(len, 1));
        let delegate = world.delegate(number(&world));
        let case = format!("{}, with the example owner program", bytes(len));
        table.add(&mut world, "begin_delegate + delegate", case, delegate);
    }
    // The halves alone, as no more than a signature of the account.
    let mut world = World::new();
    world.without_verification();
    let number = number(&world);
    let account = world.own(number, &pattern(1_024, 1));
    let reserve = world.reserve(account, 1_024);
    landed(world.send(&[reserve]));
    let record = address::record(&account);
    let args = BeginDelegateArgs { seeds: &world.seeds(number) };
    let begin = delegation::BeginDelegate { payer: world.payer, account, record }.instruction(args);
    let begin = crate::signed(&begin, 1);
    table.add(&mut world, "begin_delegate", format!("{}, record reserved", bytes(1_024)), begin);
    world.forge(account, delegation::ID, vec![0; 1_024]);
    let args = DelegateArgs { authority: world.authority };
    let delegate = delegation::Delegate { payer: world.payer, account, record }.instruction(args);
    table.add(&mut world, "delegate", bytes(1_024), crate::signed(&delegate, 1));
}

fn grow(table: &mut Table) {
    let (mut world, account) = delegated(0);
    world.give(account, world.rent(10_240));
    let grow = world.grow(account, 10_240);
    table.add(&mut world, "grow", format!("by {}", bytes(10_240)), grow);
}

fn commit(table: &mut Table) {
    for (old, new) in [(82, 82), (1_024, 1_024), (3_000, 3_000), (82, 1_024)] {
        let (mut world, account) = delegated(old);
        world.give(account, world.rent(new));
        let commit = world.commit(account, 1, 1, &pattern(new, 2));
        table.add(&mut world, "commit", change(old, new), commit);
    }
}

/// So many ranges of `len` bytes, spread over a state of `state_len`.
fn ranges(state_len: usize, count: usize, len: usize) -> Vec<u8> {
    let range = pattern(len, 2);
    let apart = (state_len - len) / count;
    let ranges: Vec<(u32, &[u8])> =
        (0..count).map(|index| ((index * apart) as u32, range.as_slice())).collect();
    patch(state_len, &ranges)
}

fn commit_patch(table: &mut Table) {
    let state_len = 10_240;
    for (count, len, what) in [(1, 200, "one range of 200"), (10, 20, "10 ranges of 20")] {
        let (mut world, account) = delegated(0);
        world.edit(account, |data| *data = pattern(state_len, 1));
        world.give(account, world.rent(state_len));
        let commit = world.commit_patch(account, 1, 1, &ranges(state_len, count, len));
        table.add(&mut world, "commit_patch", format!("{what} bytes, in {}", bytes(state_len)), commit);
    }
}

fn commit_buffer(table: &mut Table) {
    for (old, new) in [(10_240, 10_240), (871_520, 871_520), (0, 10_240)] {
        let (mut world, account) = delegated(0);
        world.edit(account, |data| *data = pattern(old, 1));
        world.give(account, world.rent(new));
        let buffer = world.forge_sealed(SEED, pattern(new, 2));
        let commit = world.commit_buffer(account, 1, 1, buffer);
        table.add(&mut world, "commit_buffer", change(old, new), commit);
    }
    let state_len = 871_520;
    let (mut world, account) = delegated(0);
    world.edit(account, |data| *data = pattern(state_len, 1));
    world.give(account, world.rent(state_len));
    let buffer = world.forge_sealed(SEED, ranges(state_len, 100, 100));
    let commit = world.commit_buffer_as(PATCH, account, 1, 1, buffer);
    let case = format!("a patch of 100 ranges of 100 bytes, in {}", bytes(state_len));
    table.add(&mut world, "commit_buffer", case, commit);
}

fn stage_and_finalize(table: &mut Table) {
    let len = 10_240;
    let (mut world, account) = delegated(0);
    world.edit(account, |data| *data = pattern(len, 1));
    world.give(account, world.rent(len));
    let buffer = world.forge_sealed(SEED, pattern(len, 2));
    let stage = world.stage(account, 1, 1, buffer);
    table.add(&mut world, "stage", "any length".to_owned(), stage);
    let finalize = world.finalize(account, buffer);
    table.add(&mut world, "finalize", bytes(len), finalize);
}

fn unstage(table: &mut Table) {
    let (mut world, account) = delegated(100);
    let buffer = world.forge_sealed(SEED, pattern(100, 2));
    let stage = world.stage(account, 1, 1, buffer);
    landed(world.send(&[stage]));
    let unstage = world.unstage(account);
    table.add(&mut world, "unstage", "any length".to_owned(), unstage);
}

fn set_authority(table: &mut Table) {
    let (mut world, account) = delegated(100);
    let set_authority = world.set_authority(account, world.payer);
    table.add(&mut world, "set_authority", "any length".to_owned(), set_authority);
}

fn withdraw(table: &mut Table) {
    let (mut world, account) = delegated(100);
    world.give(account, 1_000);
    let withdraw = world.withdraw(account, world.payer, 1_000);
    table.add(&mut world, "withdraw", "any length".to_owned(), withdraw);
}

fn undelegate(table: &mut Table) {
    for len in [1_024, 10_240] {
        let (mut world, account) = delegated(0);
        world.edit(account, |data| *data = pattern(len, 1));
        world.give(account, world.rent(len));
        let undelegate = world.undelegate(account);
        let case = format!("{}, with the example owner program", bytes(len));
        table.add(&mut world, "undelegate", case, undelegate);
    }
}

fn undelegate_buffer(table: &mut Table) {
    for len in [1_024, 10_240, 871_520] {
        let (mut world, account) = delegated(0);
        world.edit(account, |data| *data = pattern(len, 1));
        world.give(account, world.rent(len));
        let buffer = world.forge_sealed(SEED, pattern(len, 2));
        let undelegate = world.undelegate_buffer(account, 1, 1, buffer);
        let case = format!("{}, with the example owner program", bytes(len));
        table.add(&mut world, "undelegate_buffer", case, undelegate);
    }
}

fn change(old: usize, new: usize) -> String {
    if old == new { bytes(new) } else { format!("{}, grown from {}", bytes(new), thousands(old as u64)) }
}

fn bytes(len: usize) -> String {
    format!("{} bytes", thousands(len as u64))
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

const INTRODUCTION: &str = "\
# Compute units

Written by `cargo xtask cu`; `cargo xtask ci` fails if it is out of date. Do not edit.

Every figure is what one instruction used as the only one of its transaction, in LiteSVM with mainnet's features and the
programs of `programs/artifacts`. All addresses are made from fixed seeds, so the same programs always give the same
figures. Accounts and their records are chosen such that their addresses are found at the first try; in the
instructions that look for one (`reserve` of a new record, delegating, undelegating) every further try costs 1,500 more.

Lengths are those of the account's state or the buffer's payload. An account that has the new length already is not
resized; where one grows, the case says so. Delegating and undelegating are whole instructions, with the part of the
owner program (`tests/owner-program`) and all calls between the two. Creating a buffer takes a transfer and an allocation
by the system program besides `init`, 150 compute units each.
";

const BOUNDS: &str = "\
## What stands in the way of less

- `write`: nearly all of it is what Anchor does before any handler runs (finding the accounts in the runtime's buffer, the
  flags, the arguments): `set_authority`, which changes 32 bytes, costs almost as much. The chunk itself is one copy by a
  syscall. Anchor's guardrails and its typed account are left out here already; less would take an entry point of its own.
- `resize`: reading the cluster's rent is a syscall, moving the bitmap another, zeroing the old one a third. Leaving rent to
  the runtime would save the first, and turn a named error into one that names an account's index.
- every instruction on a delegated account: the record's address is hashed and compared, since nothing else tells a record
  from an account whose bytes somebody chose.
- `seal`: SHA-256, one unit for two bytes.
";

const PEERS: &str = "\
## Others, doing the same work

Measured elsewhere and not by this tool, as yardsticks: MagicBlock's committor program (its released binary, in LiteSVM
too), loader-v3 (the runtime's own program for uploading programs, which charges a fixed price), and a first prototype of
a buffer program in Anchor 2 without any care for its cost.

| step | MagicBlock's committor program | loader-v3 | prototype |
|---|---:|---:|---:|
| create a buffer | 11,470 | 2,370 | 1,586 |
| write a chunk | 5,160 (842 bytes) | 2,370 (up to 1,012 bytes) | 290 (1,012 bytes), 295 (3,856 bytes) |
| one step of a resize | 3,990 | – | – |
| close a buffer | 4,656 | 2,370 | – |
| bytes of data per transaction | 842 | 960 to 1,012 | 3,860 |
| transactions to create 10 MiB | more than 17 | 1, signed by a new keypair | 1 |
";

/// The page.
pub fn render(rows: &[Row]) -> String {
    let mut page = format!("{INTRODUCTION}\n{HEADING}\n\n| program | instruction | case | compute units |\n");
    page.push_str("|---|---|---|---:|\n");
    for Row { program, instruction, case, compute_units } in rows {
        let compute_units = thousands(*compute_units);
        let _ = writeln!(page, "| {program} | {instruction} | {case} | {compute_units} |");
    }
    page.push_str("\n## Size of the programs\n\n| file | bytes |\n|---|---:|\n");
    for Binary { file, bytes } in BINARIES {
        let _ = writeln!(page, "| {file} | {} |", thousands(bytes as u64));
    }
    let _ = write!(page, "\n{BOUNDS}\n{PEERS}");
    page
}

/// The measurements on a page; lines that are none are passed over.
pub fn parse(page: &str) -> Vec<Row> {
    let measured = page.lines().skip_while(|line| *line != HEADING).skip(1);
    let table = measured.take_while(|line| !line.starts_with('#'));
    table.filter_map(parse_row).collect()
}

fn parse_row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [program, instruction, case, compute_units] = cells.try_into().ok()?;
    let compute_units = compute_units.replace(',', "").parse().ok()?;
    let [program, instruction, case] = [program, instruction, case].map(str::to_owned);
    Some(Row { program, instruction, case, compute_units })
}

fn same(a: &Row, b: &Row) -> bool {
    (&a.program, &a.instruction, &a.case) == (&b.program, &b.instruction, &b.case)
}

fn name(row: &Row) -> String {
    format!("{} | {} | {}", row.program, row.instruction, row.case)
}

/// What to say of a figure that has grown by more than 2 %.
fn grown(row: &Row, old: u64) -> Option<String> {
    let new = row.compute_units;
    let percent = new.saturating_sub(old) as f64 * 100.0 / old as f64;
    (new * 100 > old * 102).then(|| format!("{}: {old} grew to {new}, by {percent:.1} %", name(row)))
}

/// The figures of a page that have grown by more than 2 %, one line each.
pub fn growth(page: &str, rows: &[Row]) -> Vec<String> {
    let old_rows = parse(page);
    let old = |row: &Row| old_rows.iter().find(|old| same(old, row)).map(|old| old.compute_units);
    rows.iter().filter_map(|row| grown(row, old(row)?)).collect()
}

/// What is wrong with a page, one line per row, if these are the measurements.
pub fn compare(page: &str, rows: &[Row]) -> Vec<String> {
    let old_rows = parse(page);
    let mut complaints = Vec::new();
    for row in rows {
        let new = row.compute_units;
        match old_rows.iter().find(|old| same(old, row)).map(|old| old.compute_units) {
            None => complaints.push(format!("{}: not on the page", name(row))),
            Some(old) if old == new => {}
            Some(old) => complaints
                .push(grown(row, old).unwrap_or_else(|| format!("{}: {old} is now {new}", name(row)))),
        }
    }
    for old in old_rows.iter().filter(|old| !rows.iter().any(|row| same(old, row))) {
        complaints.push(format!("{}: on the page, but not measured any more", name(old)));
    }
    if complaints.is_empty() && page != render(rows) {
        complaints.push("the figures are right, but the rest of the page is not".to_owned());
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &str, compute_units: u64) -> Row {
        let (program, instruction) = ("a program".to_owned(), "do".to_owned());
        Row { program, instruction, case: case.to_owned(), compute_units }
    }

    #[test]
    fn a_page_is_read_back_as_it_was_written() {
        let rows = [row("1,024 bytes", 999), row("many", 1_234_567)];
        assert_eq!(parse(&render(&rows)), rows);
        assert_eq!(compare(&render(&rows), &rows), Vec::<String>::new());
    }

    #[test]
    fn every_difference_is_named() {
        let page = render(&[row("a", 1_000), row("b", 1_000), row("c", 1_000), row("d", 1)]);
        let complaints = compare(&page, &[row("a", 1_020), row("b", 1_021), row("c", 900), row("e", 1)]);
        assert_eq!(
            complaints,
            [
                "a program | do | a: 1000 is now 1020",
                "a program | do | b: 1000 grew to 1021, by 2.1 %",
                "a program | do | c: 1000 is now 900",
                "a program | do | e: not on the page",
                "a program | do | d: on the page, but not measured any more",
            ]
        );
    }

    #[test]
    fn a_change_outside_the_figures_is_noticed() {
        let rows = [row("a", 1)];
        let page = render(&rows).replace("fixed seeds", "other seeds");
        assert_eq!(compare(&page, &rows).len(), 1);
    }
}
