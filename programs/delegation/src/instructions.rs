//! One instruction per file: its accounts, its checks, its effect.

pub mod begin_delegate;
pub mod commit;
pub mod commit_buffer;
pub mod delegate;
pub mod finalize;
pub mod grow;
pub mod reserve;
pub mod set_authority;
pub mod stage;
pub mod undelegate;
pub mod undelegate_buffer;
pub mod unstage;
pub mod withdraw;

pub use begin_delegate::*;
pub use commit::*;
pub use commit_buffer::*;
pub use delegate::*;
pub use finalize::*;
pub use grow::*;
pub use reserve::*;
pub use set_authority::*;
pub use stage::*;
pub use undelegate::*;
pub use undelegate_buffer::*;
pub use unstage::*;
pub use withdraw::*;
