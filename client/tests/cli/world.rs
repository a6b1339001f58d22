//! Where the command runs: an empty home, and a validator in another process or in this one.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use committor_client::chain::{Chain, RpcChain, RpcSettings, SignedTransaction};
use committor_localnet::owner_program;
use serde_json::Value;
use solana_account::Account;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub const ASSETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/accounts");

/// An empty home and working folder, and nothing else of the caller's environment.
pub struct World {
    folder: TempDir,
}

impl World {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) -> &Self {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_committor"));
        command.args(args).env_clear().env("HOME", self.folder.path()).current_dir(self.folder.path());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Exit code, stdout and stderr, with what differs from run to run left out.
    pub fn show(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        format!(
            "exit code: {}\n----- stdout -----\n{}----- stderr -----\n{}",
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr)
        )
        .replace(&self.folder.path().display().to_string(), "FOLDER")
    }
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A running `committor localnet`; killed if a test fails before it stops it.
pub struct Localnet {
    child: Child,
    running: Value,
}

impl Localnet {
    /// Starts one with the real accounts delegated to a new keypair at `id.json`.
    pub fn start(world: &World) -> Self {
        let args = ["localnet", "--rpc-port", "0", "--ws-port", "0", "--keypair", "id.json"];
        let mut command = world.command(&args);
        command.args(["--output", "json-compact", "--delegate", ASSETS]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, running: serde_json::from_str(&line).unwrap() }
    }

    pub fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let url = |name: &str| self.running[name].as_str().unwrap();
        let cluster = ["--url", url("rpc_url"), "--ws", url("websocket_url"), "--keypair", "id.json"];
        args.iter().copied().chain(cluster).collect()
    }

    pub fn interrupt(mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Localnet {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// A validator in this process, with slots of any length and accounts of any kind. Its payer is the authority, whose keypair
/// is at `id.json`.
pub struct Cluster {
    runtime: Runtime,
    localnet: committor_localnet::Localnet,
    rpc: RpcSettings,
}

/// An account that some cluster has, by a byte.
pub fn account(byte: u8) -> Address {
    Address::new_from_array([byte; 32])
}

impl Cluster {
    /// Starts one where the accounts of `bytes` are delegated and hold 100 zeroes.
    pub fn start(world: &World, slot_time: Duration, bytes: impl IntoIterator<Item = u8>) -> Self {
        // The same in every run, so that snapshots can show what depends on it.
        let payer = Keypair::new_from_array([3; 32]);
        world.write("id.json", &format!("{:?}", payer.to_bytes().to_vec()));
        let mut builder = committor_localnet::Localnet::builder().slot_time(slot_time);
        for byte in bytes {
            builder = builder.delegated(account(byte), payer.pubkey(), vec![0; 100]);
        }
        let runtime = Runtime::new().unwrap();
        let localnet = runtime.block_on(builder.payer(payer).start()).unwrap();
        let websocket_url = Some(localnet.ws_url().to_owned());
        let rpc = RpcSettings { websocket_url, ..RpcSettings::new(localnet.rpc_url()) };
        Self { runtime, localnet, rpc }
    }

    pub fn url(&self) -> &str {
        self.localnet.rpc_url()
    }

    pub fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let (url, websocket) = (self.localnet.rpc_url(), self.localnet.ws_url());
        let cluster = ["--url", url, "--ws", websocket, "--keypair", "id.json"];
        args.iter().copied().chain(cluster).collect()
    }

    /// An account of the example owner program, delegated to the authority.
    pub fn owned(&self, number: u64) -> Address {
        let payer = self.localnet.payer();
        let authority = payer.pubkey();
        let instructions = [
            owner_program::create(&authority, number, 100),
            owner_program::delegate(&authority, number, &authority),
        ];
        self.runtime.block_on(async {
            let chain = RpcChain::new(self.rpc.clone());
            let recent = chain.recent_blockhash().await.unwrap();
            let message = v0::Message::try_compile(&authority, &instructions, &[], recent.blockhash).unwrap();
            let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), &[payer]).unwrap();
            let last_valid_block_height = recent.last_valid_block_height;
            let signed = SignedTransaction { transaction, last_valid_block_height, preflight: true };
            chain.land(signed).await.unwrap();
            chain.shutdown().await;
        });
        owner_program::account(&authority, number)
    }

    pub fn authority(&self) -> Address {
        self.localnet.payer().pubkey()
    }

    /// An account as it is on chain now.
    pub fn find(&self, address: Address) -> Option<Account> {
        self.runtime.block_on(async {
            let chain = RpcChain::new(self.rpc.clone());
            let found = chain.accounts(&[address]).await.unwrap().remove(0);
            chain.shutdown().await;
            found
        })
    }

    pub fn lamports(&self, address: Address) -> u64 {
        self.find(address).map_or(0, |account| account.lamports)
    }
}

/// A bundle of a changeset file.
pub fn bundle(id: u64, accounts: &[(Address, &[u8])]) -> Value {
    let account = |(address, state): &(Address, &[u8])| serde_json::json!({ "pubkey": address.to_string(), "data": data(state) });
    serde_json::json!({ "id": id, "accounts": accounts.iter().map(account).collect::<Vec<_>>() })
}

/// Bytes in the form of a changeset file.
pub fn data(bytes: &[u8]) -> Value {
    use base64::{Engine, prelude::BASE64_STANDARD};
    serde_json::json!([BASE64_STANDARD.encode(bytes), "base64"])
}

/// A changeset file.
pub fn changeset(bundles: &[Value]) -> String {
    serde_json::json!({ "bundles": bundles }).to_string()
}

/// Bytes of which no patch is worth it.
pub fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * index / 3 + index) as u8 | 1).collect()
}

/// Runs `check` with what differs from run to run left out of snapshots.
pub fn filtered(check: impl FnOnce()) {
    let filters = vec![
        (r"127.0.0.1:\d+", "HOST"),
        (r"[1-9A-HJ-NP-Za-km-z]{80,90}", "SIGNATURE"),
        (r" [1-9A-HJ-NP-Za-km-z]{8}…", " SIGNATU…"),
        // What the programs cost is pinned elsewhere.
        (r"(-v[01] +\d+ +)\d+( +\d+   )", "${1}UNITS${2}"),
    ];
    insta::with_settings!({ filters => filters }, { check() });
}
