//! From settings to a running engine.

use std::{
    fs::{File, TryLockError},
    path::PathBuf,
    sync::Arc,
};

use solana_signer::Signer;

use super::{
    Committor, EngineError, EngineSettings, SharedSigner, Signers, identify,
    tables::{TableSettings, Tables},
};
use crate::{
    chain::{RpcChain, RpcSettings},
    store::Store,
};

/// Makes a [`Committor`].
///
/// ```no_run
/// # async fn run(authority: solana_keypair::Keypair, changeset: committor_client::Changeset)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// use committor_client::Committor;
///
/// let committor = Committor::builder()
///     .cluster("http://localhost:8899")
///     .authority(authority)
///     .store("committor.db")
///     .start()
///     .await?;
/// let ticket = committor.commit(changeset).await?; // durable from here on
/// let report = ticket.finished().await?; // per account: status, strategy, signatures
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Builder {
    rpc: Option<RpcSettings>,
    authority: Option<SharedSigner>,
    payer: Option<SharedSigner>,
    store: Option<PathBuf>,
    settings: EngineSettings,
}

impl Builder {
    /// The cluster, by the URL of its JSON-RPC service.
    pub fn cluster(mut self, url: impl Into<String>) -> Self {
        self.rpc = Some(RpcSettings::new(url));
        self
    }

    /// The cluster, with settings.
    pub fn rpc(mut self, settings: RpcSettings) -> Self {
        self.rpc = Some(settings);
        self
    }

    /// The authority that the accounts are delegated to.
    pub fn authority(mut self, signer: impl Signer + Send + Sync + 'static) -> Self {
        self.authority = Some(Arc::new(signer));
        self
    }

    /// Who pays fees and rent; by default the authority.
    pub fn payer(mut self, signer: impl Signer + Send + Sync + 'static) -> Self {
        self.payer = Some(Arc::new(signer));
        self
    }

    /// Both at once, as others hold them too.
    pub fn signers(mut self, signers: Signers) -> Self {
        (self.payer, self.authority) = (Some(signers.payer), Some(signers.authority));
        self
    }

    /// The store's file.
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// How the engine works.
    pub fn settings(mut self, settings: EngineSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Opens the store, takes up what had not ended, and is ready.
    ///
    /// # Errors
    /// [`EngineError::Missing`] names what was not given; [`EngineError::Chain`] if the cluster does not say which one it is;
    /// [`EngineError::Store`] if the store can't be opened, or is another cluster's or another authority's.
    pub async fn start(self) -> Result<Committor, EngineError> {
        let settings = self.settings;
        let (chain, store, signers, lock) = self.open().await?;
        Committor::start(chain, store, signers, settings, Some(lock)).await
    }

    /// Opens the store for its lookup tables alone: nothing that had not ended is taken up.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn tables(self, settings: TableSettings) -> Result<Tables<RpcChain>, EngineError> {
        let (chain, store, signers, lock) = self.open().await?;
        identify(&chain, &store, &signers).await?;
        Ok(Tables::with_lock(Arc::new(chain), store, signers, settings, Some(lock)))
    }

    async fn open(self) -> Result<(RpcChain, Store, Signers, File), EngineError> {
        let rpc = self.rpc.ok_or(EngineError::Missing("cluster"))?;
        let authority = self.authority.ok_or(EngineError::Missing("authority"))?;
        let path = self.store.ok_or(EngineError::Missing("store"))?;
        let payer = self.payer.unwrap_or_else(|| authority.clone());
        let (lock, store) = tokio::task::spawn_blocking(move || open(path)).await??;
        Ok((RpcChain::new(rpc), store, Signers { payer, authority }, lock))
    }
}

/// Opens a store for this process alone. What only reads it needs no lock.
fn open(path: PathBuf) -> Result<(File, Store), EngineError> {
    let mut name = path.clone().into_os_string();
    name.push(".lock");
    let locked = File::create(&name).map_err(TryLockError::Error).and_then(|file| {
        file.try_lock()?;
        Ok(file)
    });
    match locked {
        Ok(lock) => Ok((lock, Store::open(&path)?)),
        Err(TryLockError::WouldBlock) => Err(EngineError::StoreInUse { path }),
        Err(TryLockError::Error(source)) => Err(EngineError::Lock { path, source }),
    }
}
