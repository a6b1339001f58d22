//! Whole changesets through random faults, and what became of every commit, by the chain itself.
//!
//! A seed says what is committed (`work`), what goes wrong meanwhile (`schedule`), and whether the engine is stopped halfway
//! and started again on its store. `run` does it, and `history` asks the validator, past the proxies, what it did; `verdict`
//! compares the two.

mod history;
mod run;
mod schedule;
mod verdict;
mod work;

use std::time::{Duration, Instant};

use committor_localnet::Localnet;
use futures::{StreamExt, stream};
use serde::Serialize;

use self::{run::Outcome, work::Work};
use crate::{
    args::{BenchFaults, Global, Output},
    exit::{CommandError, Kind},
    output,
};

/// Seeds that share a validator. It looks through all that it ever ran to tell what an authority sent.
const SEEDS_PER_VALIDATOR: usize = 100;

/// Short, so that a blockhash lives for 3 s and some transactions expire.
const SLOT_TIME: Duration = Duration::from_millis(20);

/// What all seeds came to. Commits are counted by account: a bundle of three has three.
#[derive(Debug, Default, Serialize)]
struct Figures {
    seeds: u64,
    /// Commits that were handed in.
    submitted: u64,
    /// Those that the chain has applied once.
    landed_once: u64,
    /// Those that it has applied more often.
    landed_twice: u64,
    /// Those that the client called landed, or never ended, and the chain has not applied.
    lost: u64,
    /// Those that the client called failed, and the chain has not applied.
    refused: u64,
    /// Requests that were made again, transactions that were sent again, bundles that were planned again.
    retries: u64,
    /// Transactions that expired, and were signed anew.
    expired: u64,
    /// What the proxies did.
    faults: u64,
    /// Buffers that the engine gave up closing; their authority can still close them.
    buffers_left: u64,
    /// Engines that were stopped halfway, and gone on with by another one.
    resumed: u64,
    /// Seeds that broke any promise: order, atomicity, what is in the accounts, and the above.
    failed_seeds: Vec<u64>,
    seconds: f64,
}

impl Figures {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        let verdict = &outcome.verdict;
        self.seeds += 1;
        self.submitted += verdict.submitted;
        self.landed_once += verdict.landed_once;
        self.landed_twice += verdict.landed_twice;
        self.lost += verdict.lost;
        self.refused += verdict.refused;
        self.retries += outcome.retries;
        self.expired += outcome.expired;
        self.faults += outcome.faults;
        self.buffers_left += outcome.buffers_left;
        self.resumed += u64::from(outcome.resumed);
        if !verdict.problems.is_empty() {
            self.failed_seeds.push(seed);
        }
    }
}

pub async fn run(global: &Global, options: &BenchFaults) -> Result<Kind, CommandError> {
    global.refuse("bench faults", &["--url", "--ws", "--config", "--keypair", "--fee-payer"])?;
    let started = Instant::now();
    let seeds: Vec<u64> = (0..options.seeds).map(|seed| options.first_seed.wrapping_add(seed)).collect();
    let mut figures = Figures::default();
    for seeds in seeds.chunks(SEEDS_PER_VALIDATOR) {
        let work: Vec<Work> = seeds.iter().map(|seed| Work::draw(*seed)).collect();
        let mut builder = Localnet::builder().slot_time(SLOT_TIME);
        for work in &work {
            builder = work.prepare(builder);
        }
        let localnet = super::super::localnet::start(builder).await?;
        let localnet = &localnet;
        let run = |work: Work| async move { (work.seed, run::run(localnet, work).await) };
        let mut outcomes = stream::iter(work).map(run).buffer_unordered(options.in_flight.into());
        while let Some((seed, outcome)) = outcomes.next().await {
            let outcome = outcome?;
            for problem in &outcome.verdict.problems {
                eprintln!("seed {seed}: {problem}");
            }
            if !outcome.verdict.problems.is_empty() {
                eprintln!("hint: `committor bench faults --seeds 1 --first-seed {seed}` runs it alone");
            }
            figures.add(seed, &outcome);
        }
        eprintln!("{} of {} seeds", figures.seeds, options.seeds);
    }
    figures.failed_seeds.sort_unstable();
    figures.seconds = (started.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    match global.output {
        Output::Display => output::print(&display(&figures))?,
        form => output::json(&figures, form)?,
    }
    Ok(if figures.failed_seeds.is_empty() { Kind::Success } else { Kind::Other })
}

fn display(figures: &Figures) -> String {
    let mut table = output::table(["", "total"]);
    let rows = [
        ("seeds", figures.seeds),
        ("commits submitted", figures.submitted),
        ("landed once", figures.landed_once),
        ("landed twice", figures.landed_twice),
        ("lost", figures.lost),
        ("refused, nothing on chain", figures.refused),
        ("retries", figures.retries),
        ("expired", figures.expired),
        ("faults", figures.faults),
        ("buffers left", figures.buffers_left),
        ("engines stopped and resumed", figures.resumed),
        ("failed seeds", figures.failed_seeds.len() as u64),
    ];
    for (name, total) in rows {
        table.add_row([name.to_owned(), total.to_string()]);
    }
    output::align_right(&mut table, [1]);
    format!("{table}\nIn {} s.\n", figures.seconds)
}
