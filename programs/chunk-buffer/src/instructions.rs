//! One instruction per file: its accounts, its checks, its effect.

pub mod close;
pub mod init;
pub mod seal;
pub mod write;

pub use close::*;
pub use init::*;
pub use seal::*;
pub use write::*;
