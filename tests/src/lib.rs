//! Helpers for tests of the two programs.
//!
//! A [`World`] is a virtual machine with the programs loaded, in which everybody who matters has a keypair made from a
//! name, so that every run has the same addresses. Scenarios live in `tests/`.
//!
//! | module | purpose |
//! |---|---|
//! | `world` | the virtual machine, its signers, and sending |
//! | `outcome` | what became of a transaction, and what a test may say about it |
//! | `buffers`, `delegations` | accounts to begin with, and what is in them |
//! | `sequences` | how many random sequences a property test tries |
//! | `tamper` | instructions with one thing about them changed |
//! | [`cu`] | what every instruction costs |

mod buffers;
pub mod cu;
mod delegations;
mod outcome;
mod sequences;
mod tamper;
mod world;

pub use buffers::{BufferBytes, OPEN, SEALED};
pub use delegations::{
    DELEGATED, MAX_STATE_LEN, NO_ADDRESS, PATCH, PENDING, RECORD_LEN, RecordBytes, STATE, patch,
};
pub use outcome::{
    CONSTRAINT_MUT, DUPLICATE_MUTABLE_ACCOUNT, Failure, Landed, Outcome, Reason, landed, refused,
    refused_as_a_whole,
};
pub use sequences::proptest_config;
pub use tamper::{every_flag_is_required, read_only, signed, unsigned};
pub use world::{Format, LAMPORTS, Limits, World, pattern};
