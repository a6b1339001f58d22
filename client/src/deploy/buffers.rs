//! The buffers of an authority: finding them, closing them, handing them on.

use std::{collections::HashSet, sync::Arc};

use committor_sdk::{BufferView, chunk_buffer, chunks::PAYLOAD_OFFSET};
use futures::{StreamExt, stream};
use serde::Serialize;
use solana_account::Account;
use solana_address::Address;
use solana_signer::Signer;

use super::{DeployError, Deployer, Watch};
use crate::{
    chain::{Chain, ProgramAccount, RpcChain},
    plan::{plan_close_buffer, plan_set_buffer_authority},
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

    /// A buffer's payload as it is now.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn download(&self, address: Address) -> Result<Download, DeployError> {
        let account = self.account(address).await?;
        let view = view(address, &account)?;
        Ok(Download { payload: view.payload().to_vec(), sealed: view.is_sealed() })
    }

    async fn account(&self, address: Address) -> Result<Account, DeployError> {
        self.0.accounts(&[address]).await?.pop().flatten().ok_or(DeployError::NoAccount(address))
    }
}

/// A buffer's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// The bytes, those that were never written as zeroes.
    pub payload: Vec<u8>,
    /// Whether they are final.
    pub sealed: bool,
}

/// Where two contents differ first, from 0: the shorter length if one is a beginning of the other. `None` if they are equal.
pub fn first_difference(one: &[u8], other: &[u8]) -> Option<u64> {
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
        let report = self.own(buffer).await?;
        let context = self.context(&[buffer]).await?;
        let planned = plan_close_buffer(buffer, report.account_len, receiver, &context);
        self.batch(&context, watch).land(vec![planned]).await?;
        Ok(report.lamports)
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
        let report = self.own(buffer).await?;
        let context = self.context(&[buffer]).await?;
        let planned = plan_set_buffer_authority(buffer, report.account_len, new_authority, &context);
        self.batch(&context, watch).land(vec![planned]).await?;
        Ok(())
    }

    /// A buffer of the authority's.
    async fn own(&self, address: Address) -> Result<BufferReport, DeployError> {
        let report = Buffers(self.chain.clone()).get(address).await?;
        let (authority, ours) = (report.authority, self.signers.authority.pubkey());
        if authority != ours {
            return Err(DeployError::WrongAuthority { buffer: address, authority, ours });
        }
        Ok(report)
    }
}
