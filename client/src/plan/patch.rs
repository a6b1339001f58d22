//! What changes between two states, in the form that the delegation program applies: `docs/programs.md` has it byte by byte.

/// Bytes that a range costs besides its content: offset and length.
const RANGE_OVERHEAD: usize = 8;
/// More ranges than this cost more compute units than a whole state.
pub(super) const MAX_RANGES: usize = 4_096;

/// A patch, and what it costs to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// The patch as the program takes it.
    pub(super) bytes: Vec<u8>,
    /// How many ranges it has.
    pub(super) ranges: usize,
}

/// The patch that makes `new` of `base`; `None` if it would not be shorter than `new` or has too many ranges.
///
/// Ranges that lie closer together than what a range costs become one. What `base` lacks counts as zeroes, as on chain.
pub(super) fn diff(base: &[u8], new: &[u8]) -> Option<Patch> {
    let mut bytes = u32::try_from(new.len()).ok()?.to_le_bytes().to_vec();
    let mut ranges = 0;
    let mut at = next_difference(base, new, 0);
    while let Some(start) = at {
        let mut end = start + 1;
        let following = loop {
            match next_difference(base, new, end) {
                Some(next) if next - end <= RANGE_OVERHEAD => end = next + 1,
                following => break following,
            }
        };
        let content = &new[start..end];
        if ranges == MAX_RANGES || bytes.len() + RANGE_OVERHEAD + content.len() >= new.len() {
            return None;
        }
        bytes.extend_from_slice(&(start as u32).to_le_bytes());
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(content);
        ranges += 1;
        at = following;
    }
    (bytes.len() < new.len()).then_some(Patch { bytes, ranges })
}

/// The first position from `from` on where the states differ.
fn next_difference(base: &[u8], new: &[u8], from: usize) -> Option<usize> {
    /// Bytes compared at a time; equal stretches are long.
    const BLOCK: usize = 64;
    let mut at = from;
    let common = base.len().min(new.len());
    while at + BLOCK <= common && base[at..at + BLOCK] == new[at..at + BLOCK] {
        at += BLOCK;
    }
    (at..new.len()).find(|at| new[*at] != base.get(*at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the program does with a patch.
    fn apply(base: &[u8], patch: &[u8]) -> Vec<u8> {
        let number = |at: usize| u32::from_le_bytes(patch[at..at + 4].try_into().unwrap()) as usize;
        let mut state = base.to_vec();
        state.resize(number(0), 0);
        let (mut at, mut last_end) = (4, 0);
        while at < patch.len() {
            let (offset, len) = (number(at), number(at + 4));
            assert!(offset >= last_end, "ranges are sorted and do not overlap");
            last_end = offset + len;
            state[offset..last_end].copy_from_slice(&patch[at + 8..at + 8 + len]);
            at += 8 + len;
        }
        state
    }

    proptest! {
        #[test]
        fn a_patch_makes_the_new_state_of_the_old_one_and_is_shorter(
            base in prop::collection::vec(any::<u8>(), 0..2_000),
            len in 0usize..2_000,
            changes in prop::collection::vec((0usize..2_000, any::<u8>()), 0..40),
        ) {
            let mut new = base.clone();
            new.resize(len, 0);
            for (at, byte) in changes {
                if let Some(slot) = new.get_mut(at) {
                    *slot = byte;
                }
            }
            if let Some(patch) = diff(&base, &new) {
                prop_assert!(patch.bytes.len() < new.len());
                prop_assert_eq!(apply(&base, &patch.bytes), new);
            }
        }
    }

    #[test]
    fn few_changes_make_a_small_patch_and_many_make_none() {
        let base = vec![7; 10_240];
        let mut new = base.clone();
        assert_eq!(diff(&base, &new).unwrap().bytes, 10_240u32.to_le_bytes());
        new[100..300].fill(1);
        assert_eq!(
            diff(&base, &new).unwrap(),
            Patch {
                bytes: [
                    10_240u32.to_le_bytes().as_slice(),
                    &100u32.to_le_bytes(),
                    &200u32.to_le_bytes(),
                    &[1; 200],
                ]
                .concat(),
                ranges: 1
            }
        );
        assert_eq!(diff(&base, &vec![8; 10_240]), None);
        // Every 20th byte: more ranges than it is worth.
        let mut sparse = vec![0; 20 * (MAX_RANGES + 1)];
        let zeroes = sparse.clone();
        sparse.iter_mut().step_by(20).for_each(|byte| *byte = 1);
        assert_eq!(diff(&zeroes, &sparse), None);
        assert_eq!(diff(&[1, 2, 3], &[]), None, "nothing is shorter than nothing");
    }

    #[test]
    fn what_grew_counts_as_changed_from_zero() {
        let patch = diff(&[1; 100], &[[1; 100].as_slice(), &[0; 100], &[5]].concat()).unwrap();
        assert_eq!(patch.bytes.len(), 4 + 8 + 1);
        assert_eq!(diff(&[1; 100], &[1; 50]).unwrap().bytes, 50u32.to_le_bytes());
    }
}
