//! The digest that seals a buffer.

use sha2::{Digest, Sha256};

/// Bytes that one call of `seal` hashes.
pub const SEGMENT_LEN: usize = 2 * 1024 * 1024;

/// The digest of a payload, as the chunk-buffer program computes it.
///
/// Up to [`SEGMENT_LEN`] bytes it is the plain SHA-256. A longer payload is hashed by segments:
/// `digest(n) = SHA-256(digest(n - 1) ‖ segment n)`. It names the content together with the payload's length, which every
/// buffer's header holds.
pub fn payload_digest(payload: &[u8]) -> [u8; 32] {
    let (first, mut rest) = payload.split_at(payload.len().min(SEGMENT_LEN));
    let mut digest: [u8; 32] = Sha256::digest(first).into();
    while !rest.is_empty() {
        let (segment, after) = rest.split_at(rest.len().min(SEGMENT_LEN));
        digest = Sha256::new().chain_update(digest).chain_update(segment).finalize().into();
        rest = after;
    }
    digest
}

/// How many calls of `seal` a payload of `payload_len` bytes takes.
pub const fn seal_calls(payload_len: u64) -> u64 {
    let calls = payload_len.div_ceil(SEGMENT_LEN as u64);
    if calls == 0 { 1 } else { calls }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_is_the_plain_hash_and_a_second_one_chains() {
        let segment = vec![7; SEGMENT_LEN];
        let plain: [u8; 32] = Sha256::digest(&segment).into();
        assert_eq!(payload_digest(&segment), plain);
        let mut longer = segment;
        longer.push(9);
        let chained: [u8; 32] = Sha256::digest([plain.as_slice(), &[9]].concat()).into();
        assert_eq!(payload_digest(&longer), chained);
        assert_eq!(
            (seal_calls(0), seal_calls(SEGMENT_LEN as u64), seal_calls(longer.len() as u64)),
            (1, 1, 2)
        );
    }
}
