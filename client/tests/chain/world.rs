//! What the tests share: a validator, a proxy before it, and who pays.

use std::{sync::Arc, time::Duration};

use committor_client::chain::{Chain, RetrySettings, RpcChain, RpcSettings, SignedTransaction};
use committor_faults::FaultProxy;
use committor_localnet::{Localnet, LocalnetBuilder, PAYER_LAMPORTS, Validator};
use solana_address::Address;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::versioned::VersionedTransaction;

/// Enough for an account without data to be rent exempt.
pub(crate) const LAMPORTS: u64 = 1_000_000;
/// Accounts that are delegated to the payer.
pub(crate) const DELEGATED: u8 = 8;

pub(crate) struct World {
    pub(crate) localnet: Arc<Localnet>,
    pub(crate) proxy: FaultProxy,
    payer: Keypair,
    lot: u8,
}

/// A payer with lamports, to whom accounts are delegated.
pub(crate) fn prepare(builder: LocalnetBuilder, lot: u8) -> LocalnetBuilder {
    let payer = payer(lot).pubkey();
    let builder = builder.airdrop(payer, PAYER_LAMPORTS);
    (1..=DELEGATED)
        .fold(builder, |builder, number| builder.delegated(delegated(lot, number), payer, vec![0; 100]))
}

fn payer(lot: u8) -> Keypair {
    Keypair::new_from_array([lot + 1; 32])
}

/// A lot's delegated accounts, by number from 1.
fn delegated(lot: u8, number: u8) -> Address {
    address(lot, u64::MAX - u64::from(number))
}

fn address(lot: u8, number: u64) -> Address {
    // Not zeroes, which is the system program.
    let mut bytes = [lot + 1; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Address::new_from_array(bytes)
}

impl World {
    pub(crate) async fn new(validator: Validator) -> Self {
        Self::seeded(validator, 1).await
    }

    pub(crate) async fn seeded(validator: Validator, seed: u64) -> Self {
        let (localnet, lot) = validator.start(prepare).await.unwrap();
        let proxy = FaultProxy::start(localnet.rpc_url(), localnet.ws_url(), seed).await.unwrap();
        Self { localnet, proxy, payer: payer(lot), lot }
    }

    /// Settings for the proxy, with waits that suit slots of 50 ms.
    pub(crate) fn settings(&self) -> RpcSettings {
        RpcSettings {
            websocket_url: Some(self.proxy.ws_url().to_owned()),
            retry: RetrySettings {
                first_delay: Duration::from_millis(5),
                max_delay: Duration::from_millis(50),
                ..RetrySettings::default()
            },
            poll_interval: Duration::from_millis(50),
            resend_interval: Duration::from_millis(200),
            position_max_age: Duration::from_millis(20),
            ..RpcSettings::new(self.proxy.rpc_url())
        }
    }

    pub(crate) fn chain(&self) -> RpcChain {
        RpcChain::new(self.settings())
    }

    /// Without a websocket: everything has to be asked for.
    pub(crate) fn polling(&self) -> RpcChain {
        RpcChain::new(RpcSettings { websocket_url: None, ..self.settings() })
    }

    /// As [`Self::polling`], past the proxy.
    pub(crate) fn direct(&self) -> RpcChain {
        RpcChain::new(RpcSettings {
            url: self.localnet.rpc_url().to_owned(),
            websocket_url: None,
            ..self.settings()
        })
    }

    /// An account that nobody has used yet, by number.
    pub(crate) fn address(&self, number: u64) -> Address {
        address(self.lot, number)
    }

    /// One of [`DELEGATED`] that are delegated to the payer, by number from 1.
    pub(crate) fn delegated(&self, number: u8) -> Address {
        delegated(self.lot, number)
    }

    pub(crate) fn payer(&self) -> &Keypair {
        &self.payer
    }

    /// A transfer to an account that has nothing yet.
    pub(crate) async fn transfer(&self, to: Address) -> SignedTransaction {
        self.signed(&[transfer(&self.payer().pubkey(), &to, LAMPORTS)]).await
    }

    /// Instructions of the payer's, signed with a recent blockhash.
    pub(crate) async fn signed(&self, instructions: &[Instruction]) -> SignedTransaction {
        let recent = self.direct().recent_blockhash().await.unwrap();
        let transaction = self.sign(instructions, recent.blockhash, &[]);
        let last_valid_block_height = recent.last_valid_block_height;
        SignedTransaction { transaction, last_valid_block_height, preflight: true }
    }

    pub(crate) fn sign(
        &self,
        instructions: &[Instruction],
        blockhash: Hash,
        others: &[&Keypair],
    ) -> VersionedTransaction {
        let payer = self.payer();
        let message = v0::Message::try_compile(&payer.pubkey(), instructions, &[], blockhash).unwrap();
        let mut signers = vec![payer];
        signers.extend(others);
        VersionedTransaction::try_new(VersionedMessage::V0(message), &signers).unwrap()
    }

    /// What an account has, by the validator itself.
    pub(crate) async fn balance(&self, address: Address) -> u64 {
        let found = self.direct().headers(&[address]).await.unwrap();
        found[0].map_or(0, |account| account.lamports)
    }
}
