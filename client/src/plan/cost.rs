//! What instructions cost, from `docs/cu.md`, and the limits that follow.

use committor_sdk::digest::SEGMENT_LEN;

/// Compute units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputeUnits(pub u64);

/// The most that one transaction may use.
pub(super) const MAX: ComputeUnits = ComputeUnits(1_400_000);
/// A built-in program's instruction (system, compute budget).
pub(super) const BUILTIN: ComputeUnits = ComputeUnits(150);
/// `init` of a buffer.
pub(super) const INIT: ComputeUnits = ComputeUnits(1_200);
/// `close` of a buffer.
pub(super) const CLOSE: ComputeUnits = ComputeUnits(600);
/// One step of growth of a delegated account.
pub(super) const GROW: ComputeUnits = ComputeUnits(1_200);

impl ComputeUnits {
    /// `write` of a chunk of `len` bytes.
    pub(super) const fn write(len: usize) -> Self {
        Self(350 + len as u64 / 200)
    }

    /// One call of `seal` on a payload of `len` bytes: SHA-256 takes one unit for two bytes.
    pub(super) const fn seal(len: usize) -> Self {
        let segment = if len < SEGMENT_LEN { len } else { SEGMENT_LEN };
        Self(800 + segment as u64 / 2)
    }

    /// A commit of a state of `len` bytes, inline or from a buffer, with its last step of growth.
    pub(super) const fn commit(len: usize) -> Self {
        Self(2_000 + len as u64 / 200)
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The limit to ask for: the table's sum and a tenth more, since an address or a branch can cost a little more on
    /// another account, rounded up to a thousand.
    pub(super) const fn with_margin(self) -> Self {
        Self((self.0 + self.0 / 10).div_ceil(1_000) * 1_000)
    }
}
