//! The buffers of an authority: finding them, closing them, handing them on.

use std::{collections::HashSet, sync::Arc};

use committor_sdk::{BufferView, chunk_buffer, chunks::PAYLOAD_OFFSET};
use futures::{StreamExt, stream};
use serde::Serialize;
use solana_account::Account;
use solana_address::Address;
use solana_sdk_ids::bpf_loader_upgradeable;
use solana_signer::Signer;

use super::{DeployError, Deployer, Watch, loader::LoaderAccount};
use crate::{
    chain::{Chain, ProgramAccount, RpcChain},
    plan::{
        LOADER_BUFFER_HEADER, plan_close_buffer, plan_close_loader_buffer, plan_set_buffer_authority,
        plan_set_loader_buffer_authority,
    },
    types::Lamports,
};

/// Where a buffer's header names its authority.
const AUTHORITY_OFFSET: usize = 8;
/// `state` of a buffer that is sealed.
const STATE_SEALED: u8 = 2;

/// A buffer, as far as its header and its lamports tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BufferReport {
    /// Its address.
    #[serde(serialize_with = "as_text")]
    pub pubkey: Address,
    /// Who may write, close and hand it on.
    #[serde(serialize_with = "as_text")]
    pub authority: Address,
    /// Length of the account in bytes.
    pub account_len: u64,
    /// Length of the payload in bytes.
    pub payload_len: u32,
    /// Length of a chunk in bytes.
    pub chunk_size: u32,
    /// Chunks that it has.
    pub chunks: u32,
    /// Chunks that have been written. Those of zeroes need not be.
    pub written_chunks: u32,
    /// Whether the payload is final.
    pub sealed: bool,
    /// What is locked in it, in lamports.
    pub lamports: Lamports,
    /// The digest that sealed it, in hexadecimal digits.
    pub digest: Option<String>,
}

/// A buffer of the upgradeable loader, as programs travel through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoaderBufferReport {
    /// Its address.
    #[serde(serialize_with = "as_text")]
    pub pubkey: Address,
    /// Who may write, close and hand it on.
    #[serde(serialize_with = "as_text")]
    pub authority: Address,
    /// Length of what it holds, in bytes.
    pub payload_len: u64,
    /// What is locked in it, in lamports.
    pub lamports: Lamports,
}

/// What became of a buffer that was to be closed.
#[derive(Debug)]
pub struct Closed {
    /// The buffer.
    pub buffer: Address,
    /// What came back, in lamports, or why it is still there.
    pub outcome: Result<Lamports, DeployError>,
}

fn as_text<S: serde::Serializer>(address: &Address, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(address)
}

impl BufferReport {
    fn of(pubkey: Address, header: &chunk_buffer::Buffer, account_len: u64, lamports: u64) -> Self {
        let sealed = header.state == STATE_SEALED;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            pubkey,
            authority: header.authority,
            account_len,
            payload_len: header.payload_len,
            chunk_size: header.chunk_size,
            chunks: header.payload_len.div_ceil(header.chunk_size.max(1)),
            written_chunks: header.written_chunks,
            sealed,
            lamports: Lamports(lamports),
            digest: sealed.then(|| hex(&header.digest)),
        }
    }
}

/// Buffers as anybody can read them.
#[derive(Clone)]
pub struct Buffers(Arc<RpcChain>);

impl Buffers {
    /// Reads through `chain`.
    pub const fn new(chain: Arc<RpcChain>) -> Self {
        Self(chain)
    }

    /// All buffers of an authority, in the order of their addresses. Only headers are read.
    ///
    /// # Errors
    /// [`DeployError::Chain`] if the node can't list them.
    pub async fn of(&self, authority: Address) -> Result<Vec<BufferReport>, DeployError> {
        let holding = [
            (0, chunk_buffer::Buffer::DISCRIMINATOR.to_vec()),
            (AUTHORITY_OFFSET, authority.as_ref().to_vec()),
        ];
        let found = self.0.program_accounts(&chunk_buffer::ID, &holding, Some(PAYLOAD_OFFSET)).await?;
        let report = |found: ProgramAccount| {
            let header = chunk_buffer::Buffer::read(&found.account.data).ok()?;
            Some(BufferReport::of(found.address, &header, found.len, found.account.lamports))
        };
        let mut buffers: Vec<BufferReport> = found.into_iter().filter_map(report).collect();
        buffers.sort_by_key(|buffer| buffer.pubkey);
        Ok(buffers)
    }

    /// All buffers of the upgradeable loader that an authority has, in the order of their addresses. Only headers are read.
    ///
    /// # Errors
    /// [`DeployError::Chain`] if the node can't list them.
    pub async fn of_loader(&self, authority: Address) -> Result<Vec<LoaderBufferReport>, DeployError> {
        // The number of this kind of account, and that it has an authority.
        let header = [[1, 0, 0, 0, 1].as_slice(), authority.as_ref()].concat();
        let (loader, len) = (bpf_loader_upgradeable::ID, LOADER_BUFFER_HEADER);
        let found = self.0.program_accounts(&loader, &[(0, header)], Some(len)).await?;
        let report = |found: ProgramAccount| LoaderBufferReport {
            pubkey: found.address,
            authority,
            payload_len: found.len.saturating_sub(len as u64),
            lamports: Lamports(found.account.lamports),
        };
        let mut buffers: Vec<LoaderBufferReport> = found.into_iter().map(report).collect();
        buffers.sort_by_key(|buffer| buffer.pubkey);
        Ok(buffers)
    }

    /// One buffer.
    ///
    /// # Errors
    /// [`DeployError`] if there is no such buffer, or it can't be read.
    pub async fn get(&self, address: Address) -> Result<BufferReport, DeployError> {
        let account = self.account(address).await?;
        let view = view(address, &account)?;
        Ok(BufferReport::of(address, view.header(), account.data.len() as u64, account.lamports))
    }

    /// When a buffer was used last, in seconds since 1970; `None` if the node does not know.
    ///
    /// # Errors
    /// [`DeployError::Chain`] if the node can't be asked.
    pub async fn last_used(&self, buffer: Address) -> Result<Option<i64>, DeployError> {
        Ok(self.0.last_used(&buffer).await?)
    }

    /// What is in a buffer, or in one of the upgradeable loader, or in a program, as it is now.
    ///
    /// # Errors
    /// [`DeployError`] if it is none of these, or can't be read.
    pub async fn download(&self, address: Address) -> Result<Download, DeployError> {
        let account = self.account(address).await?;
        let (payload, kind) = match LoaderAccount::of(&account) {
            None => {
                let view = view(address, &account)?;
                (view.payload().to_vec(), ContentKind::File { sealed: view.is_sealed() })
            }
            Some(LoaderAccount::Buffer { content, .. }) => (content.to_vec(), ContentKind::LoaderBuffer),
            Some(LoaderAccount::ProgramData { content, .. }) => (content.to_vec(), ContentKind::Program),
            Some(LoaderAccount::Program { data }) => {
                let account = self.account(data).await?;
                let Some(LoaderAccount::ProgramData { content, .. }) = LoaderAccount::of(&account) else {
                    return Err(DeployError::NoAccount(data));
                };
                (content.to_vec(), ContentKind::Program)
            }
        };
        Ok(Download { payload, kind })
    }

    async fn account(&self, address: Address) -> Result<Account, DeployError> {
        self.0.accounts(&[address]).await?.pop().flatten().ok_or(DeployError::NoAccount(address))
    }
}

/// What an account holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// The bytes, those that were never written as zeroes.
    pub payload: Vec<u8>,
    /// In what kind of account they are.
    pub kind: ContentKind,
}

/// A kind of account that holds a file or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// A buffer of the chunk buffer program.
    File {
        /// Whether its bytes are final.
        sealed: bool,
    },
    /// A buffer of the upgradeable loader: its authority can change it.
    LoaderBuffer,
    /// A program, whose bytes are followed by zeroes up to the room that there is.
    Program,
}

impl Download {
    /// Where a file and this differ first, from 0. Zeroes behind a program are no difference.
    pub fn first_difference(&self, file: &[u8]) -> Option<u64> {
        let behind = self.payload.get(file.len()..).unwrap_or_default();
        if self.kind == ContentKind::Program && behind.iter().all(|byte| *byte == 0) {
            return first_difference(file, self.payload.get(..file.len()).unwrap_or(&self.payload));
        }
        first_difference(file, &self.payload)
    }
}

/// Where two contents differ first, from 0: the shorter length if one is a beginning of the other. `None` if they are equal.
fn first_difference(one: &[u8], other: &[u8]) -> Option<u64> {
    let differs = one.iter().zip(other).position(|(one, other)| one != other);
    differs.or((one.len() != other.len()).then_some(one.len().min(other.len()))).map(|at| at as u64)
}

/// A buffer in the account at `address`.
pub(super) fn view(address: Address, account: &Account) -> Result<BufferView<'_>, DeployError> {
    if account.owner != chunk_buffer::ID {
        return Err(DeployError::NotABuffer { address, owner: account.owner });
    }
    BufferView::parse(&account.data).map_err(|source| DeployError::Unreadable { address, source })
}

impl Deployer {
    /// Closes buffers, each for itself; what is locked in them goes to `receiver`.
    ///
    /// One that can't be closed does not keep the others. One that is named twice is closed once.
    pub async fn close(&self, buffers: &[Address], receiver: Address, watch: &Watch) -> Vec<Closed> {
        let close =
            async |buffer: Address| Closed { buffer, outcome: self.close_one(buffer, receiver, watch).await };
        let mut named = HashSet::new();
        let buffers: Vec<Address> = buffers.iter().copied().filter(|buffer| named.insert(*buffer)).collect();
        let closing: Vec<_> = buffers.iter().map(|buffer| close(*buffer)).collect();
        stream::iter(closing).buffered(self.settings.transactions_in_flight.max(1)).collect().await
    }

    async fn close_one(
        &self,
        buffer: Address,
        receiver: Address,
        watch: &Watch,
    ) -> Result<Lamports, DeployError> {
        let own = self.own(buffer).await?;
        let context = self.context(&[buffer]).await?;
        let plan = if own.is_loaders { plan_close_loader_buffer } else { plan_close_buffer };
        let planned = plan(buffer, own.account_len, receiver, &context);
        self.batch(&context, watch).land(vec![planned]).await?;
        Ok(own.lamports)
    }

    /// Hands a buffer to another authority, for good: only that one can close it from then on.
    ///
    /// # Errors
    /// [`DeployError`] if it is not the authority's, or the transaction fails.
    pub async fn set_authority(
        &self,
        buffer: Address,
        new_authority: Address,
        watch: &Watch,
    ) -> Result<(), DeployError> {
        let own = self.own(buffer).await?;
        let context = self.context(&[buffer]).await?;
        let plan = if own.is_loaders { plan_set_loader_buffer_authority } else { plan_set_buffer_authority };
        let planned = plan(buffer, own.account_len, new_authority, &context);
        self.batch(&context, watch).land(vec![planned]).await?;
        Ok(())
    }

    /// A buffer of the authority's.
    async fn own(&self, address: Address) -> Result<OwnBuffer, DeployError> {
        let account = Buffers(self.chain.clone()).account(address).await?;
        let (authority, is_loaders) = match LoaderAccount::of(&account) {
            Some(LoaderAccount::Buffer { authority: Some(authority), .. }) => (authority, true),
            _ => (view(address, &account)?.header().authority, false),
        };
        let ours = self.signers.authority.pubkey();
        if authority != ours {
            return Err(DeployError::WrongAuthority { buffer: address, authority, ours });
        }
        let (account_len, lamports) = (account.data.len() as u64, Lamports(account.lamports));
        Ok(OwnBuffer { is_loaders, account_len, lamports })
    }
}

/// A buffer of the authority's.
struct OwnBuffer {
    /// Whether it is one of the upgradeable loader.
    is_loaders: bool,
    account_len: u64,
    lamports: Lamports,
}
