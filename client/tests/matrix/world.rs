//! A local validator with the accounts of all cells, and the committors that work on them.

use std::{sync::Arc, time::Duration};

use committor_client::{
    Committor, EngineSettings,
    chain::{Chain, RpcChain, RpcSettings},
    types::TransactionVersion,
};
use committor_localnet::{Localnet, LocalnetBuilder};
use committor_sdk::chunk_buffer;
use solana_account::Account;
use solana_address::Address;
use solana_commitment_config::CommitmentConfig;
use solana_keypair::Keypair;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_signer::Signer;

use crate::model::{Cell, Expected};

/// Enough for the rent of everything that is on its way at a time.
const LAMPORTS: u64 = 1_000_000_000_000_000;
/// Under this load a virtual machine that runs one transaction after the other falls behind: blockhashes, which live for
/// 150 slots, have to outlive that.
const SLOT_TIME: Duration = Duration::from_millis(100);

/// Who works on the cells of one kind: its own keypairs, committor and store.
pub struct Desk {
    pub authority: Arc<Keypair>,
    pub payer: Arc<Keypair>,
    pub committor: Committor,
    _folder: tempfile::TempDir,
}

/// The keypairs of one kind of cells.
struct Signers {
    authority: Arc<Keypair>,
    payer: Arc<Keypair>,
}

/// A local validator on which every cell's accounts are delegated, and a desk for each kind of cell.
pub struct World {
    desks: Vec<Desk>,
    pub chain: RpcChain,
    rpc: RpcClient,
    /// The validator runs as long as this is kept.
    _localnet: Localnet,
}

/// Cells of one kind share a desk. Those that are refused have one of their own, since they must not cost anything.
fn desk_of(cell: &Cell) -> usize {
    let refused = matches!(cell.expected(), Expected::Refused(_));
    let v1 = cell.version == TransactionVersion::V1;
    usize::from(v1) + 2 * usize::from(cell.own_payer) + 4 * usize::from(refused)
}

/// How many kinds there are.
const DESKS: usize = 8;

impl World {
    /// A world in which `accounts` gives each cell's accounts and what they hold.
    pub async fn new<'a>(cells: impl Iterator<Item = (&'a Cell, Vec<(Address, Vec<u8>)>)>) -> Self {
        let signers: Vec<Signers> = (0..DESKS)
            .map(|desk| {
                let authority = Arc::new(Keypair::new());
                let payer = if desk & 2 == 0 { authority.clone() } else { Arc::new(Keypair::new()) };
                Signers { authority, payer }
            })
            .collect();
        let mut builder: LocalnetBuilder = Localnet::builder().slot_time(SLOT_TIME);
        for signers in &signers {
            builder = builder.airdrop(signers.payer.pubkey(), LAMPORTS);
        }
        for (cell, accounts) in cells {
            let authority = signers[desk_of(cell)].authority.pubkey();
            for (account, state) in accounts {
                builder = builder.delegated(account, authority, state);
            }
        }
        let localnet = builder.start().await.unwrap();
        let settings = RpcSettings {
            websocket_url: Some(localnet.ws_url().to_owned()),
            ..RpcSettings::new(localnet.rpc_url())
        };
        let mut desks = Vec::new();
        for (desk, Signers { authority, payer }) in signers.into_iter().enumerate() {
            let version = if desk & 1 == 0 { TransactionVersion::V0 } else { TransactionVersion::V1 };
            let folder = tempfile::tempdir().unwrap();
            let engine =
                EngineSettings { version: Some(version), record_costs: false, ..EngineSettings::default() };
            let committor = Committor::builder()
                .rpc(settings.clone())
                .authority(authority.clone())
                .payer(payer.clone())
                .store(folder.path().join("committor.db"))
                .settings(engine)
                .start()
                .await
                .unwrap();
            desks.push(Desk { authority, payer, committor, _folder: folder });
        }
        let chain = RpcChain::new(settings);
        let rpc =
            RpcClient::new_with_commitment(localnet.rpc_url().to_owned(), CommitmentConfig::confirmed());
        Self { desks, chain, rpc, _localnet: localnet }
    }

    /// Who works on a cell.
    pub fn desk(&self, cell: &Cell) -> &Desk {
        &self.desks[desk_of(cell)]
    }

    /// Who works on a cell that has been found to fit.
    pub fn desk_that_lands(&self, cell: &Cell) -> &Desk {
        &self.desks[desk_of(cell) & 3]
    }

    /// An account as it is now.
    pub async fn account(&self, address: Address) -> Option<Account> {
        self.chain.accounts(&[address]).await.unwrap().pop().unwrap()
    }

    /// Checks what holds for all cells together: no buffer is left anywhere, and what was refused cost nothing.
    pub async fn check(&self) {
        let left = self.rpc.get_program_ui_accounts_with_config(&chunk_buffer::ID, Default::default()).await;
        assert_eq!(left.unwrap().len(), 0, "buffers stayed");
        for desk in &self.desks[4..] {
            let payer = desk.payer.pubkey();
            assert_eq!(
                self.rpc.get_balance(&payer).await.unwrap(),
                LAMPORTS,
                "a refused bundle cost something"
            );
            let sent = self.rpc.get_signatures_for_address(&payer).await.unwrap();
            assert_eq!(sent.len(), 0, "a refused bundle sent something");
        }
    }

    /// Stops everything, and finds nothing that was left undone.
    pub async fn end(self) {
        for desk in &self.desks {
            assert_eq!(desk.committor.shutdown(Duration::from_secs(5)).await.unwrap(), 0);
        }
    }
}
