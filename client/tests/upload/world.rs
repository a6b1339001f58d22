//! Authorities with lamports on a local validator, and what they send.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use committor_client::{
    Signers,
    chain::{Chain, RpcChain, RpcSettings, SignedTransaction},
    deploy::{Buffers, DeploySettings, Deployer, Progress, Watch},
    types::TransactionVersion,
};
use committor_localnet::{Localnet, LocalnetBuilder, Validator};
use solana_address::Address;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v1};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

/// Enough for several buffers of 10 MiB.
const BALANCE: u64 = 1_000_000_000_000;

pub struct World {
    /// Runs for as long as it is kept.
    _localnet: Arc<Localnet>,
    pub authority: Arc<Keypair>,
    pub chain: Arc<RpcChain>,
}

/// Short slots, where they can be chosen: uploads wait for several.
pub fn prepare(builder: LocalnetBuilder, _: u8) -> LocalnetBuilder {
    builder.slot_time(Duration::from_millis(20))
}

impl World {
    pub async fn new(validator: Validator) -> Self {
        let authority = Arc::new(Keypair::new());
        let (localnet, _) = validator.start(prepare).await.unwrap();
        localnet.airdrop(authority.pubkey(), BALANCE).await.unwrap();
        let chain = Arc::new(RpcChain::new(RpcSettings {
            websocket_url: Some(localnet.ws_url().to_owned()),
            ..RpcSettings::new(localnet.rpc_url())
        }));
        Self { _localnet: localnet, authority, chain }
    }

    pub fn deployer(&self) -> Deployer {
        self.deployer_on(None)
    }

    pub fn deployer_on(&self, version: Option<TransactionVersion>) -> Deployer {
        let signers = Signers { payer: self.authority.clone(), authority: self.authority.clone() };
        Deployer::new(self.chain.clone(), signers, DeploySettings { version, ..DeploySettings::default() })
    }

    /// The same authority, paid for by another key.
    pub fn paid_by(&self, payer: Arc<Keypair>) -> Deployer {
        let signers = Signers { payer, authority: self.authority.clone() };
        Deployer::new(self.chain.clone(), signers, DeploySettings::default())
    }

    pub fn buffers(&self) -> Buffers {
        Buffers::new(self.chain.clone())
    }

    pub async fn lamports(&self, address: Address) -> u64 {
        let found = self.chain.headers(&[address]).await.unwrap().pop().flatten();
        found.map_or(0, |found| found.lamports)
    }

    /// Lands a transaction that the authority signs and pays.
    pub async fn send(&self, instructions: &[Instruction]) {
        let payer = self.authority.pubkey();
        let recent = self.chain.recent_blockhash().await.unwrap();
        // In the format that also takes chunks of its own length.
        let config = v1::TransactionConfig::default()
            .with_compute_unit_limit(100_000)
            .with_loaded_accounts_data_size_limit(16 * 1024 * 1024);
        let message =
            v1::Message::try_compile_with_config(&payer, instructions, recent.blockhash, config).unwrap();
        let message = VersionedMessage::V1(message);
        let transaction = VersionedTransaction::try_new(message, &[&*self.authority]).unwrap();
        let last_valid_block_height = recent.last_valid_block_height;
        let signed = SignedTransaction { transaction, last_valid_block_height, preflight: true };
        self.chain.land(signed).await.unwrap();
    }
}

/// What an upload told while it went on.
#[derive(Default)]
pub struct Told {
    pub landed: AtomicU64,
}

impl Told {
    /// A watch that counts.
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

/// Bytes without a zero among them, others for each salt.
pub fn content(len: usize, salt: u64) -> Arc<[u8]> {
    let mut state = salt;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8 | 1
    };
    (0..len).map(next).collect()
}
