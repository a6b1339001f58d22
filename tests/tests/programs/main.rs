//! The two programs, in a virtual machine, through the builders of the SDK: one module per instruction.

mod chunk_buffer {
    mod close;
    mod init;
    mod resize;
    mod seal;
    mod sequences;
    mod set_authority;
    mod write;
}
mod delegation {
    mod begin_delegate;
    mod bundles;
    mod commit;
    mod commit_buffer;
    mod commit_patch;
    mod delegate;
    mod finalize;
    mod grow;
    mod records;
    mod reserve;
    mod restore;
    mod sequences;
    mod set_authority;
    mod stage;
    mod undelegate;
    mod undelegate_buffer;
    mod unstage;
    mod withdraw;
}
mod error_codes;
