//! Buffers of the upgradeable loader (loader-v3), as programs travel through.

use std::ops::Range;

use solana_address::Address;
use solana_instruction::Instruction;
use solana_loader_v3_interface::{
    instruction::{self as loader, UpgradeableLoaderInstruction},
    state::UpgradeableLoaderState,
};
use solana_sdk_ids::bpf_loader_upgradeable;
use solana_system_interface::instruction as system;

use super::{PlanContext, PlanError, PlannedTransaction, cost, transaction::TransactionBuilder};
use crate::types::{Lamports, Stage};

/// Length of a loader buffer's header, in bytes.
pub const LOADER_BUFFER_HEADER: usize = UpgradeableLoaderState::size_of_buffer_metadata();
/// Bytes that one write carries at most: the loader reads 1,232 of an instruction, the first 16 of which say what it is.
const MAX_WRITE: usize = 1_232 - 16;
/// A write of fewer bytes is put off to the next transaction, unless there are no more.
const MIN_WRITE: usize = 64;
/// Equal bytes between two that differ, up to which one write is cheaper than two.
const MAX_GAP: usize = 64;
/// Writes in one transaction: each is an instruction, of which a transaction has 64 at most.
const MAX_WRITES: usize = 32;

/// A loader buffer that a program is written to.
#[derive(Clone, Debug)]
pub(super) struct LoaderBuffer<'a> {
    pub(super) address: Address,
    pub(super) seed: &'a str,
    /// What is to be written.
    pub(super) content: &'a [u8],
}

/// Where the two differ, `found` being all zeroes if there is nothing. Short gaps are taken along.
pub(super) fn differences(wanted: &[u8], found: Option<&[u8]>) -> Vec<Range<usize>> {
    let differs = |at: usize| found.and_then(|found| found.get(at)).copied().unwrap_or(0) != wanted[at];
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..wanted.len()).filter(|at| differs(*at)) {
        match ranges.last_mut() {
            Some(last) if at - last.end <= MAX_GAP => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

impl LoaderBuffer<'_> {
    /// Length of the account in bytes.
    pub(super) const fn account_len(&self) -> u64 {
        UpgradeableLoaderState::size_of_buffer(self.content.len()) as u64
    }

    /// The transactions that create it, with as much of the content as fits, and then write the rest; each a round.
    pub(super) fn create(
        &self,
        rent: Lamports,
        context: &PlanContext,
    ) -> Result<Vec<Vec<PlannedTransaction>>, PlanError> {
        let create = self.create_instructions(rent, context);
        let room = self.room(&create, context)?;
        let full = self.room(&[], context)?;
        let mut packed = pack(differences(self.content, None), room, full).into_iter();
        let mut builder = self.builder();
        for instruction in create {
            builder.add(instruction, cost::LOADER);
        }
        self.add_writes(&mut builder, packed.next().unwrap_or_default(), context);
        let mut rounds = vec![vec![builder.build(context, 0)]];
        let writes = self.transactions(packed, context);
        rounds.extend((!writes.is_empty()).then_some(writes));
        Ok(rounds)
    }

    /// The transactions that write what is not there yet.
    pub(super) fn complete(
        &self,
        found: &[u8],
        context: &PlanContext,
    ) -> Result<Vec<PlannedTransaction>, PlanError> {
        let room = self.room(&[], context)?;
        Ok(self.transactions(pack(differences(self.content, Some(found)), room, room), context))
    }

    /// At the top level of a transaction an account of any size can be allocated at once, and one that a stranger has sent
    /// lamports to as well as any other.
    fn create_instructions(&self, rent: Lamports, context: &PlanContext) -> Vec<Instruction> {
        let (payer, authority, id) = (&context.payer, &context.authority, &bpf_loader_upgradeable::ID);
        let transfer = (rent.0 > 0).then(|| system::transfer(payer, &self.address, rent.0));
        let allocate =
            system::allocate_with_seed(&self.address, authority, self.seed, self.account_len(), id);
        let accounts = vec![
            solana_instruction::AccountMeta::new(self.address, false),
            solana_instruction::AccountMeta::new_readonly(*authority, false),
        ];
        let init =
            Instruction::new_with_bincode(*id, &UpgradeableLoaderInstruction::InitializeBuffer, accounts);
        transfer.into_iter().chain([allocate, init]).collect()
    }

    /// What a transaction with `instructions` leaves for writes, measured by serializing it with one and with two.
    fn room(&self, instructions: &[Instruction], context: &PlanContext) -> Result<Room, PlanError> {
        const PROBE: usize = 256;
        let len = |writes: usize| {
            let mut builder = self.builder();
            for instruction in instructions {
                builder.add(instruction.clone(), cost::LOADER);
            }
            for _ in 0..writes {
                builder
                    .add(loader::write(&self.address, &context.authority, 0, vec![0; PROBE]), cost::LOADER);
            }
            builder.build(context, 0).wire_len(&context.payer)
        };
        let (one, two) = (len(1)?, len(2)?);
        let per_write = two - one - PROBE;
        Ok(Room { bytes: (context.version.max_len() + PROBE + per_write).saturating_sub(one), per_write })
    }

    fn transactions(
        &self,
        packed: impl IntoIterator<Item = Vec<Range<usize>>>,
        context: &PlanContext,
    ) -> Vec<PlannedTransaction> {
        let write = |ranges: Vec<Range<usize>>| {
            let mut builder = self.builder();
            self.add_writes(&mut builder, ranges, context);
            builder.build(context, 0)
        };
        packed.into_iter().filter(|ranges| !ranges.is_empty()).map(write).collect()
    }

    fn add_writes(&self, builder: &mut TransactionBuilder, ranges: Vec<Range<usize>>, context: &PlanContext) {
        for range in ranges {
            let (offset, bytes) = (range.start as u32, self.content[range].to_vec());
            builder.add(loader::write(&self.address, &context.authority, offset, bytes), cost::LOADER);
        }
    }

    fn builder(&self) -> TransactionBuilder {
        let mut builder = TransactionBuilder::new(Stage::Prepare);
        builder.loads(self.account_len());
        builder
    }
}

/// What a transaction has left for writes.
#[derive(Clone, Copy)]
struct Room {
    bytes: usize,
    /// What each write takes besides its content.
    per_write: usize,
}

/// Ranges as the writes of transactions, the first of which has `first` left; it may come out empty.
fn pack(ranges: Vec<Range<usize>>, first: Room, full: Room) -> Vec<Vec<Range<usize>>> {
    let (mut packed, mut current, mut left) = (Vec::new(), Vec::new(), first.bytes);
    for mut range in ranges {
        while !range.is_empty() {
            let fits = left.saturating_sub(full.per_write).min(MAX_WRITE);
            if current.len() == MAX_WRITES || fits < range.len().min(MIN_WRITE) {
                packed.push(std::mem::take(&mut current));
                left = full.bytes;
                continue;
            }
            let len = range.len().min(fits);
            current.push(range.start..range.start + len);
            range.start += len;
            left -= full.per_write + len;
        }
    }
    packed.push(current);
    packed
}

/// The transaction that closes a loader buffer of `account_len` bytes and sends what is locked in it to `receiver`.
pub fn plan_close_loader_buffer(
    buffer: Address,
    account_len: u64,
    receiver: Address,
    context: &PlanContext,
) -> PlannedTransaction {
    let mut builder = TransactionBuilder::new(Stage::Cleanup);
    builder.loads(account_len).add(loader::close(&buffer, &receiver, &context.authority), cost::LOADER);
    builder.build(context, 0)
}

/// The transaction that hands a loader buffer of `account_len` bytes to another authority.
pub fn plan_set_loader_buffer_authority(
    buffer: Address,
    account_len: u64,
    new_authority: Address,
    context: &PlanContext,
) -> PlannedTransaction {
    let hand_on = loader::set_buffer_authority(&buffer, &context.authority, &new_authority);
    let mut builder = TransactionBuilder::new(Stage::Prepare);
    builder.loads(account_len).add(hand_on, cost::LOADER);
    builder.build(context, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_take_short_gaps_along_and_skip_long_ones() {
        let mut wanted = vec![0; 1_000];
        assert!(differences(&wanted, None).is_empty());
        wanted[10] = 1;
        wanted[10 + MAX_GAP + 1] = 1;
        wanted[500] = 1;
        assert_eq!(differences(&wanted, None), [10..10 + MAX_GAP + 2, 500..501]);
        let mut found = wanted.clone();
        assert!(differences(&wanted, Some(&found)).is_empty());
        found[999] = 7;
        assert_eq!(differences(&wanted, Some(&found)), std::iter::once(999..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn packing_keeps_every_byte_once_and_every_room() {
        let (first, full) = (Room { bytes: 100, per_write: 22 }, Room { bytes: 3_900, per_write: 22 });
        let ranges = vec![0..5_000, 5_100..5_101, 6_000..6_900, 7_000..20_000];
        let packed = pack(ranges.clone(), first, full);
        let mut seen: Vec<usize> = packed.iter().flatten().flat_map(Clone::clone).collect();
        seen.sort_unstable();
        assert_eq!(seen, ranges.into_iter().flatten().collect::<Vec<_>>());
        for (index, ranges) in packed.iter().enumerate() {
            let used: usize = ranges.iter().map(|range| range.len() + 22).sum();
            assert!(used <= if index == 0 { 100 } else { 3_900 }, "{ranges:?}");
            assert!(ranges.iter().all(|range| range.len() <= MAX_WRITE) && ranges.len() <= MAX_WRITES);
        }
    }
}
