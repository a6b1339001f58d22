use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crossbeam_channel::Receiver;
use solana_account::Account;
use solana_address::Address;
use solana_keypair::Keypair;
use solana_signer::Signer;
use surfpool_core::surfnet::{
    GeyserEvent,
    svm::{SurfnetSvm, SurfnetSvmConfig},
};
use surfpool_types::{SimnetEvent, SimnetEventsTx, SvmFeatureConfig};

use crate::{error::LocalnetError, features, programs};

/// The state of the chain before its first block.
#[derive(Debug)]
pub(crate) struct Genesis {
    pub(crate) slot_time: Duration,
    pub(crate) features: SvmFeatureConfig,
    pub(crate) programs: Vec<(Address, Arc<[u8]>)>,
    pub(crate) balances: Vec<(Address, u64)>,
    pub(crate) accounts: Vec<(Address, Account)>,
}

impl Default for Genesis {
    /// Mainnet's features, v1 transactions among them, and the project's programs.
    fn default() -> Self {
        Self {
            slot_time: crate::DEFAULT_SLOT_TIME,
            // The virtual machine's list of mainnet's features is older than the activation of v1 transactions. The
            // lock limit is closed there already; naming it keeps it closed when that list is updated.
            features: SvmFeatureConfig::new()
                .enable(features::ENABLE_TX_V1)
                .disable(features::INCREASE_TX_ACCOUNT_LOCK_LIMIT),
            programs: programs::ALL.iter().map(|(id, bytes)| (*id, Arc::from(*bytes))).collect(),
            balances: Vec::new(),
            accounts: Vec::new(),
        }
    }
}

impl Genesis {
    pub(crate) fn accepts_v1_transactions(&self) -> bool {
        self.features.is_enabled(&features::ENABLE_TX_V1) == Some(true)
    }

    /// The gates that matter here and are closed.
    pub(crate) fn closed_features(&self) -> impl Iterator<Item = Address> {
        let known = [features::ENABLE_TX_V1, features::INCREASE_TX_ACCOUNT_LOCK_LIMIT];
        known.into_iter().filter(|feature| self.features.is_enabled(feature) != Some(true))
    }

    /// Whole milliseconds are all that surfpool's clock can count, and its sums must not overflow.
    pub(crate) fn slot_time_ms(&self) -> u64 {
        u32::try_from(self.slot_time.as_millis()).unwrap_or(u32::MAX).max(1).into()
    }

    /// Builds the virtual machine in this state.
    pub(crate) fn build(&self) -> Result<Built, LocalnetError> {
        let mut svm = empty_vm(&self.features)?;
        let (simnet_events, events) = SimnetEventsTx::channel(EVENTS);
        (svm.simnet_events_tx, svm.start_time) = (simnet_events, SystemTime::now());
        let geyser_events;
        (svm.geyser_events_tx, geyser_events) = crossbeam_channel::bounded(EVENTS);
        svm.slot_time = self.slot_time_ms();
        svm.updated_at = unix_time_ms();
        svm.genesis_updated_at = svm.updated_at;
        // Each start is a cluster of its own, also if its machine is a copy.
        svm.cached_genesis_hash = Some(Keypair::new().pubkey().to_bytes().into());
        svm.reconstruct_sysvars();

        for (program, bytes) in &self.programs {
            svm.inner
                .svm
                .add_program(*program, bytes)
                .map_err(|source| LocalnetError::LoadProgram { program: *program, source })?;
        }
        for (address, account) in &self.accounts {
            svm.set_account(address, account.clone())
                .map_err(|source| LocalnetError::SetAccount { address: *address, source })?;
        }
        for (address, lamports) in &self.balances {
            credit(&mut svm, *address, *lamports)?;
        }
        // Until a block is closed, surfpool reports the number of the slot, 31, as the block height, and promises a
        // blockhash 30 blocks more than it will live.
        svm.confirm_current_block().map_err(LocalnetError::CreateVm)?;
        Ok(Built { svm, events, geyser_events })
    }
}

/// Room for events on each of surfpool's two channels, as surfpool has it.
const EVENTS: usize = 1_024;

/// A virtual machine, and the ends of its channels that somebody must read.
pub(crate) struct Built {
    pub(crate) svm: SurfnetSvm,
    pub(crate) events: Receiver<SimnetEvent>,
    pub(crate) geyser_events: Receiver<GeyserEvent>,
}

/// A virtual machine without anything of ours, a copy of the last one with these features if there was one.
///
/// Making one parses a megabyte of interface descriptions and verifies several well-known programs, which is nearly
/// all of the 150 ms that the first start takes in an unoptimised build. With a copy a start takes 3 ms.
fn empty_vm(features: &SvmFeatureConfig) -> Result<SurfnetSvm, LocalnetError> {
    static LAST: Mutex<Option<(SvmFeatureConfig, SurfnetSvm)>> = Mutex::new(None);

    // Under the lock, so that of several starts at once only the first one does the work.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((same, svm)) = &*last
        && same == features
    {
        return Ok(svm.clone());
    }
    let config = SurfnetSvmConfig {
        feature_config: features.clone(),
        // Profiling copies the whole virtual machine and runs everything once more for each instruction.
        instruction_profiling_enabled: false,
        ..SurfnetSvmConfig::default()
    };
    let (mut svm, _, _) = SurfnetSvm::new(config).map_err(LocalnetError::CreateVm)?;
    // They serve surfpool's own methods only, and make up most of a copy.
    svm.registered_idls.clear().map_err(|error| LocalnetError::CreateVm(error.into()))?;
    *last = Some((features.clone(), svm.clone()));
    Ok(svm)
}

fn unix_time_ms() -> u64 {
    // A clock before 1970 is no reason to fail.
    let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

/// Adds `lamports` to the balance of `address`, out of nowhere.
///
/// Surfpool's own airdrop is a transaction: a second one like it in the same slot fails as a duplicate.
pub(crate) fn credit(svm: &mut SurfnetSvm, address: Address, lamports: u64) -> Result<(), LocalnetError> {
    let failed = |source| LocalnetError::Airdrop { address, source };
    let mut account = svm.get_account(&address).map_err(failed)?.unwrap_or_default();
    account.lamports = account.lamports.checked_add(lamports).ok_or_else(|| overflow(address))?;
    svm.set_account(&address, account).map_err(failed)
}

pub(crate) fn overflow(address: Address) -> LocalnetError {
    LocalnetError::BalanceOverflow { address }
}
