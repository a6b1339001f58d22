//! Patches, whose functions are the program's own: driven through `commit_patch` of a delegation that is in order, so that
//! every byte of an input but the first two is the patch's.

use ::delegation::MAX_GROWTH;

use crate::delegation::{Plan, check as check_instruction};
use crate::input::Input;
use crate::runtime::Outcome;

/// Runs an input, which is `[length of the account: u16][patch]`, and compares with [`apply`].
///
/// # Panics
/// If the program and [`apply`] disagree.
pub fn check(bytes: &[u8]) -> Outcome {
    let mut input = Input(bytes);
    let account_len = input.u16();
    let patch = input.rest();
    let plan = Plan { account_len, fill: 0xaa, lamports: [200, 0, 0], slot: 1, ..Plan::default() };
    let mut bytes = plan.write();
    bytes.push(11);
    for number in [0u64, 1, 1] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend((patch.len() as u32).to_le_bytes());
    bytes.extend(patch);
    let outcome = check_instruction(&bytes);
    let expected = apply(&vec![0xaa; account_len.into()], patch);
    assert_eq!(outcome.accepted(), expected.is_some());
    outcome
}

/// What a patch makes of a state, or `None` if it is not well-formed, sorted and within the new length, or grows the state
/// by more than one instruction can.
pub fn apply(state: &[u8], patch: &[u8]) -> Option<Vec<u8>> {
    let (new_len, mut rest) = patch.split_first_chunk::<4>()?;
    let new_len = u32::from_le_bytes(*new_len) as usize;
    if new_len > state.len() + MAX_GROWTH {
        return None;
    }
    let mut state = state.to_vec();
    state.resize(new_len, 0);
    let mut free_from = 0;
    while !rest.is_empty() {
        let (offset, after) = rest.split_first_chunk::<4>()?;
        let (len, after) = after.split_first_chunk::<4>()?;
        let (offset, len) = (u32::from_le_bytes(*offset) as usize, u32::from_le_bytes(*len) as usize);
        let (bytes, after) = after.split_at_checked(len)?;
        if offset < free_from {
            return None;
        }
        state.get_mut(offset..)?.get_mut(..len)?.copy_from_slice(bytes);
        free_from = offset + len;
        rest = after;
    }
    Some(state)
}
