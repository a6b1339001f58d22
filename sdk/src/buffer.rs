//! A buffer account as a whole: header, payload and bitmap.

use solana_address::Address;
use thiserror::Error;

use crate::{
    AccountError,
    chunk_buffer::{self, Buffer},
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

/// The sealed buffer that a reader expects.
///
/// ```
/// use committor_sdk::{SealedBuffer, digest::payload_digest};
/// # fn run(owner: solana_address::Address, data: &[u8], authority: solana_address::Address)
/// # -> Result<(), committor_sdk::SealedBufferError> {
/// let expected = SealedBuffer { authority, payload_len: 5, digest: payload_digest(b"state") };
/// let payload = expected.read(&owner, data)?; // of the account that was passed
/// assert_eq!(payload, b"state");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedBuffer {
    /// Whose buffer it is.
    pub authority: Address,
    /// Length of the payload in bytes. It belongs to the digest.
    pub payload_len: u32,
    /// The payload's digest.
    pub digest: [u8; 32],
}

/// Why an account is not the sealed buffer that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealedBufferError {
    /// Another program owns the account: its bytes prove nothing.
    #[error("the account is not owned by the chunk-buffer program")]
    WrongOwner,
    /// The bytes are not a buffer's.
    #[error("the account is not a buffer")]
    NotABuffer(#[source] AccountError),
    /// The payload may still change.
    #[error("the buffer is not sealed")]
    NotSealed,
    /// It is somebody else's.
    #[error("the buffer belongs to another authority")]
    WrongAuthority,
    /// The payload is another one.
    #[error("the buffer holds another payload")]
    WrongPayload,
}

impl SealedBuffer {
    /// The payload of an account with this owner and data, if it is the buffer expected.
    ///
    /// Reads the header only: the chunk-buffer program has checked the digest when it sealed the buffer.
    ///
    /// # Errors
    /// [`SealedBufferError`] says what is different.
    pub fn read<'a>(&self, owner: &Address, data: &'a [u8]) -> Result<&'a [u8], SealedBufferError> {
        if *owner != chunk_buffer::ID {
            return Err(SealedBufferError::WrongOwner);
        }
        let view = BufferView::parse(data).map_err(SealedBufferError::NotABuffer)?;
        if !view.is_sealed() {
            return Err(SealedBufferError::NotSealed);
        }
        if view.header.authority != self.authority {
            return Err(SealedBufferError::WrongAuthority);
        }
        if view.header.payload_len != self.payload_len || view.header.digest != self.digest {
            return Err(SealedBufferError::WrongPayload);
        }
        Ok(view.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::payload_digest;

    fn account(change: impl FnOnce(&mut Buffer)) -> Vec<u8> {
        let mut header = Buffer {
            authority: Address::new_from_array([7; 32]),
            digest: payload_digest(b"state"),
            payload_len: 5,
            chunk_size: 4,
            written_chunks: 2,
            hashed_segments: 1,
            state: STATE_SEALED,
            version: VERSION,
            reserved: [0; 6],
        };
        change(&mut header);
        let header = bytemuck::bytes_of(&header);
        [Buffer::DISCRIMINATOR.as_slice(), header, b"state", &[0b11]].concat()
    }

    #[test]
    fn only_the_very_buffer_that_is_expected_is_read() {
        let expected = SealedBuffer {
            authority: Address::new_from_array([7; 32]),
            payload_len: 5,
            digest: payload_digest(b"state"),
        };
        let read =
            |change: fn(&mut Buffer)| expected.read(&chunk_buffer::ID, &account(change)).map(<[u8]>::to_vec);
        assert_eq!(read(|_| ()), Ok(b"state".to_vec()));
        assert_eq!(read(|header| header.state = 1), Err(SealedBufferError::NotSealed));
        assert_eq!(
            read(|header| header.authority = Address::default()),
            Err(SealedBufferError::WrongAuthority)
        );
        assert_eq!(read(|header| header.digest[0] ^= 1), Err(SealedBufferError::WrongPayload));
        assert_eq!(read(|header| header.payload_len = 4), Err(SealedBufferError::WrongPayload));
        let newer = AccountError::UnknownVersion { account: "Buffer", version: 2 };
        assert_eq!(read(|header| header.version = 2), Err(SealedBufferError::NotABuffer(newer)));
        let long = read(|header| header.payload_len = u32::MAX);
        assert!(matches!(long, Err(SealedBufferError::NotABuffer(AccountError::TooShort { .. }))));
        let zero_chunks = read(|header| header.chunk_size = 0);
        assert!(matches!(zero_chunks, Err(SealedBufferError::NotABuffer(AccountError::TooShort { .. }))));
        assert_eq!(expected.read(&Address::default(), &account(|_| ())), Err(SealedBufferError::WrongOwner));
        assert!(expected.read(&chunk_buffer::ID, &[]).is_err());
    }

    #[test]
    fn missing_chunks_are_those_without_their_bit() {
        let mut data = account(|header| header.state = 1);
        *data.last_mut().unwrap() = 0b10;
        let view = BufferView::parse(&data).unwrap();
        assert_eq!(view.missing().collect::<Vec<_>>(), [0]);
        assert!(!view.is_written(0) && view.is_written(1) && !view.is_written(99));
    }
}
