//! Everything that talking to the chunk-buffer and delegation programs takes, and nothing more: no RPC client, no runtime.
//!
//! - [`chunk_buffer`] and [`delegation`]: instruction builders, account views and errors, generated from `idl/*.json`.
//! - `address`: where buffers and records live.
//! - [`chunks`]: how a payload is cut into chunks, and which of them a buffer still misses.
//! - [`digest`]: the digest that seals a buffer.
//! - [`ProgramError`]: what a custom error code means.
//!
//! ```
//! use committor_sdk::{address, chunk_buffer, chunks::ChunkLayout};
//! use solana_address::Address;
//!
//! let authority = Address::new_from_array([1; 32]);
//! let layout = ChunkLayout::new(10_240, 3_414)?;
//! assert_eq!(layout.chunk_count(), 3);
//! let buffer = address::buffer(&authority, "my-upload")?;
//! let write = chunk_buffer::Write { authority, buffer };
//! let payload = vec![0; 10_240];
//! let range = layout.chunk(2).expect("three chunks");
//! let instruction =
//!     write.instruction(chunk_buffer::WriteArgs { offset: range.start as u32, data: &payload[range] });
//! assert_eq!(instruction.program_id, chunk_buffer::ID);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the default feature `std` the crate is `no_std`: what is left serves programs, which read sealed buffers with
//! [`BufferView`].
#![cfg_attr(not(feature = "std"), no_std)]
#![warn(missing_docs)]

extern crate alloc;

#[cfg(feature = "std")]
pub mod address;
mod buffer;
pub mod chunks;
pub mod digest;
mod error;
mod generated;
#[cfg(feature = "std")]
pub mod instructions;

pub use buffer::{BufferView, SealedBuffer, SealedBufferError};
pub use error::{AccountError, ProgramError};
pub use generated::{chunk_buffer, delegation};
