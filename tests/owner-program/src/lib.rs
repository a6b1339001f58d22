//! An owner program: it keeps accounts, delegates them, and takes them back. Copy it.
//!
//! The two instructions that matter are `delegate` and `restore_delegated`; `create` only makes an account to delegate.
//! Each account belongs to the payer that created it, which is a seed of its address: only that payer can delegate it.
#![cfg_attr(target_os = "solana", no_std)]
// Anchor's derive binds the instruction's arguments in every function it makes, also where no seed needs them.
#![allow(unused_variables)]

use anchor_lang::pinocchio::cpi::{Seed, Signer as CpiSigner};
use anchor_lang::{prelude::*, realloc_account};
use pinocchio_system::create_account_with_minimum_balance_signed;
use sbf_builtins as _;

declare_id!("own5gPZRoJaGkDJuNyF6oxJsvy678M8XrPDwdVXPW9w");

/// First seed of an account's address; the payer and the number it was created with are the others.
pub const SEED: &[u8] = b"state";

#[program]
pub mod owner_program {
    use super::*;

    /// Creates the payer's account with the given number and a zeroed state of `len` bytes, or grows it towards `len`, by
    /// at most 10,240 bytes a call.
    pub fn create(ctx: &mut Context<Create>, number: u64, len: u32) -> Result<()> {
        let payer = *ctx.accounts.payer.account();
        let mut state = *ctx.accounts.state.account();
        if !state.owned_by(&ID) {
            let (number, bump) = (number.to_le_bytes(), [ctx.bumps.state]);
            let payer_seed = payer.address().as_array().as_slice();
            let seeds = [Seed::from(SEED), Seed::from(payer_seed), Seed::from(&number), Seed::from(&bump)];
            let signer = [CpiSigner::from(&seeds)];
            let len = (len as usize).min(10_240);
            return create_account_with_minimum_balance_signed(&mut state, len, &ID, &payer, None, &signer);
        }
        let len = (len as usize).min(state.data_len() + 10_240).max(state.data_len());
        realloc_account(&mut state, len, &payer, false)
    }

    /// Hands the payer's account to `authority` until it is undelegated.
    pub fn delegate(ctx: &mut Context<Delegate>, number: u64, authority: Address) -> Result<()> {
        let payer = ctx.accounts.payer.account();
        let accounts = delegation_cpi::Delegate {
            payer,
            account: ctx.accounts.state.account(),
            record: ctx.accounts.record.account(),
            system_program: ctx.accounts.system_program.account(),
        };
        let number = number.to_le_bytes();
        let seeds: [&[u8]; 4] = [SEED, payer.address().as_array(), &number, &[ctx.bumps.state]];
        delegation_cpi::delegate(&accounts, &authority, &seeds)
    }

    /// Called by the delegation program when the account comes back: `len` bytes at `offset` of the source are its state.
    pub fn restore_delegated(ctx: &mut Context<RestoreDelegated>, offset: u32, len: u32) -> Result<()> {
        let (account, record) = (ctx.accounts.account.account(), ctx.accounts.record.account());
        delegation_cpi::restore(account, record, ctx.accounts.source.account(), offset, len)
    }
}

#[derive(Accounts)]
#[instruction(number: u64)]
pub struct Create {
    #[account(mut)]
    pub payer: Signer,
    #[account(mut, seeds = [SEED, payer.address().as_ref(), number.to_le_bytes()], bump)]
    pub state: UncheckedAccount,
    pub system_program: Program<System>,
}

#[derive(Accounts)]
#[instruction(number: u64)]
pub struct Delegate {
    #[account(mut)]
    pub payer: Signer,
    #[account(mut, seeds = [SEED, payer.address().as_ref(), number.to_le_bytes()], bump)]
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
    pub source: UncheckedAccount,
}
