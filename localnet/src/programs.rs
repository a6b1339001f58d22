//! The programs that every localnet has, as SBF bytecode, and their addresses.

use solana_address::Address;

/// Address of [`CHUNK_BUFFER`].
pub const CHUNK_BUFFER_ID: Address = committor_sdk::chunk_buffer::ID;
/// Address of [`DELEGATION`].
pub const DELEGATION_ID: Address = committor_sdk::delegation::ID;
/// Address of [`OWNER_PROGRAM`].
pub const OWNER_PROGRAM_ID: Address = Address::from_str_const("own5gPZRoJaGkDJuNyF6oxJsvy678M8XrPDwdVXPW9w");

/// The chunk buffer program.
pub const CHUNK_BUFFER: &[u8] = include_bytes!("../../programs/artifacts/chunk_buffer.so");
/// The delegation program.
pub const DELEGATION: &[u8] = include_bytes!("../../programs/artifacts/delegation.so");
/// An example of a program whose accounts are delegated and committed to.
pub const OWNER_PROGRAM: &[u8] = include_bytes!("../../programs/artifacts/owner_program.so");

/// All of them, with their addresses.
pub(crate) const ALL: [(Address, &[u8]); 3] =
    [(CHUNK_BUFFER_ID, CHUNK_BUFFER), (DELEGATION_ID, DELEGATION), (OWNER_PROGRAM_ID, OWNER_PROGRAM)];
