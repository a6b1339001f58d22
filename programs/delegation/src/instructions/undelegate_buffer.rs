use anchor_lang::prelude::*;
use chunk_buffer::PAYLOAD_OFFSET;

use crate::{apply, hand_back, state};

#[derive(Accounts)]
pub struct UndelegateBuffer {
    pub authority: Signer,
    /// The delegated account.
    #[account(mut)]
    pub account: UncheckedAccount,
    /// Its record.
    #[account(mut)]
    pub record: UncheckedAccount,
    /// The program that gets the account back.
    pub owner_program: UncheckedAccount,
    /// Who paid the record's rent. May be the authority.
    #[account(mut, unsafe(dup))]
    pub rent_payer: UncheckedAccount,
    /// The sealed buffer that holds the last state.
    pub buffer: UncheckedAccount,
}

pub(crate) fn handler(ctx: &mut Context<UndelegateBuffer>, commit: state::Commit) -> Result<()> {
    let parties = hand_back::Parties {
        authority: *ctx.accounts.authority.account(),
        account: *ctx.accounts.account.account(),
        record: *ctx.accounts.record.account(),
        owner_program: *ctx.accounts.owner_program.account(),
        rent_payer: *ctx.accounts.rent_payer.account(),
    };
    let buffer = *ctx.accounts.buffer.account();
    let header = parties.check()?;
    header.check_next(commit)?;
    let len = apply::sealed(&buffer, parties.authority.address())?.payload.len();
    let mut account = parties.account;
    apply::resize(&mut account, len)?;

    let remaining = ctx.remaining_accounts()?;
    let source = hand_back::Source { account: buffer, offset: PAYLOAD_OFFSET, len, bump: header.bump };
    hand_back::run(&parties, &source, &remaining)
}
