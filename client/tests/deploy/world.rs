//! An authority with lamports on a local validator, and programs that can run under any address.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use committor_client::{
    Signers,
    chain::{Chain, ChainError, RpcChain, RpcSettings, SignedTransaction},
    deploy::{Buffers, DeployError, DeploySettings, Deployer, ProgramDeploy, Progress, Watch},
    plan::{ProgramGoal, UpgradeAuthority},
    types::TransactionVersion,
};
use committor_localnet::{Localnet, programs};
use committor_sdk::chunk_buffer;
use solana_account::Account;
use solana_address::Address;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_loader_v3_interface::get_program_data_address;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction as system;
use solana_transaction::versioned::VersionedTransaction;

/// What an authority has at the start.
pub const BALANCE: u64 = 1_000_000_000_000;
/// How long a slot is waited for.
pub const SLOT_LIMIT: Duration = Duration::from_secs(60);

pub struct World {
    _localnet: Localnet,
    pub authority: Arc<Keypair>,
    pub chain: Arc<RpcChain>,
}

impl World {
    pub async fn new() -> Self {
        Self::with_lamports(BALANCE).await
    }

    pub async fn with_lamports(lamports: u64) -> Self {
        let authority = Arc::new(Keypair::new());
        let builder = Localnet::builder().slot_time(Duration::from_millis(20));
        let localnet = builder.airdrop(authority.pubkey(), lamports).start().await.unwrap();
        let chain = Arc::new(RpcChain::new(RpcSettings {
            websocket_url: Some(localnet.ws_url().to_owned()),
            ..RpcSettings::new(localnet.rpc_url())
        }));
        Self { _localnet: localnet, authority, chain }
    }

    pub fn deployer(&self) -> Deployer {
        self.deployer_of(self.authority.clone(), None)
    }

    pub fn deployer_of(&self, authority: Arc<Keypair>, version: Option<TransactionVersion>) -> Deployer {
        let signers = Signers { payer: self.authority.clone(), authority };
        Deployer::new(self.chain.clone(), signers, DeploySettings { version, ..DeploySettings::default() })
    }

    /// One that sends so many transactions at a time, in the shorter format.
    pub fn deployer_in_flight(&self, transactions_in_flight: usize) -> Deployer {
        let signers = Signers { payer: self.authority.clone(), authority: self.authority.clone() };
        let version = Some(TransactionVersion::V0);
        let settings = DeploySettings { transactions_in_flight, version, ..DeploySettings::default() };
        Deployer::new(self.chain.clone(), signers, settings)
    }

    pub fn buffers(&self) -> Buffers {
        Buffers::new(self.chain.clone())
    }

    pub async fn find(&self, address: Address) -> Option<Account> {
        self.chain.accounts(&[address]).await.unwrap().remove(0)
    }

    pub async fn lamports(&self, address: Address) -> u64 {
        self.find(address).await.map_or(0, |account| account.lamports)
    }

    pub async fn balance(&self) -> u64 {
        self.lamports(self.authority.pubkey()).await
    }

    /// The bytes of a program with the room behind them.
    pub async fn program_data(&self, program: Address) -> Vec<u8> {
        self.find(get_program_data_address(&program)).await.unwrap().data.split_off(45)
    }

    /// Whether a program holds these bytes and nothing else.
    pub async fn holds(&self, program: Address, elf: &[u8]) -> bool {
        let data = self.program_data(program).await;
        data[..elf.len()] == *elf && data[elf.len()..].iter().all(|byte| *byte == 0)
    }

    /// Lands a transaction, in a slot after those that landed before.
    pub async fn send(&self, instructions: &[Instruction], signers: &[&Keypair]) -> Result<(), ChainError> {
        let slot = self.chain.slot().await.unwrap();
        self.chain.wait_for_slot(slot + 1, SLOT_LIMIT).await.unwrap();
        let recent = self.chain.recent_blockhash().await.unwrap();
        let message =
            v0::Message::try_compile(&signers[0].pubkey(), instructions, &[], recent.blockhash).unwrap();
        let transaction = VersionedTransaction::try_new(VersionedMessage::V0(message), signers).unwrap();
        let last_valid_block_height = recent.last_valid_block_height;
        let signed = SignedTransaction { transaction, last_valid_block_height, preflight: true };
        self.chain.land(signed).await.map(drop)
    }

    /// Runs the chunk buffer program at `program`: it makes a buffer.
    pub async fn run_chunk_buffer(&self, program: Address) {
        let (authority, seed) = (self.authority.pubkey(), format!("{}", rand::random::<u64>()));
        let buffer = Address::create_with_seed(&authority, &seed, &program).unwrap();
        // A header, 100 bytes, and a bitmap of one byte.
        let len = 96 + 100 + 1;
        let args = chunk_buffer::InitArgs { seed: seed.as_bytes(), payload_len: 100, chunk_size: 100 };
        let mut init = chunk_buffer::Init { authority, buffer }.instruction(args);
        init.program_id = program;
        let create = [
            system::transfer(&authority, &buffer, 10_000_000),
            system::allocate_with_seed(&buffer, &authority, &seed, len, &program),
            init,
        ];
        self.send(&create, &[&self.authority]).await.unwrap();
        let account = self.find(buffer).await.unwrap();
        assert!(account.data.starts_with(&chunk_buffer::Buffer::DISCRIMINATOR));
        assert_eq!(account.owner, program);
    }
}

/// The chunk buffer program as it would be built for `program`.
pub fn chunk_buffer_for(program: Address) -> Arc<[u8]> {
    let mut elf = programs::CHUNK_BUFFER.to_vec();
    let id = programs::CHUNK_BUFFER_ID;
    let at = elf.windows(32).position(|window| window == id.as_ref()).unwrap();
    elf[at..at + 32].copy_from_slice(program.as_ref());
    elf.into()
}

/// The same with something in it that nothing reads: another program of the same length.
pub fn changed(elf: &[u8]) -> Arc<[u8]> {
    let mut elf = elf.to_vec();
    let at = elf.len() - 1;
    // The last byte of the last section header.
    elf[at] ^= 1;
    elf.into()
}

/// A first deploy or an upgrade.
pub fn deploy(elf: &Arc<[u8]>, keypair: &Arc<Keypair>) -> ProgramDeploy {
    ProgramDeploy {
        elf: elf.clone(),
        program: keypair.pubkey(),
        keypair: Some(keypair.clone()),
        max_len: None,
        goal: ProgramGoal::Deployed(UpgradeAuthority::Same),
    }
}

/// The error of a deploy that comes from what it has in common with uploads.
pub fn common(error: &committor_client::deploy::ProgramDeployError) -> &DeployError {
    match error {
        committor_client::deploy::ProgramDeployError::Deploy(error) => error,
        other => panic!("{other}"),
    }
}

/// What a deploy told while it went on.
#[derive(Default)]
pub struct Told {
    landed: AtomicU64,
}

impl Told {
    pub fn watch(self: &Arc<Self>) -> Watch {
        self.stopping(u64::MAX)
    }

    /// A watch that stops once so many transactions have landed.
    pub fn stopping(self: &Arc<Self>, after: u64) -> Watch {
        let mut watch = Watch::default();
        let (told, stop) = (self.clone(), watch.stop.clone());
        watch.progress = Some(Arc::new(move |progress| match progress {
            Progress::Landed { .. } if told.landed.fetch_add(1, Ordering::SeqCst) + 1 >= after => {
                stop.cancel()
            }
            _ => (),
        }));
        watch
    }

    pub fn landed(&self) -> u64 {
        self.landed.load(Ordering::SeqCst)
    }
}
