//! The program's errors. Codes are append-only.

use anchor_lang::prelude::*;

#[error_code]
pub enum DelegationError {
    #[msg("the signer is not the authority that the account is delegated to")]
    WrongAuthority,
    #[msg("the record is not at the address derived from the account")]
    RecordMismatch,
    #[msg("the account is not delegated")]
    NotDelegated,
    #[msg("the account is delegated already")]
    AlreadyDelegated,
    #[msg("the record's layout version is not one that this program knows")]
    UnknownVersion,
    #[msg("the account did not sign: only its owner program can delegate it, by a signed call")]
    AccountNotSigner,
    #[msg("the account's address is not derived from the seeds and its owner program")]
    NotOwnersAddress,
    #[msg("the account is not owned by the delegation program")]
    NotOwned,
    #[msg("the account's state does not fit the record: call reserve first")]
    RecordTooSmall,
    #[msg("begin_delegate has not been called for this account")]
    NotBegun,
    #[msg("this commit is the one that was applied last")]
    AlreadyApplied,
    #[msg("the nonce is not that of the last commit plus one")]
    WrongNonce,
    #[msg("a commit is staged: finalize or unstage it first")]
    AlreadyStaged,
    #[msg("no state is staged")]
    NothingStaged,
    #[msg("the buffer is not the one that is staged")]
    WrongBuffer,
    #[msg("the account is not a buffer of the chunk-buffer program")]
    NotABuffer,
    #[msg("the buffer is not sealed")]
    BufferNotSealed,
    #[msg("the buffer belongs to another authority")]
    ForeignBuffer,
    #[msg("the account grows by more than MAX_GROWTH bytes: call grow first")]
    TooMuchGrowth,
    #[msg("the account's lamports are below the rent-exempt minimum of its new length: transfer first")]
    NotRentExempt,
    #[msg("the program is not the account's owner program")]
    WrongOwnerProgram,
    #[msg("the receiver is not the one that paid the record's rent")]
    WrongRentReceiver,
    #[msg("the length exceeds MAX_STATE_LEN")]
    TooLarge,
    #[msg("the commit was made for another delegation of the account")]
    WrongSession,
    #[msg("the authority is the zero address")]
    ZeroAuthority,
    #[msg("the staged buffer's content is not what was staged")]
    StagedContentChanged,
    #[msg("the payload's kind is neither KIND_STATE nor KIND_PATCH")]
    UnknownKind,
    #[msg("the patch ends in the middle of a range")]
    MalformedPatch,
    #[msg("the patch's ranges are not sorted, or overlap")]
    PatchOutOfOrder,
    #[msg("the patch writes past the account's new length")]
    PatchOutOfBounds,
    #[msg("the account was delegated in this very slot: undelegate it in a later one")]
    SameSlot,
}
