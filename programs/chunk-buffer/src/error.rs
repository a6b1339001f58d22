//! The program's errors. Codes are append-only.

use anchor_lang::prelude::*;

#[error_code]
pub enum ChunkBufferError {
    #[msg("the signer is not the buffer's authority")]
    WrongAuthority,
    #[msg("the seed is longer than MAX_SEED_LEN bytes")]
    SeedTooLong,
    #[msg("the buffer's address is not create_with_seed(authority, seed, program)")]
    AddressMismatch,
    #[msg("the account is already initialized")]
    AlreadyInitialized,
    #[msg("the chunk size is zero")]
    ZeroChunkSize,
    #[msg("the account's length is not that of the header, the payload and the bitmap")]
    LengthMismatch,
    #[msg("the account is owned by another program")]
    WrongOwner,
    #[msg("the buffer's layout version is not one that this program knows")]
    UnknownVersion,
    #[msg("the buffer is sealed: its payload is final")]
    Sealed,
    #[msg("the offset is not a multiple of the chunk size")]
    UnalignedOffset,
    #[msg("the offset lies at or past the end of the payload")]
    OffsetOutOfBounds,
    #[msg("the data is not exactly one chunk; only the last chunk may be short")]
    WrongChunkLength,
    #[msg("the payload's digest is not the one named, and not all chunks have been written")]
    Incomplete,
    #[msg("the payload's digest is not the one named")]
    DigestMismatch,
    #[msg("the new authority is the zero address")]
    ZeroAuthority,
    #[msg("the account would be longer than MAX_ACCOUNT_LEN")]
    TooLarge,
    #[msg("the account grows by more than MAX_GROWTH bytes: resize in several steps")]
    TooMuchGrowth,
    #[msg("the buffer's lamports are below the rent-exempt minimum of its new length: transfer first")]
    NotRentExempt,
}
