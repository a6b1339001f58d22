//! How a payload is cut into chunks.

use core::ops::Range;

use thiserror::Error;

/// Where the payload starts in a buffer account, in bytes.
pub const PAYLOAD_OFFSET: usize = 96;
/// The longest account of the chain, in bytes.
pub const MAX_ACCOUNT_LEN: u64 = 10 * 1024 * 1024;

/// A payload and a chunk size that make no buffer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The chunk size is zero.
    #[error("the chunk size is zero")]
    ZeroChunkSize,
    /// The account would be longer than [`MAX_ACCOUNT_LEN`].
    #[error(
        "a payload of {payload_len} bytes needs an account of {account_len} bytes, at most {MAX_ACCOUNT_LEN} are possible"
    )]
    TooLarge {
        /// Length of the payload in bytes.
        payload_len: u64,
        /// Length that the account would have, in bytes.
        account_len: u64,
    },
}

/// How a payload is cut into chunks: all of one size, the last possibly shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLayout {
    payload_len: u32,
    chunk_size: u32,
}

impl ChunkLayout {
    /// A layout for a payload of `payload_len` bytes in chunks of `chunk_size` bytes.
    ///
    /// # Errors
    /// [`LayoutError`] if the chunk size is zero or the account would be too long.
    pub fn new(payload_len: u64, chunk_size: u32) -> Result<Self, LayoutError> {
        if chunk_size == 0 {
            return Err(LayoutError::ZeroChunkSize);
        }
        let account_len = account_len(payload_len, chunk_size);
        match u32::try_from(payload_len) {
            Ok(payload_len) if account_len <= MAX_ACCOUNT_LEN => Ok(Self { payload_len, chunk_size }),
            _ => Err(LayoutError::TooLarge { payload_len, account_len }),
        }
    }

    /// Length of the payload in bytes.
    pub const fn payload_len(&self) -> u32 {
        self.payload_len
    }

    /// Length in bytes of every chunk but the last.
    pub const fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// How many chunks there are.
    pub const fn chunk_count(&self) -> u32 {
        self.payload_len.div_ceil(self.chunk_size)
    }

    /// Length of the whole buffer account: header, payload and bitmap, in bytes.
    pub const fn account_len(&self) -> u64 {
        account_len(self.payload_len as u64, self.chunk_size)
    }

    /// The bytes of the payload that chunk `index` holds; `None` past the last.
    pub fn chunk(&self, index: u32) -> Option<Range<usize>> {
        if index >= self.chunk_count() {
            return None;
        }
        let start = u64::from(index) * u64::from(self.chunk_size);
        let end = u64::from(self.payload_len).min(start + u64::from(self.chunk_size));
        Some(start as usize..end as usize)
    }

    /// All chunks in order.
    pub fn chunks(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.chunk_count()).filter_map(|index| self.chunk(index))
    }
}

const fn account_len(payload_len: u64, chunk_size: u32) -> u64 {
    let bitmap_len = payload_len.div_ceil(chunk_size as u64).div_ceil(8);
    (PAYLOAD_OFFSET as u64).saturating_add(payload_len).saturating_add(bitmap_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_byte_once_at_the_edges() {
        for payload_len in [0u64, 1, 9, 10, 11, 99, 100, 101] {
            let layout = ChunkLayout::new(payload_len, 10).unwrap();
            let mut next = 0;
            for range in layout.chunks() {
                assert_eq!(range.start, next);
                assert!(!range.is_empty() && range.len() <= 10);
                next = range.end;
            }
            assert_eq!(next as u64, payload_len);
            assert_eq!(layout.chunk(layout.chunk_count()), None);
        }
    }

    #[test]
    fn the_largest_payload_fills_an_account_exactly_and_one_byte_more_is_refused() {
        // 96 + payload + ceil(ceil(payload / 3,856) / 8)
        let largest = MAX_ACCOUNT_LEN - 96 - 340;
        assert_eq!(ChunkLayout::new(largest, 3_856).unwrap().account_len(), MAX_ACCOUNT_LEN);
        assert!(matches!(ChunkLayout::new(largest + 1, 3_856), Err(LayoutError::TooLarge { .. })));
        assert!(matches!(ChunkLayout::new(u64::MAX, 1), Err(LayoutError::TooLarge { .. })));
        assert_eq!(ChunkLayout::new(1, 0), Err(LayoutError::ZeroChunkSize));
    }
}
