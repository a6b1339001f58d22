//! An owner program: it keeps accounts, delegates them, and takes them back. Copy it.
//!
//! The two instructions that matter are `delegate` and `restore_delegated`; `create` only makes an account to delegate.
#![cfg_attr(target_os = "solana", no_std)]
// Anchor's derive binds the instruction's arguments in every function it makes, also where no seed needs them.
#![allow(unused_variables)]

use anchor_lang::pinocchio::cpi::{Seed, Signer as CpiSigner};
use anchor_lang::{prelude::*, realloc_account};
use pinocchio_system::create_account_with_minimum_balance_signed;
use sbf_builtins as _;

declare_id!("own5gPZRoJaGkDJuNyF6oxJsvy678M8XrPDwdVXPW9w");

/// First seed of an account's address; the second is the number it was created with.
pub const SEED: &[u8] = b"state";

#[program]
pub mod owner_program {
    use super::*;

    /// Creates the account with the given number and a zeroed state of `len` bytes, or grows it towards `len`, by at most
    /// 10,240 bytes a call.
    pub fn create(ctx: &mut Context<Create>, number: u64, len: u32) -> Result<()> {
        let payer = *ctx.accounts.payer.account();
        let mut state = *ctx.accounts.state.account();
        if !state.owned_by(&ID) {
            let (number, bump) = (number.to_le_bytes(), [ctx.bumps.state]);
            let seeds = [Seed::from(SEED), Seed::from(&number), Seed::from(&bump)];
            let signer = [CpiSigner::from(&seeds)];
            let len = (len as usize).min(10_240);
            return create_account_with_minimum_balance_signed(&mut state, len, &ID, &payer, None, &signer);
        }
        let len = (len as usize).min(state.data_len() + 10_240).max(state.data_len());
        realloc_account(&mut state, len, &payer, false)
    }

    /// Hands the account to `authority` until it is undelegated.
    pub fn delegate(ctx: &mut Context<Delegate>, number: u64, authority: Address) -> Result<()> {
        let accounts = delegation_cpi::Delegate {
            payer: ctx.accounts.payer.account(),
            account: ctx.accounts.state.account(),
            record: ctx.accounts.record.account(),
            system_program: ctx.accounts.system_program.account(),
        };
        delegation_cpi::delegate(&accounts, &authority, &[SEED, &number.to_le_bytes(), &[ctx.bumps.state]])
    }

    /// Called by the delegation program when the account comes back: `len` bytes at `offset` of the record are its state.
    pub fn restore_delegated(ctx: &mut Context<RestoreDelegated>, offset: u32, len: u32) -> Result<()> {
        delegation_cpi::restore(ctx.accounts.account.account(), ctx.accounts.record.account(), offset, len)
    }
}

#[derive(Accounts)]
#[instruction(number: u64)]
pub struct Create {
    #[account(mut)]
    pub payer: Signer,
    #[account(mut, seeds = [SEED, number.to_le_bytes()], bump)]
    pub state: UncheckedAccount,
    pub system_program: Program<System>,
}

#[derive(Accounts)]
#[instruction(number: u64)]
pub struct Delegate {
    #[account(mut)]
    pub payer: Signer,
    #[account(mut, seeds = [SEED, number.to_le_bytes()], bump)]
    pub state: UncheckedAccount,
    #[account(mut)]
    pub record: UncheckedAccount,
    pub system_program: Program<System>,
    pub delegation_program: UncheckedAccount,
}

#[derive(Accounts)]
pub struct RestoreDelegated {
    #[account(mut)]
    pub account: UncheckedAccount,
    pub record: Signer,
}
