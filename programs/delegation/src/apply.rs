//! Changes to a delegated account that several instructions share.

use anchor_lang::cpi::rent_exempt_lamports;
use anchor_lang::pinocchio::Resize;
use anchor_lang::{address_eq, prelude::*};
use chunk_buffer::{Buffer, PAYLOAD_OFFSET, STATE_SEALED};

use crate::{DelegationError, ID, KIND_PATCH, KIND_STATE, MAX_GROWTH, MAX_STATE_LEN, patch};

/// Resizes a delegated account, by at most [`MAX_GROWTH`] bytes upwards, which must leave it rent exempt.
pub(crate) fn resize(account: &mut AccountView, len: usize) -> Result<()> {
    require!(account.owned_by(&ID), DelegationError::NotOwned);
    let old_len = account.data_len();
    if len == old_len {
        return Ok(());
    }
    require!(len <= MAX_STATE_LEN, DelegationError::TooLarge);
    if len > old_len {
        require!(len - old_len <= MAX_GROWTH, DelegationError::TooMuchGrowth);
        require!(account.lamports() >= rent_exempt_lamports(len)?, DelegationError::NotRentExempt);
    }
    // SAFETY: no reference to the account's data is held by any caller.
    unsafe { account.resize_unchecked(len) }
}

/// Makes `state` the whole content of a delegated account.
pub(crate) fn replace_state(account: &mut AccountView, state: &[u8]) -> Result<()> {
    resize(account, state.len())?;
    // SAFETY: `state` comes from instruction data or from another account; the account's own data is not borrowed.
    unsafe { account.borrow_unchecked_mut() }.copy_from_slice(state);
    Ok(())
}

/// Changes the ranges of a delegated account that `patch` names.
pub(crate) fn patch_state(account: &mut AccountView, patch: &[u8]) -> Result<()> {
    resize(account, patch::new_len(patch)?)?;
    // SAFETY: as in `replace_state`.
    patch::apply(unsafe { account.borrow_unchecked_mut() }, patch)
}

/// Changes a delegated account by a payload of either kind.
pub(crate) fn payload(account: &mut AccountView, payload: &[u8], kind: u8) -> Result<()> {
    match kind {
        KIND_STATE => replace_state(account, payload),
        KIND_PATCH => patch_state(account, payload),
        _ => Err(DelegationError::UnknownKind.into()),
    }
}

/// A sealed buffer: its digest and its payload.
pub(crate) struct Sealed<'a> {
    pub(crate) digest: &'a [u8; 32],
    pub(crate) payload: &'a [u8],
}

/// The content of a sealed buffer that belongs to `authority`.
///
/// The result borrows the account's data: the caller must not write to the buffer while it is in use (it never could,
/// since the buffer is another program's).
pub(crate) fn sealed<'a>(buffer: &'a AccountView, authority: &Address) -> Result<Sealed<'a>> {
    require!(buffer.owned_by(&chunk_buffer::ID), DelegationError::NotABuffer);
    // SAFETY: only read, and the account is not one that this program writes to: another program owns it.
    let data = unsafe { buffer.borrow_unchecked() };
    require!(data.len() >= PAYLOAD_OFFSET, DelegationError::NotABuffer);
    require!(&data[..8] == Buffer::DISCRIMINATOR, DelegationError::NotABuffer);
    let header: &Buffer = bytemuck::from_bytes(&data[8..PAYLOAD_OFFSET]);
    require!(header.version == chunk_buffer::VERSION, DelegationError::NotABuffer);
    require!(header.state == STATE_SEALED, DelegationError::BufferNotSealed);
    require!(address_eq(&header.authority, authority), DelegationError::ForeignBuffer);
    let payload = &data[PAYLOAD_OFFSET..PAYLOAD_OFFSET + header.payload_len as usize];
    Ok(Sealed { digest: &header.digest, payload })
}
