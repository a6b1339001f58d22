//! What instructions cost, and the limits that follow.
//!
//! The numbers are those of `docs/cu.md`, rounded up: what an instruction uses depends a little on addresses and branches.

use committor_sdk::digest::SEGMENT_LEN;

/// Compute units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputeUnits(pub u64);

/// The most that one transaction may use.
pub(super) const MAX: ComputeUnits = ComputeUnits(1_400_000);
/// A built-in program's instruction (system, compute budget).
pub(super) const BUILTIN: ComputeUnits = ComputeUnits(150);
/// An instruction of the upgradeable loader; all cost the same.
pub(super) const LOADER: ComputeUnits = ComputeUnits(2_370);
/// `init` of a buffer.
pub(super) const INIT: ComputeUnits = ComputeUnits(500);
/// `close` of a buffer.
pub(super) const CLOSE: ComputeUnits = ComputeUnits(300);
/// One step of growth of a delegated account.
pub(super) const GROW: ComputeUnits = ComputeUnits(900);
/// `stage`.
pub(super) const STAGE: ComputeUnits = ComputeUnits(800);
/// An instruction of which nothing is known: what the chain gives each one where a transaction names no limit.
pub(super) const UNKNOWN: ComputeUnits = ComputeUnits(200_000);
/// What an owner program may use to take an account back: about ten times what the example program does.
const RESTORE: ComputeUnits = ComputeUnits(20_000);

impl ComputeUnits {
    /// `write` of a chunk of `len` bytes.
    pub(super) const fn write(len: usize) -> Self {
        Self(320 + len as u64 / 200)
    }

    /// One call of `seal` on a payload of `len` bytes: SHA-256 takes one unit for two bytes.
    pub(super) const fn seal(len: usize) -> Self {
        let segment = if len < SEGMENT_LEN { len } else { SEGMENT_LEN };
        Self(500 + segment as u64 / 2)
    }

    /// A commit of a state of `len` bytes, inline, from a buffer or staged, with its last step of growth.
    pub(super) const fn commit(len: usize) -> Self {
        Self(1_100 + len as u64 / 200)
    }

    /// A commit of a patch of `ranges` ranges and `len` bytes, with the last step of growth.
    pub(super) const fn patch(ranges: usize, len: usize) -> Self {
        Self(1_100 + 55 * ranges as u64 + len as u64 / 200)
    }

    /// Handing an account of `len` bytes back: two copies, and what the owner program does.
    pub(super) const fn undelegate(len: usize) -> Self {
        Self(5_000 + len as u64 / 40 + RESTORE.0)
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The limit to ask for: a tenth more, rounded up to a thousand.
    pub const fn with_margin(self) -> Self {
        Self(self.0.saturating_add(self.0 / 10).div_ceil(1_000) * 1_000)
    }
}
