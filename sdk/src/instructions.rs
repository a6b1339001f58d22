//! Groups of instructions that belong together.

use solana_address::Address;
use solana_instruction::Instruction;
use solana_system_interface::instruction as system;

use crate::{
    address::{self, SeedTooLong},
    chunk_buffer,
    chunks::ChunkLayout,
};

/// What it takes to create a buffer.
#[derive(Clone, Copy, Debug)]
pub struct CreateBuffer<'a> {
    /// Pays the rent. Signs.
    pub payer: Address,
    /// The buffer's authority and the base of its address. Signs.
    pub authority: Address,
    /// Seed of the buffer's address.
    pub seed: &'a str,
    /// Size and chunks of the payload.
    pub layout: ChunkLayout,
    /// Lamports to move to the buffer: the rent-exempt minimum of [`ChunkLayout::account_len`], less what the address
    /// already holds.
    pub rent_lamports: u64,
}

impl CreateBuffer<'_> {
    /// The instructions, in the order in which one transaction must hold them: transfer, allocate, init.
    ///
    /// At the top level of a transaction an account of any size can be allocated at once, and one that a stranger has
    /// sent lamports to as well as any other.
    ///
    /// # Errors
    /// [`SeedTooLong`] if the seed is.
    pub fn instructions(&self) -> Result<Vec<Instruction>, SeedTooLong> {
        let buffer = address::buffer(&self.authority, self.seed)?;
        let mut instructions = Vec::with_capacity(3);
        if self.rent_lamports > 0 {
            instructions.push(system::transfer(&self.payer, &buffer, self.rent_lamports));
        }
        instructions.push(system::allocate_with_seed(
            &buffer,
            &self.authority,
            self.seed,
            self.layout.account_len(),
            &chunk_buffer::ID,
        ));
        let accounts = chunk_buffer::Init { authority: self.authority, buffer };
        instructions.push(accounts.instruction(chunk_buffer::InitArgs {
            seed: self.seed.as_bytes(),
            payload_len: self.layout.payload_len(),
            chunk_size: self.layout.chunk_size(),
        }));
        Ok(instructions)
    }
}
