//! What the manager knows of its tables, in memory, and which of them serve a set of addresses. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use solana_address::Address;
use solana_address_lookup_table_interface::state::LOOKUP_TABLE_MAX_ADDRESSES;

use crate::{
    store::StoredTable,
    types::{LookupTable, TableOrigin, TableStatus},
};

/// One table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) stored: StoredTable,
    /// How many of its entries transactions can use by now.
    pub(super) usable: usize,
    /// All of its entries can be used after this slot.
    pub(super) extended_slot: u64,
    /// It refused an extension, though it looked as if it would not.
    pub(super) refused: bool,
}

impl Table {
    /// Whether transactions may use it. One that was found on chain may be closed by its maker at any time.
    fn serves(&self) -> bool {
        let stored = &self.stored;
        matches!(stored.status, TableStatus::Active | TableStatus::Frozen)
            && stored.origin == TableOrigin::Created
            && !stored.closing
            && stored.absent_since_slot.is_none()
    }

    fn room(&self) -> usize {
        if self.serves() && self.stored.status == TableStatus::Active && !self.refused {
            LOOKUP_TABLE_MAX_ADDRESSES.saturating_sub(self.stored.entries.len())
        } else {
            0
        }
    }

    fn usable(&self) -> &[Address] {
        self.stored.entries.get(..self.usable).unwrap_or(&self.stored.entries)
    }
}

/// What has to be done to have sets of addresses each in one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// What tables that exist lack.
    pub(super) extensions: BTreeMap<Address, BTreeSet<Address>>,
    /// What new tables have to hold.
    pub(super) created: Vec<BTreeSet<Address>>,
}

/// All tables, closed ones too: their addresses can't be used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Book {
    /// Whether the store and the chain have been read.
    pub(super) loaded: bool,
    tables: BTreeMap<Address, Table>,
}

impl Book {
    /// Takes over what was seen of a table.
    pub(super) fn put(&mut self, mut table: Table) {
        let known = self.tables.get(&table.stored.address);
        table.refused |= known.is_some_and(|known| known.refused);
        self.tables.insert(table.stored.address, table);
    }

    pub(super) fn knows(&self, table: &Address) -> bool {
        self.tables.contains_key(table)
    }

    /// Lets no more transactions use a table, or lets them again.
    pub(super) fn set_closing(&mut self, table: &Address, closing: bool) {
        if let Some(table) = self.tables.get_mut(table) {
            table.stored.closing = closing;
        }
    }

    /// Extends a table no more.
    pub(super) fn set_refused(&mut self, table: &Address) {
        if let Some(table) = self.tables.get_mut(table) {
            table.refused = true;
        }
    }

    /// Tables that can be extended, and by how many addresses; the fullest first, so that few are open at a time.
    pub(super) fn rooms(&self) -> Vec<(Address, usize)> {
        let rooms = self.tables.iter().map(|(address, table)| (*address, table.room()));
        let mut rooms: Vec<_> = rooms.filter(|(_, room)| *room > 0).collect();
        rooms.sort_by_key(|(_, room)| *room);
        rooms
    }

    /// The addresses that are in no table that serves.
    pub(super) fn missing(&self, keys: &BTreeSet<Address>) -> BTreeSet<Address> {
        let mut missing = keys.clone();
        for table in self.tables.values().filter(|table| table.serves()) {
            if missing.is_empty() {
                break;
            }
            table.stored.entries.iter().for_each(|entry| {
                missing.remove(entry);
            });
        }
        missing
    }

    /// The slot after which all of these addresses can be used, as far as they are in tables; `None` if they can be now.
    pub(super) fn usable_after(&self, keys: &BTreeSet<Address>) -> Option<u64> {
        let mut after: BTreeMap<&Address, u64> = BTreeMap::new();
        let mut usable: BTreeSet<&Address> = BTreeSet::new();
        for table in self.tables.values().filter(|table| table.serves()) {
            usable.extend(table.usable().iter().filter(|entry| keys.contains(*entry)));
            for entry in table.stored.entries.iter().skip(table.usable).filter(|entry| keys.contains(*entry))
            {
                let slot = after.entry(entry).or_insert(u64::MAX);
                *slot = (*slot).min(table.extended_slot);
            }
        }
        after.into_iter().filter(|(entry, _)| !usable.contains(*entry)).map(|(_, slot)| slot).max()
    }

    /// Whether one table has all of these addresses, and after which slot they can be used if not now.
    pub(super) fn together(&self, keys: &BTreeSet<Address>) -> Option<Option<u64>> {
        let has_all = |entries: &[Address]| {
            let entries: BTreeSet<&Address> = entries.iter().collect();
            keys.iter().all(|key| entries.contains(key))
        };
        let holding = self.tables.values().filter(|table| table.serves() && has_all(&table.stored.entries));
        let after = holding.map(|table| (!has_all(table.usable())).then_some(table.extended_slot));
        // Now comes before any slot.
        after.min()
    }

    /// Where sets of addresses can each be in one table: what existing tables have to be extended by, and what new ones have
    /// to hold.
    pub(super) fn arrange(&self, sets: &[BTreeSet<Address>]) -> Arrangement {
        let mut extensions: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        let mut created: Vec<BTreeSet<Address>> = Vec::new();
        let rooms = self.rooms();
        for set in sets {
            let target = rooms.iter().find_map(|(address, room)| {
                let held: BTreeSet<&Address> = self.tables.get(address)?.stored.entries.iter().collect();
                let mut added = extensions.get(address).cloned().unwrap_or_default();
                added.extend(set.iter().filter(|key| !held.contains(key)));
                (added.len() <= *room).then_some((*address, added))
            });
            if let Some((address, added)) = target {
                extensions.insert(address, added);
                continue;
            }
            let fits =
                |table: &&mut BTreeSet<Address>| table.union(set).count() <= LOOKUP_TABLE_MAX_ADDRESSES;
            match created.iter_mut().find(fits) {
                Some(table) => table.extend(set),
                None => created.push(set.clone()),
            }
        }
        Arrangement { extensions, created }
    }

    /// Notes that the chain has reached a slot.
    pub(super) fn reached(&mut self, slot: u64) {
        for table in self.tables.values_mut().filter(|table| table.extended_slot < slot) {
            table.usable = table.stored.entries.len();
        }
    }

    /// A small number of tables that have all of these addresses that can be used: always the one that has most of those
    /// that are left.
    pub(super) fn cover(&self, keys: &BTreeSet<Address>) -> Vec<LookupTable> {
        let mut left = keys.clone();
        let mut candidates: Vec<&Table> = self.tables.values().filter(|table| table.serves()).collect();
        let mut cover = Vec::new();
        while !left.is_empty() {
            // Somebody else may have put an address in twice.
            let hits = |table: &Table| {
                let hits = table.usable().iter().filter(|entry| left.contains(*entry));
                hits.collect::<BTreeSet<_>>().len()
            };
            // The first of equals, so that the answer depends on the tables alone.
            let counts = candidates.iter().map(|table| hits(table)).enumerate().rev();
            let Some((best, count)) = counts.max_by_key(|(_, count)| *count) else { break };
            if count == 0 {
                break;
            }
            let table = candidates.remove(best);
            table.usable().iter().for_each(|entry| {
                left.remove(entry);
            });
            cover.push(LookupTable { address: table.stored.address, addresses: table.usable().to_vec() });
        }
        cover
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Lamports;

    fn key(number: u16) -> Address {
        let mut bytes = [0; 32];
        bytes[..2].copy_from_slice(&number.to_le_bytes());
        Address::new_from_array(bytes)
    }

    fn keys(numbers: &[u16]) -> BTreeSet<Address> {
        numbers.iter().copied().map(key).collect()
    }

    fn table(address: u16, entries: &[u16]) -> Table {
        let stored = StoredTable {
            address: key(address),
            origin: TableOrigin::Created,
            status: TableStatus::Active,
            closing: false,
            deactivation_slot: None,
            lamports: Lamports(1),
            absent_since_slot: None,
            unused_since_ms: None,
            entries: entries.iter().copied().map(key).collect(),
            references: 0,
        };
        Table { stored, usable: entries.len(), extended_slot: 0, refused: false }
    }

    #[test]
    fn sets_of_addresses_go_each_into_one_table() {
        let full: Vec<u16> = (100..100 + LOOKUP_TABLE_MAX_ADDRESSES as u16).collect();
        let book = book([table(1, &[10, 11]), table(2, &full[..250]), table(3, &full)]);
        assert_eq!(book.together(&keys(&[10, 11])), Some(None));
        assert_eq!(book.together(&keys(&[10, 100])), None, "they are in two tables");
        // The fullest table that has room for all of a set takes it, also what is in another one already.
        let arranged = book.arrange(&[keys(&[10, 100]), keys(&[20, 21, 22, 23, 24, 25, 26])]);
        assert_eq!(arranged.created, [] as [BTreeSet<Address>; 0]);
        let expected = [(key(1), keys(&[20, 21, 22, 23, 24, 25, 26])), (key(2), keys(&[10]))];
        assert_eq!(arranged.extensions, BTreeMap::from(expected));
        // What no table has room for makes new ones, as few as take the sets whole.
        let large: Vec<u16> = (1_000..1_200).collect();
        let other: Vec<u16> = (2_000..2_200).collect();
        let arranged = super::Book::default().arrange(&[keys(&large), keys(&other), keys(&[5])]);
        assert_eq!(arranged.created.iter().map(BTreeSet::len).collect::<Vec<_>>(), [201, 200]);
    }

    fn book(tables: impl IntoIterator<Item = Table>) -> Book {
        let mut book = Book::default();
        tables.into_iter().for_each(|table| book.put(table));
        book
    }

    fn cover(book: &Book, numbers: &[u16]) -> Vec<Address> {
        book.cover(&keys(numbers)).into_iter().map(|table| table.address).collect()
    }

    #[test]
    fn a_cover_takes_no_table_that_adds_nothing() {
        let book = book([table(1000, &[1, 2]), table(1001, &[1, 2, 3, 4]), table(1002, &[5])]);
        assert_eq!(cover(&book, &[1, 2, 3]), [key(1001)]);
        assert_eq!(cover(&book, &[1, 5]), [key(1000), key(1002)], "of equals, the first");
        assert_eq!(cover(&book, &[1, 2, 3, 5, 9]), [key(1001), key(1002)], "what is nowhere is left out");
        assert_eq!(cover(&book, &[]), []);
    }

    #[test]
    fn what_does_not_serve_is_as_if_it_were_not_there() {
        let changes: [fn(&mut StoredTable); 5] = [
            |table| table.status = TableStatus::Deactivating,
            |table| table.status = TableStatus::Closed,
            |table| table.closing = true,
            |table| table.absent_since_slot = Some(7),
            |table| table.origin = TableOrigin::Discovered,
        ];
        for change in changes {
            let mut changed = table(1000, &[1]);
            change(&mut changed.stored);
            let book = book([changed]);
            assert_eq!(book.missing(&keys(&[1])), keys(&[1]));
            assert_eq!((cover(&book, &[1]), book.rooms()), (vec![], vec![]));
            assert!(book.knows(&key(1000)), "its address can't be used again");
        }
    }

    #[test]
    fn entries_can_be_used_after_the_slot_of_their_extension() {
        let mut new = table(1000, &[1, 2, 3]);
        (new.usable, new.extended_slot) = (1, 50);
        let mut book = book([new]);
        assert_eq!(book.missing(&keys(&[1, 2])), keys(&[]));
        assert_eq!((book.usable_after(&keys(&[1])), book.usable_after(&keys(&[1, 2]))), (None, Some(50)));
        assert_eq!(cover(&book, &[2]), []);
        book.reached(50);
        assert_eq!(book.usable_after(&keys(&[2])), Some(50));
        book.reached(51);
        assert_eq!((book.usable_after(&keys(&[2])), cover(&book, &[2])), (None, vec![key(1000)]));
    }

    #[test]
    fn the_fullest_table_is_filled_first_and_one_that_refused_is_not() {
        let full: Vec<u16> = (0..256).collect();
        let mut book = book([table(1000, &[1]), table(1001, &full[..250]), table(1002, &full)]);
        assert_eq!(book.rooms(), [(key(1001), 6), (key(1000), 255)]);
        book.set_refused(&key(1001));
        assert_eq!(book.rooms(), [(key(1000), 255)]);
        book.put(table(1001, &full[..251]));
        assert_eq!(book.rooms(), [(key(1000), 255)], "looking again does not change that");
        let mut frozen = table(1000, &[1]);
        frozen.stored.status = TableStatus::Frozen;
        book.put(frozen);
        assert_eq!(book.rooms(), []);
        assert_eq!(cover(&book, &[1, 255]), [key(1002),], "frozen tables serve, where they are needed");
    }
}
