//! Bringing addresses into tables.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use solana_address::Address;
use solana_address_lookup_table_interface::{
    instruction::{create_lookup_table, derive_lookup_table_address, extend_lookup_table},
    state::LOOKUP_TABLE_MAX_ADDRESSES,
};
use solana_instruction::Instruction;
use solana_signer::Signer;

use super::{TableError, Tables, Work, book::Arrangement, error::is_stale};
use crate::{chain::Chain, engine::EngineError, types::TableStep};

/// Extensions of one table that are on their way at a time: as many as fill it.
const EXTENSIONS_IN_FLIGHT: usize = 16;
/// Addresses that one extension could carry if it had nothing else: the search for the real number starts here.
const MAX_PER_EXTENSION: usize = TRANSACTION_LEN / 32;
const TRANSACTION_LEN: usize = crate::types::TransactionVersion::V0.max_len();

impl<C: Chain> Tables<C> {
    /// Puts addresses that are in no table into tables, those first that exist. Some may still be in none when this
    /// returns: a table that refused its share is known to do so from then on.
    pub(super) async fn make_room(
        &self,
        work: &mut Work,
        keys: &BTreeSet<Address>,
    ) -> Result<(), EngineError> {
        self.refresh_rooms(work).await?;
        // Whatever interrupts this, the chain has to be asked how far it came.
        work.in_doubt = true;
        let mut missing: Vec<Address> = self.book().missing(keys).into_iter().collect();
        let rooms = self.book().rooms();
        for (table, room) in rooms {
            if missing.is_empty() {
                break;
            }
            let rest = missing.split_off(room.min(missing.len()));
            self.extend(table, &missing).await?;
            missing = rest;
        }
        for keys in missing.chunks(LOOKUP_TABLE_MAX_ADDRESSES) {
            self.create(keys).await?;
        }
        work.in_doubt = false;
        Ok(())
    }

    /// Puts sets of addresses each into one table.
    pub(super) async fn make_room_together(
        &self,
        work: &mut Work,
        sets: &[BTreeSet<Address>],
    ) -> Result<(), EngineError> {
        self.refresh_rooms(work).await?;
        // Whatever interrupts this, the chain has to be asked how far it came.
        work.in_doubt = true;
        let Arrangement { extensions, created } = self.book().arrange(sets);
        for (table, keys) in extensions {
            self.extend(table, &keys.into_iter().collect::<Vec<_>>()).await?;
        }
        for keys in created {
            self.create(&keys.into_iter().collect::<Vec<_>>()).await?;
        }
        work.in_doubt = false;
        Ok(())
    }

    /// Reads the tables that can be extended back: someone else may have extended or closed them since.
    async fn refresh_rooms(&self, work: &mut Work) -> Result<(), EngineError> {
        if work.in_doubt {
            return self.reconcile_with(work).await;
        }
        let rooms: BTreeSet<Address> = self.book().rooms().into_iter().map(|(table, _)| table).collect();
        self.observe(|table| rooms.contains(&table.address), &[]).await
    }

    /// Extends a table by as many transactions as it takes, all at once: in which order they land does not matter, since
    /// the entries are read back.
    async fn extend(&self, table: Address, keys: &[Address]) -> Result<(), EngineError> {
        let mut extensions = Vec::new();
        let mut left = keys;
        while !left.is_empty() {
            let (extension, rest) = self.longest(left, |keys| vec![self.extension(table, keys)])?;
            extensions.push(extension);
            left = rest;
        }
        let extensions: Vec<_> = extensions
            .into_iter()
            .map(|extension| self.transact(table, TableStep::Extend, extension))
            .collect();
        let landed: Vec<_> = stream::iter(extensions).buffer_unordered(EXTENSIONS_IN_FLIGHT).collect().await;
        self.observe(|stored| stored.address == table, &[]).await?;
        for result in landed {
            match result {
                Ok(_) => (),
                Err(EngineError::Table(TableError::Transaction { source, .. })) if is_stale(&source) => {
                    tracing::warn!(%table, "a lookup table refused an extension, another one replaces it");
                    self.book().set_refused(&table);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes a table with these addresses.
    async fn create(&self, keys: &[Address]) -> Result<(), EngineError> {
        let signers = &self.inner.signers;
        let (authority, payer) = (signers.authority.pubkey(), signers.payer.pubkey());
        let slot = self.unused_slot(&authority).await?;
        let (create, table) = create_lookup_table(authority, payer, slot);
        let (instructions, rest) =
            self.longest(keys, |keys| vec![create.clone(), self.extension(table, keys)])?;
        let landed = self.transact(table, TableStep::Create, instructions).await;
        // Even what is said to have failed may have landed. And the address is used up from here on.
        self.observe(|stored| stored.address == table, &[]).await?;
        landed?;
        tracing::info!(%table, "made a lookup table");
        if rest.is_empty() { Ok(()) } else { self.extend(table, rest).await }
    }

    /// A recent slot from which no table of this authority was derived: not by this manager, and not by another process.
    ///
    /// The program knows it only if a block that it sees had it as an ancestor: the newest one was still being made, and one
    /// that is not finalized may turn out to be skipped.
    async fn unused_slot(&self, authority: &Address) -> Result<u64, EngineError> {
        let mut slot = self.inner.chain.finalized_slot().await?;
        loop {
            let (table, _) = derive_lookup_table_address(authority, slot);
            if !self.book().knows(&table) && self.inner.chain.headers(&[table]).await? == [None] {
                return Ok(slot);
            }
            slot = self.wait_finalized_past(slot).await?;
        }
    }

    fn extension(&self, table: Address, keys: &[Address]) -> Instruction {
        let signers = &self.inner.signers;
        extend_lookup_table(table, signers.authority.pubkey(), Some(signers.payer.pubkey()), keys.to_vec())
    }

    /// The instructions with as many of the addresses as a transaction holds, and the addresses that are left.
    fn longest<'a>(
        &self,
        keys: &'a [Address],
        instructions: impl Fn(&[Address]) -> Vec<Instruction>,
    ) -> Result<(Vec<Instruction>, &'a [Address]), EngineError> {
        let mut count = keys.len().min(MAX_PER_EXTENSION);
        loop {
            let (now, rest) = keys.split_at(count);
            let instructions = instructions(now);
            // One address fits beside anything that this manager sends.
            if count <= 1 || self.fits(&instructions)? {
                return Ok((instructions, rest));
            }
            count -= 1;
        }
    }
}
