//! The two programs, in a virtual machine, through the builders of the SDK: one module per instruction.

mod chunk_buffer {
    mod close;
    mod init;
    mod seal;
    mod sequences;
    mod write;
}
mod delegation {
    mod begin_delegate;
    mod commit;
    mod commit_buffer;
    mod delegate;
    mod finalize;
    mod grow;
    mod records;
    mod reserve;
    mod stage;
    mod undelegate;
}
mod error_codes;
