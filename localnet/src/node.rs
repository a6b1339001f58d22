use std::{thread, time::Duration};

use crossbeam_channel::{Receiver, Sender, unbounded};
use solana_address::Address;
use surfpool_core::{runloops::start_local_surfnet_runloop, surfnet::locker::SurfnetSvmLocker};
use surfpool_types::{
    BlockProductionMode, ClockCommand, RpcConfig, SerialVmMutationResult, SerialVmMutationTask,
    SimnetCommand, SimnetConfig, SimnetEvent, SurfpoolConfig,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use crate::{
    error::LocalnetError,
    gate,
    genesis::{Built, Genesis, credit},
    ports::ReservedPort,
};

pub(crate) const BIND_HOST: &str = "127.0.0.1";

/// Ready takes a fraction of a second; a machine that is building something else meanwhile may take many times that.
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Surfpool announces the end of each of its two servers.
const SERVERS: usize = 2;
/// The clock thread outlives its localnet and cannot be ended, only be made to sleep: 49 days.
const CLOCK_ASLEEP_MS: u64 = u32::MAX as u64;

/// The running threads. Dropping it asks them to end and does not wait.
pub(crate) struct Node {
    commands: Commands,
    vm: SurfnetSvmLocker,
    stopped: watch::Receiver<bool>,
    _ports: [ReservedPort; SERVERS],
}

/// The run loop's orders, the last of which is to stop. Made before the threads, so that they end even if the caller
/// stops waiting for them to start.
struct Commands(Sender<SimnetCommand>);

impl Drop for Commands {
    fn drop(&mut self) {
        let _ =
            self.0.send(SimnetCommand::CommandClock(None, ClockCommand::UpdateSlotInterval(CLOCK_ASLEEP_MS)));
        let _ = self.0.send(SimnetCommand::Terminate(None));
    }
}

/// What the threads tell [`Node::start`].
enum Report {
    Built(SurfnetSvmLocker),
    Ready,
    Failed(LocalnetError),
}

impl Node {
    pub(crate) async fn start(
        genesis: Genesis,
        rpc: ReservedPort,
        websocket: ReservedPort,
    ) -> Result<Self, LocalnetError> {
        let (commands, from_handle) = unbounded();
        let (report, mut reports) = mpsc::unbounded_channel();
        let (stopped_tx, stopped) = watch::channel(false);
        let config = surfpool_config(&genesis, &rpc, &websocket);

        let run_loop_commands = commands.clone();
        let commands = Commands(commands);
        // A thread of its own: the run loop blocks on its channels, and building the virtual machine is all computing.
        spawn("localnet", move || {
            if let Err(error) = run(&genesis, config, run_loop_commands, from_handle, &report, stopped_tx) {
                let _ = report.send(Report::Failed(error));
            }
        })?;

        let mut vm = None;
        let ready = async {
            loop {
                match reports.recv().await {
                    Some(Report::Built(built)) => vm = Some(built),
                    Some(Report::Ready) => return Ok(()),
                    Some(Report::Failed(error)) => return Err(error),
                    None => return Err(ended("it did not say why")),
                }
            }
        };
        let outcome = timeout(START_LIMIT, ready)
            .await
            .unwrap_or(Err(LocalnetError::TimedOut { what: "become ready", limit: START_LIMIT }));
        outcome?;
        Ok(Self {
            commands,
            vm: vm.ok_or_else(|| ended("it was ready before it was built"))?,
            stopped,
            _ports: [rpc, websocket],
        })
    }

    /// Credits an account between two transactions.
    pub(crate) async fn credit(&self, address: Address, lamports: u64) -> Result<(), LocalnetError> {
        let (reply, result) = oneshot::channel();
        let vm = self.vm.clone();
        let task = SerialVmMutationTask::new(move || {
            Box::pin(async move {
                let _ = reply.send(vm.with_svm_writer(|svm| credit(svm, address, lamports)));
                SerialVmMutationResult::NoBlock
            })
        });
        let gone = || ended("it is not running");
        self.commands.0.send(SimnetCommand::ProcessSerialVmMutation(task)).map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }

    /// Stops the threads and waits until both ports are free.
    pub(crate) async fn shutdown(self) -> Result<(), LocalnetError> {
        drop(self.commands);
        let mut stopped = self.stopped;
        match timeout(STOP_LIMIT, stopped.wait_for(|stopped| *stopped)).await {
            // An error means that the watching thread is gone, and with it everything that it watched.
            Ok(_) => Ok(()),
            Err(_) => Err(LocalnetError::TimedOut { what: "free its ports", limit: STOP_LIMIT }),
        }
    }
}

/// Builds the chain and runs it until it is told to stop.
fn run(
    genesis: &Genesis,
    config: SurfpoolConfig,
    commands: Sender<SimnetCommand>,
    run_loop_commands: Receiver<SimnetCommand>,
    report: &mpsc::UnboundedSender<Report>,
    stopped: watch::Sender<bool>,
) -> Result<(), LocalnetError> {
    let Built { svm, events, geyser_events } = genesis.build()?;
    let vm = SurfnetSvmLocker::new(svm);
    let _ = report.send(Report::Built(vm.clone()));

    let ready = report.clone();
    spawn("localnet events", move || watch_events(&events, &ready, &stopped))?;

    let rpc_commands = if genesis.accepts_v1_transactions() {
        commands
    } else {
        let (rpc_commands, from_rpc) = unbounded();
        spawn("localnet gate", move || gate::refuse_v1_transactions(from_rpc, commands))?;
        rpc_commands
    };

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("localnet run loop")
        .enable_all()
        .build()
        .map_err(LocalnetError::Thread)?;
    runtime
        .block_on(start_local_surfnet_runloop(vm, config, rpc_commands, run_loop_commands, geyser_events))
        .map_err(|error| ended(error.to_string()))
}

/// Empties the channel of events until both servers have ended or nothing can come any more.
///
/// The channel is bounded, and some of surfpool's threads wait for room in it while others wait for them.
fn watch_events(
    events: &Receiver<SimnetEvent>,
    report: &mpsc::UnboundedSender<Report>,
    stopped: &watch::Sender<bool>,
) {
    let mut running = SERVERS;
    for event in events {
        match event {
            SimnetEvent::CoreStarted(_) => {
                let _ = report.send(Report::Ready);
            }
            SimnetEvent::Aborted(reason) => {
                let _ = report.send(Report::Failed(ended(reason)));
            }
            SimnetEvent::Shutdown => {
                running = running.saturating_sub(1);
                if running == 0 {
                    break;
                }
            }
            _ => {}
        }
    }
    stopped.send_replace(true);
}

fn surfpool_config(genesis: &Genesis, rpc: &ReservedPort, websocket: &ReservedPort) -> SurfpoolConfig {
    SurfpoolConfig {
        simnets: vec![SimnetConfig {
            offline_mode: true,
            remote_rpc_url: None,
            slot_time: genesis.slot_time_ms(),
            block_production_mode: BlockProductionMode::Clock,
            instruction_profiling_enabled: false,
            ..SimnetConfig::default()
        }],
        rpc: RpcConfig {
            bind_host: BIND_HOST.to_owned(),
            bind_port: rpc.port(),
            ws_port: websocket.port(),
            ..RpcConfig::default()
        },
        ..SurfpoolConfig::default()
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), LocalnetError> {
    thread::Builder::new().name(name.to_owned()).spawn(body).map(drop).map_err(LocalnetError::Thread)
}

fn ended(reason: impl Into<String>) -> LocalnetError {
    LocalnetError::Ended { reason: reason.into() }
}
