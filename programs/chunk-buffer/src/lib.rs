//! Buffers: accounts into which data is written in chunks, in any order, by parallel transactions.
//!
//! A client creates the account at the top level of a transaction (`transfer` + the system program's
//! `allocate_with_seed`, one transaction at any size) and then calls [`chunk_buffer::init`]. From there:
//! `write` every chunk → `seal` with the digest → readers trust the bytes → `close` returns the rent.
//!
//! Account layout (`state.rs`): `[discriminator][header][payload][bitmap of written chunks]`.
#![cfg_attr(target_os = "solana", no_std)]

use anchor_lang::prelude::*;
use sbf_builtins as _;

pub mod error;
pub mod instructions;
pub mod state;

pub use error::ChunkBufferError;
use instructions::*;
pub use state::*;

/// The program's address: that of `COMMITTOR_CHUNK_BUFFER_ID` in the build's environment, or else the project's own.
pub const ID: Address = match option_env!("COMMITTOR_CHUNK_BUFFER_ID") {
    Some(id) => Address::from_str_const(id),
    None => Address::from_str_const("Bufr859zH8on9gvYxwjZyc7w6MiQxMfx7drQ8v9zna1e"),
};

/// [`ID`].
pub const fn id() -> Address {
    ID
}

#[program]
pub mod chunk_buffer {
    use super::*;

    /// Makes an open buffer of a zeroed account that this program owns.
    ///
    /// The account's address must be `create_with_seed(authority, seed, program)`, so only the authority can have
    /// created it, and its length must be exactly that of the header, the payload and the bitmap.
    #[discrim = [1]]
    pub fn init(ctx: &mut Context<Init>, seed: &[u8], payload_len: u32, chunk_size: u32) -> Result<()> {
        init::handler(ctx, seed, payload_len, chunk_size)
    }

    /// Writes one whole chunk at its offset in the payload; only the last chunk may be short.
    ///
    /// Writing the same chunk again is allowed until the buffer is sealed, in any order, by parallel transactions.
    #[discrim = [2]]
    pub fn write(ctx: &mut Context<Write>, offset: u32, data: &[u8]) -> Result<()> {
        write::handler(ctx, offset, data)
    }

    /// Hashes the next segment of a fully written buffer and, at the last one, seals it if the digest is the one named.
    ///
    /// A payload of up to one segment takes one call, and its digest is the plain SHA-256 of the bytes. A longer one
    /// takes one call per segment: `digest(0) = SHA-256(segment 0)`, `digest(n) = SHA-256(digest(n - 1) ‖ segment n)`.
    /// The digest names the content together with the payload's length: never compare digests alone.
    #[discrim = [3]]
    pub fn seal(ctx: &mut Context<Seal>, digest: [u8; 32]) -> Result<()> {
        seal::handler(ctx, digest)
    }

    /// Closes the buffer, open or sealed, and sends all its lamports to the receiver.
    #[discrim = [4]]
    pub fn close(ctx: &mut Context<Close>) -> Result<()> {
        close::handler(ctx)
    }

    /// Makes the payload of an open buffer longer, by at most 10,240 bytes of the account a call, or shorter.
    ///
    /// Chunks that still hold all their bytes stay written; new ones are not, nor is one that was short and no longer is
    /// the last. New bytes are zero. Before growth, the rent is the caller's to transfer; what a shorter account needs less
    /// goes to the receiver.
    #[discrim = [5]]
    pub fn resize(ctx: &mut Context<Resize>, payload_len: u32) -> Result<()> {
        resize::handler(ctx, payload_len)
    }

    /// Hands the buffer, open or sealed, to another authority. Its address stays as it is.
    #[discrim = [6]]
    pub fn set_authority(ctx: &mut Context<SetAuthority>, authority: Address) -> Result<()> {
        set_authority::handler(ctx, authority)
    }
}
