//! Signing and verifying many transactions: one after the other, each as a job of its own, and in ordered chunks.
//!
//! The arms are interleaved, and the first of them runs twice: how far the two are apart is the noise, and no ratio nearer to
//! one says anything.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use committor_client::crypto::{CryptoError, CryptoPool, CryptoSettings, OrderedStream, Unsigned, verify};
use futures::executor::block_on_stream;
use rayon::prelude::*;
use serde::Serialize;
use solana_hash::Hash;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;

use super::statistics::Ratios;
use crate::{
    args::{BenchCrypto, Global, Output},
    exit::{CommandError, Kind},
    output,
};

const ARMS: [&str; 4] = ["serial", "serial again", "a job per item", "ordered chunks"];

#[derive(Serialize)]
struct Row {
    operation: &'static str,
    /// Whether another thread kept a core busy.
    busy: bool,
    size: usize,
    arm: &'static str,
    /// Time over that of the serial arm in the same repeat.
    #[serde(flatten)]
    ratios: Ratios,
    /// Median time of all items, in microseconds.
    total_us: f64,
    /// Median time until the first outcome, in microseconds.
    first_us: f64,
}

/// How long it took until the first outcome, and until the last.
type Times = (Duration, Duration);

pub fn run(global: &Global, options: &BenchCrypto) -> Result<Kind, CommandError> {
    let other = |error: CryptoError| CommandError::new(Kind::Other, error);
    let settings = CryptoSettings { threads: options.threads, ..CryptoSettings::default() };
    let pool = CryptoPool::new(settings).map_err(other)?;
    let largest = options.sizes.iter().copied().max().unwrap_or(0);
    let unsigned = messages(largest)?;
    let signed: Vec<VersionedTransaction> =
        unsigned.iter().map(|unsigned| unsigned.clone().sign()).collect::<Result<_, _>>().map_err(other)?;
    let mut rows = Vec::new();
    for busy in [false, true] {
        let _load = busy.then(Load::start);
        for size in &options.sizes {
            let (unsigned, signed) = (&unsigned[..*size], &signed[..*size]);
            let sign = |arm: usize| match arm {
                0 | 1 => timed_serial(unsigned.to_vec(), Unsigned::sign),
                2 => timed_jobs(unsigned.to_vec(), Unsigned::sign),
                _ => timed_stream(unsigned.to_vec(), |batch| pool.sign_stream(batch)),
            };
            rows.extend(measure("sign", busy, *size, options.repeats, sign));
            let check = |transaction| verify(&transaction);
            let verify = |arm: usize| match arm {
                0 | 1 => timed_serial(signed.to_vec(), check),
                2 => timed_jobs(signed.to_vec(), check),
                _ => timed_stream(signed.to_vec(), |batch| pool.verify_stream(batch)),
            };
            rows.extend(measure("verify", busy, *size, options.repeats, verify));
        }
    }
    match global.output {
        Output::Display => output::print(&display(&rows, options))?,
        form => output::json(&serde_json::json!({ "rows": rows }), form)?,
    }
    Ok(Kind::Success)
}

/// Measures every arm in each repeat, beginning with another one each time.
fn measure(
    operation: &'static str,
    busy: bool,
    size: usize,
    repeats: u32,
    time: impl Fn(usize) -> Times,
) -> Vec<Row> {
    let mut times = vec![Vec::new(); ARMS.len()];
    for repeat in 0..repeats as usize {
        for turn in 0..ARMS.len() {
            let arm = (repeat + turn) % ARMS.len();
            times[arm].push(time(arm));
        }
    }
    let serial: Vec<Duration> = times[0].iter().map(|(_, total)| *total).collect();
    let median = |mut values: Vec<Duration>| {
        values.sort_unstable();
        values.get(values.len() / 2).map_or(0.0, |value| value.as_secs_f64() * 1e6)
    };
    let row = |(arm, times): (&'static str, Vec<Times>)| Row {
        operation,
        busy,
        size,
        arm,
        ratios: Ratios::of(times.iter().map(|(_, total)| *total).zip(serial.iter().copied())),
        total_us: median(times.iter().map(|(_, total)| *total).collect()),
        first_us: median(times.iter().map(|(first, _)| *first).collect()),
    };
    ARMS.into_iter().zip(times).map(row).collect()
}

fn timed_serial<I, T>(items: Vec<I>, compute: impl Fn(I) -> T) -> Times {
    let started = Instant::now();
    let mut first = None;
    for item in items {
        black_box(compute(item));
        first.get_or_insert_with(|| started.elapsed());
    }
    (first.unwrap_or_default(), started.elapsed())
}

/// Outcomes are there when all of them are.
fn timed_jobs<I: Send, T: Send>(items: Vec<I>, compute: impl Fn(I) -> T + Send + Sync) -> Times {
    let started = Instant::now();
    let outcomes: Vec<T> = items.into_par_iter().with_max_len(1).map(compute).collect();
    black_box(outcomes);
    (started.elapsed(), started.elapsed())
}

fn timed_stream<I, T>(items: Vec<I>, stream: impl Fn(Vec<I>) -> OrderedStream<I, T>) -> Times
where
    I: Send + Unpin + 'static,
    T: Send + Unpin + 'static,
{
    let started = Instant::now();
    let mut first = None;
    for outcome in block_on_stream(stream(items)) {
        black_box(outcome);
        first.get_or_insert_with(|| started.elapsed());
    }
    (first.unwrap_or_default(), started.elapsed())
}

/// Transfers, no two the same.
fn messages(count: usize) -> Result<Vec<Unsigned>, CommandError> {
    let payer = Arc::new(Keypair::new());
    let receiver = Keypair::new().pubkey();
    let message = |number: usize| {
        let instruction = transfer(&payer.pubkey(), &receiver, number as u64);
        let message = v0::Message::try_compile(&payer.pubkey(), &[instruction], &[], Hash::default())
            .map_err(|error| CommandError::new(Kind::Other, error))?;
        Ok(Unsigned { message: VersionedMessage::V0(message), keypairs: vec![payer.clone()] })
    };
    (0..count).map(message).collect()
}

/// Keeps a core busy until it is dropped.
struct Load(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Load {
    fn start() -> Self {
        let running = Arc::new(AtomicBool::new(true));
        let flag = running.clone();
        let thread = std::thread::spawn(move || {
            while flag.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(running, Some(thread))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
        // It does nothing that could fail.
        let _ = self.1.take().map(std::thread::JoinHandle::join);
    }
}

fn display(rows: &[Row], options: &BenchCrypto) -> String {
    let mut table = output::table(["", "load", "items", "arm", "ratio", "min", "max", "µs", "µs to first"]);
    for row in rows {
        table.add_row([
            row.operation.to_owned(),
            if row.busy { "one core busy" } else { "idle" }.to_owned(),
            row.size.to_string(),
            row.arm.to_owned(),
            format!("{:.2}", row.ratios.median_ratio),
            format!("{:.2}", row.ratios.min_ratio),
            format!("{:.2}", row.ratios.max_ratio),
            format!("{:.0}", row.total_us),
            format!("{:.0}", row.first_us),
        ]);
    }
    output::align_right(&mut table, [2, 4, 5, 6, 7, 8]);
    let threads = if options.threads == 0 {
        "as many threads as cores".to_owned()
    } else {
        format!("{} threads", options.threads)
    };
    format!(
        "{table}\n{} repeats, {threads}. Ratios are to the serial arm of the same repeat, medians over the repeats.\n",
        options.repeats
    )
}
