//! Delegation: an owner program hands one of its accounts to this program, so that an authority (the committor of an
//! off-chain engine) may write new states to it, and gets it back with the last state.
//!
//! Delegating takes two calls from inside the owner program's instruction (the crate `delegation-cpi` makes them), since
//! the runtime lets only an owner give an account away, and only an empty one: `begin_delegate` copies the state into
//! the record, the owner zeroes and assigns the account, `delegate` copies the state back.
//!
//! One record per account, at the address derived from `["delegation", account]` (`state.rs`).
#![cfg_attr(target_os = "solana", no_std)]

use anchor_lang::prelude::*;
use sbf_builtins as _;

pub mod apply;
pub mod error;
pub mod instructions;
pub mod state;

pub use error::DelegationError;
use instructions::*;
pub use state::*;

declare_id!("Deg5W1RRKKWy2mZhGLGSzS6YYvTetHwGJYVxKsbJKFmi");

#[program]
pub mod delegation {
    use super::*;

    /// Makes room for a state of `len` bytes in the account's record, at most 10,240 bytes a call.
    ///
    /// Needed only where a state is larger than one instruction can make room for: before an owner program delegates an
    /// account of more than 10,024 bytes, and before an account of more than 10,240 bytes is undelegated. The record is
    /// created if there is none; beyond that, rent is the caller's to transfer.
    #[discrim = [1]]
    pub fn reserve(ctx: &mut Context<Reserve>, len: u32) -> Result<()> {
        reserve::handler(ctx, len)
    }

    /// First half of delegating, called by the owner program: copies the account's state into its record.
    #[discrim = [2]]
    pub fn begin_delegate(ctx: &mut Context<BeginDelegate>) -> Result<()> {
        begin_delegate::handler(ctx)
    }

    /// Second half, called once the owner program has zeroed the account and assigned it to this program: copies the
    /// state back and names the authority that may commit.
    #[discrim = [3]]
    pub fn delegate(ctx: &mut Context<Delegate>, authority: Address) -> Result<()> {
        delegate::handler(ctx, authority)
    }

    /// Grows a delegated account towards `len` bytes, by at most 10,240 bytes a call, filled with zeroes.
    ///
    /// Put before a commit in the same transaction, where the commit grows the account by more than 10,240 bytes.
    #[discrim = [4]]
    pub fn grow(ctx: &mut Context<Grow>, len: u32) -> Result<()> {
        grow::handler(ctx, len)
    }

    /// Makes `data` the account's state.
    ///
    /// `nonce` must be that of the last commit plus one. `commit_id` is the caller's and is kept in the record, so that
    /// a client can tell whether its commit is the one that landed.
    #[discrim = [5]]
    pub fn commit(ctx: &mut Context<Commit>, nonce: u64, commit_id: u64, data: &[u8]) -> Result<()> {
        commit::handler(ctx, nonce, commit_id, data)
    }

    /// Makes the payload of a sealed buffer of the same authority the account's state.
    #[discrim = [6]]
    pub fn commit_buffer(ctx: &mut Context<CommitBuffer>, nonce: u64, commit_id: u64) -> Result<()> {
        commit_buffer::handler(ctx, nonce, commit_id)
    }

    /// Names a sealed buffer as the account's next state, without changing the account yet.
    #[discrim = [7]]
    pub fn stage(ctx: &mut Context<Stage>, nonce: u64, commit_id: u64) -> Result<()> {
        stage::handler(ctx, nonce, commit_id)
    }

    /// Makes the staged state the account's state.
    #[discrim = [8]]
    pub fn finalize(ctx: &mut Context<Finalize>) -> Result<()> {
        finalize::handler(ctx)
    }

    /// Hands the account back: zeroes it, assigns it to its owner program, calls that program's `restore_delegated` with
    /// the state in the record, and closes the record.
    ///
    /// Accounts after the declared ones are passed on to the owner program.
    #[discrim = [9]]
    pub fn undelegate(ctx: &mut Context<Undelegate>) -> Result<()> {
        undelegate::handler(ctx)
    }
}
