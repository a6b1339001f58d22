use std::{path::Path, sync::Arc, time::Duration};

use solana_account::Account;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_signer::Signer;

use crate::{
    agave::Agave,
    delegated,
    error::{LocalnetError, Server},
    features,
    genesis::Genesis,
    localnet::Localnet,
    node::Node,
    ports::ReservedPort,
};

/// Time between two blocks unless [`LocalnetBuilder::slot_time`] says otherwise.
///
/// Mainnet takes 200 ms or more. Tests mostly wait for blocks, so less is better; but surfpool looks for what to tell
/// its subscribers only every 50 ms, so a shorter slot confirms nothing sooner, and it would shorten the life of a
/// blockhash, 150 slots, below the 7.5 seconds that a busy machine needs.
pub const DEFAULT_SLOT_TIME: Duration = Duration::from_millis(50);

/// Lamports of [`Localnet::payer`] at the start: 100,000 SOL, enough for the rent of a thousand accounts of 10 MiB.
pub const PAYER_LAMPORTS: u64 = 100_000_000_000_000;

/// Configures a [`Localnet`].
#[derive(Debug, Default)]
pub struct LocalnetBuilder {
    rpc_port: Option<u16>,
    ws_port: Option<u16>,
    payer: Option<Keypair>,
    genesis: Genesis,
}

impl LocalnetBuilder {
    /// Listens for JSON-RPC on `port` of 127.0.0.1. By default, or with 0, on any free port.
    pub fn rpc_port(mut self, port: u16) -> Self {
        self.rpc_port = Some(port);
        self
    }

    /// Listens for subscriptions on `port` of 127.0.0.1. By default, or with 0, on any free port.
    ///
    /// Clients that derive it from the RPC port expect it one above.
    pub fn ws_port(mut self, port: u16) -> Self {
        self.ws_port = Some(port);
        self
    }

    /// Sets the time between two blocks, in whole milliseconds and at least one. Default: [`DEFAULT_SLOT_TIME`].
    ///
    /// A transaction is `confirmed` at the end of its slot, `finalized` 31 slots later, and a blockhash lives for
    /// 150 slots.
    pub fn slot_time(mut self, slot_time: Duration) -> Self {
        self.genesis.slot_time = slot_time;
        self
    }

    /// Uses `payer` instead of a new keypair for [`Localnet::payer`].
    pub fn payer(mut self, payer: Keypair) -> Self {
        self.payer = Some(payer);
        self
    }

    /// Loads a further SBF program, or replaces one of the project's own. It has no upgrade authority.
    pub fn program(mut self, program: Address, elf: Vec<u8>) -> Self {
        self.genesis.programs.push((program, Arc::from(elf)));
        self
    }

    /// Starts with `account` at `address`, whatever program owns it.
    pub fn account(mut self, address: Address, account: Account) -> Self {
        self.genesis.accounts.push((address, account));
        self
    }

    /// Starts with an account of `state` at `address` that is delegated to `authority`.
    ///
    /// Its owner program is the example one, which takes it back when it is undelegated, although it did not make it.
    pub fn delegated(self, address: Address, authority: Address, state: Vec<u8>) -> Self {
        let (account, record) = delegated::accounts(&address, &authority, state);
        let record_address = committor_sdk::address::record(&address);
        self.account(address, account).account(record_address, record)
    }

    /// Gives `lamports` to `address` before the first block.
    pub fn airdrop(mut self, address: Address, lamports: u64) -> Self {
        self.genesis.balances.push((address, lamports));
        self
    }

    /// Closes a feature gate that is open by default.
    pub fn deactivate_feature(mut self, feature: Address) -> Self {
        self.genesis.features = self.genesis.features.disable(feature);
        self
    }

    /// Opens a feature gate that is closed by default, because it is closed on mainnet.
    pub fn activate_feature(mut self, feature: Address) -> Self {
        self.genesis.features = self.genesis.features.enable(feature);
        self
    }

    /// Plays a cluster that has no v1 transactions yet: their feature has no account, and sending one is refused with
    /// `UnsupportedVersion`, with or without preflight. (`simulateTransaction` still runs them.)
    pub fn without_v1_transactions(self) -> Self {
        self.deactivate_feature(features::ENABLE_TX_V1)
    }

    /// Starts the localnet and waits until it answers.
    ///
    /// # Errors
    /// [`LocalnetError::PortInUse`], naming the port, if a port that was asked for is taken;
    /// [`LocalnetError::LoadProgram`] if a program's bytes are not an SBF program.
    pub async fn start(self) -> Result<Localnet, LocalnetError> {
        let (rpc_port, ws_port) = (self.rpc_port, self.ws_port);
        let (genesis, payer) = self.genesis();
        let rpc = ReservedPort::reserve(Server::Rpc, rpc_port)?;
        let websocket = ReservedPort::reserve(Server::WebSocket, ws_port)?;
        // A reservation alone would let both have the port, and the second server would fail to listen.
        if rpc.port() == websocket.port() {
            return Err(LocalnetError::SamePort { port: rpc.port() });
        }
        let (rpc_port, ws_port) = (rpc.port(), websocket.port());
        let node = Node::start(genesis, rpc, websocket).await?;
        Ok(Localnet::new(node, rpc_port, ws_port, payer))
    }

    /// Starts Agave's validator, `program`, in a process of its own, and waits until it takes transactions. Ports that were
    /// asked for are not looked at, and a slot takes 50 ms at least.
    ///
    /// # Errors
    /// [`LocalnetError::Process`] if it can't be started or ends; [`LocalnetError::TimedOut`] if it does not become ready.
    pub async fn start_on_agave(self, program: &Path) -> Result<Localnet, LocalnetError> {
        let (genesis, payer) = self.genesis();
        let agave = Agave::start(program, &genesis, payer.pubkey()).await?;
        Ok(Localnet::on_agave(agave, payer))
    }

    fn genesis(self) -> (Genesis, Keypair) {
        let payer = self.payer.unwrap_or_else(Keypair::new);
        let mut genesis = self.genesis;
        genesis.balances.push((payer.pubkey(), PAYER_LAMPORTS));
        (genesis, payer)
    }
}
