//! Patches: `[new length: u32]` and then ranges, each `[offset: u32][length: u32][bytes]`, sorted, within the new length,
//! and without overlap. All numbers are little endian.

use anchor_lang::prelude::*;

use crate::DelegationError;

/// The length that the account has after a patch.
pub(crate) fn new_len(patch: &[u8]) -> Result<usize> {
    number(patch, 0)
}

/// Writes the ranges of a patch to a state that has its new length already.
pub(crate) fn apply(state: &mut [u8], patch: &[u8]) -> Result<()> {
    let mut at = 4;
    let mut written_to = 0;
    while at < patch.len() {
        let (offset, len) = (number(patch, at)?, number(patch, at + 4)?);
        at += 8;
        let bytes = patch.get(at..at + len).ok_or(DelegationError::MalformedPatch)?;
        at += len;
        require!(offset >= written_to, DelegationError::PatchOutOfOrder);
        written_to = offset + len;
        state.get_mut(offset..written_to).ok_or(DelegationError::PatchOutOfBounds)?.copy_from_slice(bytes);
    }
    Ok(())
}

fn number(patch: &[u8], at: usize) -> Result<usize> {
    let bytes = patch.get(at..at + 4).ok_or(DelegationError::MalformedPatch)?;
    let mut number = [0; 4];
    number.copy_from_slice(bytes);
    Ok(u32::from_le_bytes(number) as usize)
}
