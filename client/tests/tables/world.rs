//! Authorities of tables on a local validator.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Output},
    sync::{Arc, Mutex, atomic::AtomicUsize},
    time::Duration,
};

use committor_client::{
    EngineError, Signers, Store,
    chain::{Chain, RpcChain, RpcSettings, SignedTransaction},
    engine::tables::{TableReport, TableSettings, TableState, Tables},
    types::{LookupTable, TableHolder},
};
use committor_localnet::{Localnet, LocalnetBuilder, Validator};
use solana_address::Address;
use solana_address_lookup_table_interface::state::AddressLookupTable;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{AddressLookupTableAccount, VersionedMessage, v0};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use tokio::sync::Notify;

use crate::chain::{Fault, FaultyChain};

/// More than an authority's transactions can cost here, and less than the rent of the smallest table.
pub const MAX_FEES: u64 = 1_000_000;
pub const BALANCE: u64 = 10_000_000_000;

/// An authority of tables on a local validator, and its store. Several share a validator: cool-downs take long.
pub struct World {
    pub localnet: Arc<Localnet>,
    pub authority: Arc<Keypair>,
    pub folder: tempfile::TempDir,
}

/// A cool-down takes 512 slots.
pub fn prepare(builder: LocalnetBuilder, _: u8) -> LocalnetBuilder {
    builder.slot_time(Duration::from_millis(10))
}

impl World {
    /// As many authorities on one embedded validator.
    pub async fn many(count: usize) -> Vec<Self> {
        let localnet = Arc::new(prepare(Localnet::builder(), 0).start().await.unwrap());
        let world = || Self::on(localnet.clone());
        futures::future::join_all((0..count).map(|_| world())).await
    }

    pub async fn new(validator: Validator) -> Self {
        Self::on(validator.start(prepare).await.unwrap().0).await
    }

    async fn on(localnet: Arc<Localnet>) -> Self {
        let authority = Arc::new(Keypair::new());
        localnet.airdrop(authority.pubkey(), BALANCE).await.unwrap();
        Self { localnet, authority, folder: tempfile::tempdir().unwrap() }
    }

    pub fn store_path(&self) -> std::path::PathBuf {
        Path::new(self.folder.path()).join("committor.db")
    }

    pub fn store(&self) -> Store {
        Store::open(&self.store_path()).unwrap()
    }

    pub fn rpc(&self) -> RpcChain {
        RpcChain::new(RpcSettings {
            websocket_url: Some(self.localnet.ws_url().to_owned()),
            poll_interval: Duration::from_millis(100),
            ..RpcSettings::new(self.localnet.rpc_url())
        })
    }

    pub fn signers(&self) -> Signers {
        Signers { payer: self.authority.clone(), authority: self.authority.clone() }
    }

    pub fn settings() -> TableSettings {
        TableSettings { slot_poll_interval: Duration::from_millis(20), ..TableSettings::default() }
    }

    /// A manager, and its chain.
    pub fn tables(&self) -> (Tables<FaultyChain>, Arc<FaultyChain>) {
        self.faulty(Fault::None, usize::MAX, Self::settings())
    }

    pub fn faulty(
        &self,
        fault: Fault,
        at: usize,
        settings: TableSettings,
    ) -> (Tables<FaultyChain>, Arc<FaultyChain>) {
        let chain = Arc::new(FaultyChain {
            inner: self.rpc(),
            fault,
            at,
            points: AtomicUsize::new(0),
            reached: Notify::new(),
            landed: AtomicUsize::new(0),
            ambush: Mutex::new(None),
        });
        (Tables::new(chain.clone(), self.store(), self.signers(), settings), chain)
    }

    pub async fn sign(
        &self,
        chain: &RpcChain,
        instructions: &[Instruction],
        tables: &[LookupTable],
    ) -> SignedTransaction {
        let recent = chain.recent_blockhash().await.unwrap();
        let account = |table: &LookupTable| AddressLookupTableAccount {
            key: table.address,
            addresses: table.addresses.clone(),
        };
        let tables: Vec<_> = tables.iter().map(account).collect();
        let payer = self.authority.pubkey();
        let message = v0::Message::try_compile(&payer, instructions, &tables, recent.blockhash).unwrap();
        let message = VersionedMessage::V0(message);
        SignedTransaction {
            transaction: VersionedTransaction::try_new(message, &[&self.authority]).unwrap(),
            last_valid_block_height: recent.last_valid_block_height,
            preflight: true,
        }
    }

    /// What is in a table on chain.
    pub async fn entries(&self, table: Address) -> Vec<Address> {
        let account = self.rpc().accounts(&[table]).await.unwrap().pop().flatten().unwrap();
        AddressLookupTable::deserialize(&account.data).unwrap().addresses.to_vec()
    }

    pub async fn balance(&self) -> u64 {
        let account = self.rpc().accounts(&[self.authority.pubkey()]).await.unwrap().pop().flatten();
        account.unwrap().lamports
    }

    /// The end that every run must come to: nothing is left on chain, and all rent came back.
    pub async fn check_all_closed(&self, context: &str) {
        let left = self.rpc().tables_of(&self.authority.pubkey()).await.unwrap();
        assert!(left.is_empty(), "{context}: {} tables are left", left.len());
        let spent = BALANCE - self.balance().await;
        assert!(spent < MAX_FEES, "{context}: {spent} lamports are gone");
    }

    pub async fn committor(&self, args: &[&str]) -> Output {
        let keypair = self.folder.path().join("id.json");
        std::fs::write(&keypair, format!("{:?}", self.authority.to_bytes())).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_committor"));
        command.args(args).env_clear().env("HOME", self.folder.path()).current_dir(self.folder.path());
        command.args([
            "--url",
            self.localnet.rpc_url(),
            "--ws",
            self.localnet.ws_url(),
            "--keypair",
            "id.json",
        ]);
        // The validator lives in this process: it must go on meanwhile.
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    }
}

pub fn keys(range: std::ops::Range<u16>) -> Vec<Address> {
    let key = |number: u16| {
        let mut bytes = [7; 32];
        bytes[..2].copy_from_slice(&number.to_le_bytes());
        Address::new_from_array(bytes)
    };
    range.map(key).collect()
}

pub fn named(name: &str) -> TableHolder {
    TableHolder::Named(name.to_owned())
}

pub fn assert_distinct(entries: &[Address]) {
    assert_eq!(entries.iter().collect::<BTreeSet<_>>().len(), entries.len(), "an address is in twice");
}

pub fn states(list: &[TableReport]) -> Vec<TableState> {
    list.iter().map(|table| table.state).collect()
}

/// Nothing but an error that may pass comes before the answer.
pub async fn until_ok<T>(mut call: impl AsyncFnMut() -> Result<T, EngineError>) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }
}
