//! Agave's own validator, in a process of its own, with the same accounts and programs.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use solana_account::Account;
use solana_address::Address;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    error::LocalnetError,
    genesis::{Genesis, overflow},
};

/// Ready takes half a second; a machine that is building something else meanwhile may take many times that.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often it is asked whether it is ready, or whether an airdrop has landed.
const ASK_INTERVAL: Duration = Duration::from_millis(50);
/// In its first slots it loses what it is sent once, as a test does that counts on it.
const READY_SLOT: u64 = 40;
/// Length of a tick in microseconds, as Agave has it.
const TICK_US: u128 = 6_250;
/// Fewer ticks in a slot do not leave the validator time to make a block.
const MIN_TICKS_PER_SLOT: u128 = 8;
/// Ports that one takes: RPC, websocket, faucet, gossip, and its dynamic range.
const PORTS: u16 = 40;
/// Where blocks of ports are looked for: below those that systems give to connections.
const FIRST_PORT: u16 = 10_000;
const BLOCKS: u16 = 500;

/// A running process. Dropping it ends it.
pub(crate) struct Agave {
    child: Child,
    rpc_url: String,
    pub(crate) rpc_port: u16,
    _folder: TempDir,
}

impl Drop for Agave {
    fn drop(&mut self) {
        // It may have ended of itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agave {
    pub(crate) async fn start(
        program: &Path,
        genesis: &Genesis,
        mint: Address,
    ) -> Result<Self, LocalnetError> {
        let failed = |source| LocalnetError::Process { program: program.to_owned(), source };
        let folder = tempfile::tempdir().map_err(failed)?;
        let mut command = Command::new(program);
        command
            .args(["--quiet", "--bind-address", "127.0.0.1", "--mint", &mint.to_string()])
            .arg("--ledger")
            .arg(folder.path().join("ledger"));
        let ticks = (genesis.slot_time.as_micros() / TICK_US).max(MIN_TICKS_PER_SLOT);
        command.args(["--ticks-per-slot", &ticks.to_string()]);
        for closed in genesis.closed_features() {
            command.args(["--deactivate-feature", &closed.to_string()]);
        }
        for (number, (address, elf)) in genesis.programs.iter().enumerate() {
            let path = folder.path().join(format!("{number}.so"));
            fs::write(&path, elf).map_err(failed)?;
            // As on other clusters, its code is in an account of its own.
            command.args(["--upgradeable-program", &address.to_string()]).arg(path).arg("none");
        }
        let accounts = folder.path().join("accounts");
        write_accounts(&accounts, genesis)?.map_err(failed)?;
        command.arg("--account-dir").arg(accounts);
        let rpc_port = free_ports().ok_or_else(|| failed(io::ErrorKind::AddrInUse.into()))?;
        let options = [
            ("--rpc-port", rpc_port.to_string()),
            ("--faucet-port", (rpc_port + 2).to_string()),
            ("--gossip-port", (rpc_port + 3).to_string()),
            ("--dynamic-port-range", format!("{}-{}", rpc_port + 4, rpc_port + PORTS)),
        ];
        for (option, value) in options {
            command.args([option, &value]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = child.spawn().map_err(failed)?;
        let rpc_url = format!("http://127.0.0.1:{rpc_port}");
        let mut agave = Self { child, rpc_url, rpc_port, _folder: folder };
        agave.until_ready().await.map_err(failed)??;
        Ok(agave)
    }

    /// Waits for a slot.
    async fn until_ready(&mut self) -> Result<Result<(), LocalnetError>, io::Error> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let slot = self.ask("getSlot", json!([{ "commitment": "confirmed" }])).await;
            if slot.is_some_and(|slot| slot.as_u64().is_some_and(|slot| slot >= READY_SLOT)) {
                return Ok(Ok(()));
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("it ended with {status}")));
            }
            if Instant::now() > deadline {
                return Ok(Err(LocalnetError::TimedOut { what: "become ready", limit: START_LIMIT }));
            }
            sleep(ASK_INTERVAL).await;
        }
    }

    /// Has the faucet send lamports, and waits until they are there.
    pub(crate) async fn airdrop(&self, address: Address, lamports: u64) -> Result<(), LocalnetError> {
        let limit = START_LIMIT;
        let late = LocalnetError::TimedOut { what: "credit an account", limit };
        let deadline = Instant::now() + limit;
        let signature = self.ask("requestAirdrop", json!([address.to_string(), lamports])).await;
        let Some(signature) = signature else { return Err(late) };
        loop {
            let status = self.ask("getSignatureStatuses", json!([[signature]])).await.unwrap_or_default();
            let status = &status["value"][0]["confirmationStatus"];
            if status == "confirmed" || status == "finalized" {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(late);
            }
            sleep(ASK_INTERVAL).await;
        }
    }

    /// What it answers, if it does.
    async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        // Not kept: its connections end with the runtime that they were made on, and this process has several.
        let http = reqwest::Client::builder().no_proxy().build().ok()?;
        let request = http.post(&self.rpc_url).header("content-type", "application/json").body(body);
        let answer = request.send().await.ok()?.bytes().await.ok()?;
        let answer: Value = serde_json::from_slice(&answer).ok()?;
        answer.get("result").cloned()
    }
}

/// Writes one file per account, as `solana account --output json` does.
fn write_accounts(folder: &Path, genesis: &Genesis) -> Result<io::Result<()>, LocalnetError> {
    let mut accounts: BTreeMap<Address, Account> = genesis.accounts.iter().cloned().collect();
    for (address, lamports) in &genesis.balances {
        let account = accounts.entry(*address).or_default();
        account.lamports = account.lamports.checked_add(*lamports).ok_or_else(|| overflow(*address))?;
    }
    let write = || {
        fs::create_dir(folder)?;
        for (address, account) in &accounts {
            let account = json!({ "pubkey": address.to_string(), "account": {
                "lamports": account.lamports, "data": [BASE64_STANDARD.encode(&account.data), "base64"],
                "owner": account.owner.to_string(), "executable": account.executable,
                "rentEpoch": u64::MAX, "space": account.data.len() } });
            fs::write(folder.join(format!("{address}.json")), account.to_string())?;
        }
        Ok(())
    };
    Ok(write())
}

/// The first of as many ports in a row that nobody uses now.
fn free_ports() -> Option<u16> {
    let start = (std::process::id() % u32::from(BLOCKS)) as u16;
    (0..BLOCKS).find_map(|offset| {
        let first = FIRST_PORT + (start + offset) % BLOCKS * PORTS;
        let is_free = |port| {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
                && UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
        };
        (first..first + PORTS).all(is_free).then_some(first)
    })
}
