//! One instruction per file: its accounts, its checks, its effect.

pub mod close;
pub mod init;
pub mod resize;
pub mod seal;
pub mod set_authority;
pub mod write;

pub use close::*;
pub use init::*;
pub use resize::*;
pub use seal::*;
pub use set_authority::*;
pub use write::*;
