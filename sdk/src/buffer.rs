//! A buffer account as a whole: header, payload and bitmap.

use crate::{
    AccountError,
    chunk_buffer::Buffer,
    chunks::{ChunkLayout, PAYLOAD_OFFSET},
};

/// Layout version of buffers that this SDK reads.
const VERSION: u8 = 1;
const STATE_SEALED: u8 = 2;

/// The parts of a buffer account's data.
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'a> {
    header: Buffer,
    layout: ChunkLayout,
    payload: &'a [u8],
    bitmap: &'a [u8],
}

impl<'a> BufferView<'a> {
    /// Takes the data of an account that the chunk-buffer program owns (check that first) apart.
    ///
    /// # Errors
    /// [`AccountError`] if it is no buffer, one of an unknown layout, or shorter than its header says.
    pub fn parse(data: &'a [u8]) -> Result<Self, AccountError> {
        let header = Buffer::read(data)?;
        if header.version != VERSION {
            return Err(AccountError::UnknownVersion { account: "Buffer", version: header.version });
        }
        let too_short = |expected| AccountError::TooShort { account: "Buffer", expected, actual: data.len() };
        let layout = ChunkLayout::new(header.payload_len.into(), header.chunk_size)
            .map_err(|_| too_short(PAYLOAD_OFFSET + header.payload_len as usize))?;
        let account_len = layout.account_len() as usize;
        let parts = data.get(PAYLOAD_OFFSET..account_len).ok_or(too_short(account_len))?;
        let (payload, bitmap) = parts.split_at(header.payload_len as usize);
        Ok(Self { header, layout, payload, bitmap })
    }

    /// The header.
    pub const fn header(&self) -> &Buffer {
        &self.header
    }

    /// How the payload is cut into chunks.
    pub const fn layout(&self) -> ChunkLayout {
        self.layout
    }

    /// The payload, written or not.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether the payload is final and its digest was checked.
    pub const fn is_sealed(&self) -> bool {
        self.header.state == STATE_SEALED
    }

    /// Whether chunk `index` has been written.
    pub fn is_written(&self, index: u32) -> bool {
        self.bitmap.get(index as usize / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
    }

    /// The chunks that have not been written, in order.
    pub fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.layout.chunk_count()).filter(|index| !self.is_written(*index))
    }
}
