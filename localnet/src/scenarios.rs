//! Tests that run on each validator: on the embedded one always, and on Agave's where it is on the `PATH`.
//!
//! A scenario is an `async fn(Validator)`. Those of a test binary share one process of Agave's validator, on which each has a
//! lot of its own: the accounts that it finds there. So the process starts once, and what waits for slots waits at once.

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;

use crate::{builder::LocalnetBuilder, error::LocalnetError, localnet::Localnet};

/// Agave's validator.
const PROGRAM: &str = "solana-test-validator";
/// Runs only the scenarios whose names contain it.
const FILTER: &str = "COMMITTOR_SCENARIO";
/// Scenarios that run at a time. Most of what they do is wait.
const AT_A_TIME: usize = 8;
/// After so long a scenario on Agave has failed.
const LIMIT: Duration = Duration::from_secs(120);

/// What puts a lot's accounts into a genesis.
pub type Prepare = fn(LocalnetBuilder, u8) -> LocalnetBuilder;

/// Where a scenario runs.
#[derive(Clone, Debug)]
pub enum Validator {
    /// On a validator of its own in this process.
    Embedded,
    /// On Agave's, beside others.
    Agave {
        /// The running validator.
        localnet: Arc<Localnet>,
        /// Which lot is the scenario's.
        lot: u8,
    },
}

impl Validator {
    /// The validator with the accounts of a lot, and the lot's number.
    ///
    /// # Errors
    /// [`LocalnetError`] if the embedded one can't be started.
    pub async fn start(self, prepare: Prepare) -> Result<(Arc<Localnet>, u8), LocalnetError> {
        match self {
            Self::Embedded => Ok((Arc::new(prepare(Localnet::builder(), 0).start().await?), 0)),
            Self::Agave { localnet, lot } => Ok((localnet, lot)),
        }
    }
}

/// A scenario with its name.
pub struct Scenario {
    name: &'static str,
    run: Box<dyn Fn(Validator) + Send + Sync>,
}

impl Scenario {
    /// A scenario, which runs on a runtime of its own.
    ///
    /// # Panics
    /// When it runs, as it does, and if it takes longer than two minutes.
    pub fn new<F: Future<Output = ()>>(
        name: &'static str,
        scenario: impl Fn(Validator) -> F + Send + Sync + 'static,
    ) -> Self {
        let run = Box::new(move |validator| {
            let runtime = Runtime::new().unwrap_or_else(|error| panic!("no runtime: {error}"));
            let limited = async { tokio::time::timeout(LIMIT, scenario(validator)).await };
            let ended = runtime.block_on(limited);
            runtime.shutdown_background();
            assert!(ended.is_ok(), "it has not ended after {} s", LIMIT.as_secs());
        });
        Self { name, run }
    }
}

/// Runs scenarios on one process of Agave's validator, several at a time, or says that there is none.
///
/// What it says goes to stderr at once: the test harness shows nothing of what it captures of a test that passes.
///
/// # Panics
/// If the validator can't be started, or any scenario panics; the others run all the same.
pub fn run_on_agave(prepare: Prepare, scenarios: Vec<Scenario>) {
    let chosen = env::var(FILTER).unwrap_or_default();
    let scenarios: Vec<Scenario> =
        scenarios.into_iter().filter(|scenario| scenario.name.contains(&chosen)).collect();
    let Some(program) = agave() else {
        say(&format!("NOT RUN on Agave, for want of `{PROGRAM}` on the PATH: {} scenarios", scenarios.len()));
        return;
    };
    let lots = 1..=u8::try_from(scenarios.len()).expect("no more scenarios than lots");
    let builder = lots.clone().fold(Localnet::builder(), prepare);
    // Lives as long as the process that was started on it.
    let runtime = Runtime::new().unwrap_or_else(|error| panic!("no runtime: {error}"));
    let localnet = runtime.block_on(builder.start_on_agave(&program));
    let localnet = Arc::new(localnet.unwrap_or_else(|error| panic!("{error}: {:?}", error)));
    let (queue, failed) = (Mutex::new(lots.zip(scenarios)), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let work = || {
            while let Some((lot, scenario)) = locked(&queue).next() {
                let validator = Validator::Agave { localnet: localnet.clone(), lot };
                let (name, started) = (scenario.name, Instant::now());
                // A thread of its own, whose name a panic tells.
                let run =
                    thread::Builder::new().name(name.to_owned()).spawn(move || (scenario.run)(validator));
                let passed = run.is_ok_and(|thread| thread.join().is_ok());
                let end = if passed { "ok" } else { "FAILED" };
                say(&format!("on Agave: {name} ... {end} in {:.1} s", started.elapsed().as_secs_f64()));
                if !passed {
                    locked(&failed).push(name);
                }
            }
        };
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let failed = locked(&failed);
    assert!(failed.is_empty(), "failed on Agave, {FILTER}=NAME runs one of them alone: {failed:?}");
}

/// Agave's validator, if it is on the `PATH`.
fn agave() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Past what captures a test's output.
fn say(line: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Makes a test on the embedded validator of each scenario (`async fn(Validator)`), and `scenarios()`, which
/// [`on_agave!`](crate::on_agave) runs.
#[macro_export]
macro_rules! on_each_validator {
    ($($scenario:ident),* $(,)?) => {
        mod on_embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                super::$scenario($crate::Validator::Embedded).await;
            })*
        }

        /// What runs on Agave's validator, too.
        pub(crate) fn scenarios() -> Vec<$crate::Scenario> {
            vec![$($crate::Scenario::new(stringify!($scenario), $scenario)),*]
        }
    };
}

/// Makes a test that runs the scenarios of modules on Agave's validator, where that is on the `PATH`. What `prepare` puts
/// into a genesis by number is there once for each scenario.
#[macro_export]
macro_rules! on_agave {
    ($prepare:path; $($scenarios:path),* $(,)?) => {
        #[test]
        fn on_agave() {
            let mut scenarios = Vec::new();
            $(scenarios.extend($scenarios());)*
            $crate::run_on_agave($prepare, scenarios);
        }
    };
}
