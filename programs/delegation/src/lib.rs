//! Delegation: an owner program hands one of its accounts to this program, so that an authority (the committor of an
//! off-chain engine) may write new states to it, and gets it back with the last state.
//!
//! Delegating takes two calls from inside the owner program's instruction (the crate `delegation-cpi` makes them), since
//! the runtime lets only an owner give an account away, and only an empty one: `begin_delegate` copies the state into
//! the record, the owner zeroes and assigns the account, `delegate` copies the state back.
//!
//! One record per account, at the address derived from `["delegation", account]` (`state.rs`). This program owns the
//! records and the delegated accounts, whose bytes anyone may have chosen: what is a record is told by its address alone.
#![cfg_attr(target_os = "solana", no_std)]

use anchor_lang::prelude::*;
use sbf_builtins as _;

pub mod apply;
pub mod error;
pub mod hand_back;
pub mod instructions;
pub mod patch;
pub mod state;

pub use error::DelegationError;
use instructions::*;
pub use state::{
    Delegation, KIND_PATCH, KIND_STATE, MAX_GROWTH, MAX_STATE_LEN, PDA_MARKER, RECORD_SEED,
    RESTORE_DISCRIMINATOR, STATE_DELEGATED, STATE_OFFSET, STATE_PENDING, VERSION,
};

/// The program's address: that of `COMMITTOR_DELEGATION_ID` in the build's environment, or else the project's own.
pub const ID: Address = match option_env!("COMMITTOR_DELEGATION_ID") {
    Some(id) => Address::from_str_const(id),
    None => Address::from_str_const("Deg5W1RRKKWy2mZhGLGSzS6YYvTetHwGJYVxKsbJKFmi"),
};

/// [`ID`].
pub const fn id() -> Address {
    ID
}

#[program]
pub mod delegation {
    use super::*;

    /// Makes room for a state of `len` bytes in the account's record, at most 10,240 bytes a call.
    ///
    /// Needed only where a state is larger than one instruction can make room for: before an owner program delegates an
    /// account of more than 9,992 bytes, and before an account of more than 10,240 bytes is undelegated. The record is
    /// created if there is none; beyond that, rent is the caller's to transfer.
    #[discrim = [1]]
    pub fn reserve(ctx: &mut Context<Reserve>, len: u32) -> Result<()> {
        reserve::handler(ctx, len)
    }

    /// First half of delegating, called by the owner program: copies the account's state into its record.
    ///
    /// `seeds` are those of the account's address, bump included, one after the other.
    #[discrim = [2]]
    pub fn begin_delegate(ctx: &mut Context<BeginDelegate>, seeds: &[u8]) -> Result<()> {
        begin_delegate::handler(ctx, seeds)
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
    /// `session` is the record's: it changes with every delegation. `nonce` must be that of the last commit plus one.
    /// `commit_id` is the caller's and is kept in the record, so that a client can tell whether its commit is the one that
    /// landed.
    #[discrim = [5]]
    pub fn commit(
        ctx: &mut Context<Commit>,
        session: u64,
        nonce: u64,
        commit_id: u64,
        data: &[u8],
    ) -> Result<()> {
        commit::handler(ctx, state::Commit { session, nonce, commit_id }, data, KIND_STATE)
    }

    /// Makes the payload of a sealed buffer of the same authority the account's state (`kind` 0), or applies it as a patch
    /// (`kind` 1).
    #[discrim = [6]]
    pub fn commit_buffer(
        ctx: &mut Context<CommitBuffer>,
        session: u64,
        nonce: u64,
        commit_id: u64,
        kind: u8,
    ) -> Result<()> {
        commit_buffer::handler(ctx, state::Commit { session, nonce, commit_id }, kind)
    }

    /// Names a sealed buffer as the account's next state, or a patch to it, without changing the account yet.
    #[discrim = [7]]
    pub fn stage(ctx: &mut Context<Stage>, session: u64, nonce: u64, commit_id: u64, kind: u8) -> Result<()> {
        stage::handler(ctx, state::Commit { session, nonce, commit_id }, kind)
    }

    /// Applies what is staged.
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

    /// Commits the payload of a sealed buffer and hands the account back with it, in one step and at any size.
    ///
    /// Accounts after the declared ones are passed on to the owner program.
    #[discrim = [10]]
    pub fn undelegate_buffer(
        ctx: &mut Context<UndelegateBuffer>,
        session: u64,
        nonce: u64,
        commit_id: u64,
    ) -> Result<()> {
        undelegate_buffer::handler(ctx, state::Commit { session, nonce, commit_id })
    }

    /// Changes ranges of the account's state, and its length: `[new length: u32]`, then `[offset: u32][length: u32][bytes]`
    /// for each range, sorted, without overlap.
    #[discrim = [11]]
    pub fn commit_patch(
        ctx: &mut Context<Commit>,
        session: u64,
        nonce: u64,
        commit_id: u64,
        patch: &[u8],
    ) -> Result<()> {
        commit::handler(ctx, state::Commit { session, nonce, commit_id }, patch, KIND_PATCH)
    }

    /// Forgets what is staged, so that something else can be staged or committed.
    #[discrim = [12]]
    pub fn unstage(ctx: &mut Context<Unstage>) -> Result<()> {
        unstage::handler(ctx)
    }

    /// Hands the delegation to another authority. Nothing may be staged.
    #[discrim = [13]]
    pub fn set_authority(ctx: &mut Context<SetAuthority>, authority: Address) -> Result<()> {
        set_authority::handler(ctx, authority)
    }

    /// Moves lamports out of the account, down to its rent-exempt minimum at most. Into it anybody can transfer.
    #[discrim = [14]]
    pub fn withdraw(ctx: &mut Context<Withdraw>, lamports: u64) -> Result<()> {
        withdraw::handler(ctx, lamports)
    }
}
