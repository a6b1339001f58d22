//! Accounts of one slot, in as many calls as it takes.

use std::sync::atomic::Ordering;

use futures::future::try_join_all;
use solana_account::Account;
use solana_address::Address;
use solana_sdk_ids::sysvar::clock;

use super::{Batch, Counters, Fallback, MAX_BATCH, Source, machine::CODE_HEADER_LEN};

/// Accounts in one batch, between two Clocks.
const IN_ONE_BATCH: usize = MAX_BATCH - 2;

/// The moment that accounts are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) slot: u64,
    pub(super) clock: Account,
}

impl Moment {
    /// The epoch, by the Clock: after its slot and the time at which the epoch began.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.clock.data.get(16..)?.first_chunk().copied().map(u64::from_le_bytes)
    }
}

/// Accounts of one moment, each with its address.
pub(super) struct Fetched {
    pub(super) moment: Moment,
    pub(super) whole: Vec<(Address, Option<Account>)>,
    /// With as much of their data as [`CODE_HEADER_LEN`].
    pub(super) headers: Vec<(Address, Option<Account>)>,
}

/// Fetches accounts, all at once. `None` if they are not of one moment, or not of the one that is asked for.
pub(super) async fn fetch<S: Source>(
    source: &S,
    counters: &Counters,
    whole: &[Address],
    headers: &[Address],
    moment: Option<&Moment>,
) -> Result<Option<Fetched>, Fallback> {
    let batches = whole.chunks(IN_ONE_BATCH).map(|chunk| (chunk, None));
    let batches = batches.chain(headers.chunks(IN_ONE_BATCH).map(|chunk| (chunk, Some(CODE_HEADER_LEN))));
    let batches: Vec<_> = batches.map(|(chunk, len)| one(source, counters, chunk, len)).collect();
    let mut fetched = Fetched {
        moment: Moment { slot: 0, clock: Account::default() },
        whole: Vec::new(),
        headers: Vec::new(),
    };
    let mut moment = moment.cloned();
    for batch in try_join_all(batches).await? {
        let Some((found, accounts, len)) = batch else { return Ok(None) };
        if *moment.get_or_insert_with(|| found.clone()) != found {
            return Ok(None);
        }
        fetched.moment = found;
        if len.is_some() { fetched.headers.extend(accounts) } else { fetched.whole.extend(accounts) }
    }
    Ok(Some(fetched))
}

type OfOneMoment = (Moment, Vec<(Address, Option<Account>)>, Option<usize>);

/// One batch, if its Clocks agree.
async fn one<S: Source>(
    source: &S,
    counters: &Counters,
    addresses: &[Address],
    len: Option<usize>,
) -> Result<Option<OfOneMoment>, Fallback> {
    let asked: Vec<Address> =
        std::iter::once(&clock::ID).chain(addresses).chain(std::iter::once(&clock::ID)).copied().collect();
    counters.calls.fetch_add(1, Ordering::Relaxed);
    let Batch { slot, mut accounts } =
        source.batch(&asked, len).await.map_err(|error| Fallback::Unread(error.to_string()))?;
    if accounts.len() != asked.len() {
        return Err(Fallback::Unread(format!("{} accounts for {} addresses", accounts.len(), asked.len())));
    }
    let last = accounts.pop().flatten();
    let mut accounts = accounts.into_iter();
    let (Some(first), Some(last)) = (accounts.next().flatten(), last) else {
        return Err(Fallback::Unread("there is no Clock".to_owned()));
    };
    if first != last {
        return Ok(None);
    }
    let moment = Moment { slot, clock: first };
    Ok(Some((moment, addresses.iter().copied().zip(accounts).collect(), len)))
}
