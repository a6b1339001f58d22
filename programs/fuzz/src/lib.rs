//! What the fuzz targets share: from arbitrary bytes to an instruction that the programs' real entrypoints run.
//!
//! Each target reads accounts from the first bytes of its input and takes the rest as instruction data. Accounts that
//! only a program itself can have made are made valid: what a program does with a state that it never leaves behind is no
//! finding. In return, every accepted instruction is checked to leave a valid state behind.
//!
//! `runtime` serializes the accounts as the chain does, calls the entrypoint, answers its calls to other programs and
//! applies the chain's rules to what it did. `chunk_buffer`, `delegation` and `patch` hold what each target promises.

pub mod chunk_buffer;
#[cfg(feature = "delegation")]
pub mod delegation;
pub mod input;
#[cfg(feature = "delegation")]
pub mod patch;
pub mod runtime;
#[cfg(feature = "delegation")]
pub mod seeds;
