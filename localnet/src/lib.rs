//! A Solana validator inside the current process, for tests and for trying the project out.
//!
//! [`Localnet::builder`] configures one, [`LocalnetBuilder::start`] runs it: an RPC server, a websocket server and a
//! block producer on loopback, with the project's programs already loaded and a funded [`Localnet::payer`]. It never
//! reaches out to another cluster, writes no file and prints nothing; when the [`Localnet`] is dropped it stops.
//!
//! ```no_run
//! # async fn example() -> Result<(), committor_localnet::LocalnetError> {
//! use committor_localnet::Localnet;
//!
//! let localnet = Localnet::builder().start().await?;
//! println!("listening on {}", localnet.rpc_url());
//! localnet.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The chain is [surfpool](https://docs.rs/surfpool-core): transactions run one after another in LiteSVM, and a clock
//! closes a block every [slot time](LocalnetBuilder::slot_time). Nothing is ever forked or dropped, so what a client
//! does about a lost transaction is tested elsewhere.
//!
//! [`LocalnetBuilder::start_on_agave`] runs the same on `solana-test-validator` instead, which votes, finalizes and skips slots as
//! a cluster does. [`on_each_validator!`] and [`on_agave!`] make tests that run on both.
//!
//! | module | purpose |
//! |---|---|
//! | `builder` | what a localnet is made of |
//! | `agave` | the same on Agave's validator, in a process of its own |
//! | `localnet` | the handle of a running one |
//! | `scenarios` | tests that run on each validator |
//! | `node` | the threads that surfpool needs, their start and their end; the only starter of its run loop |
//! | `genesis` | the state before the first block: features, programs, balances |
//! | `gate` | refuses v1 transactions where the feature is off, which surfpool itself does not |
//! | `delegated` | accounts that are delegated before the first block |
//! | [`owner_program`] | instructions of the example program whose accounts are delegated |
//! | `ports` | ports that no other process is given between choosing and binding them |
//! | [`programs`], [`features`] | the loaded programs and the feature gates that matter here |

mod agave;
mod builder;
mod delegated;
mod error;
pub mod features;
mod gate;
mod genesis;
mod localnet;
mod node;
pub mod owner_program;
mod ports;
pub mod programs;
mod scenarios;

pub use builder::{DEFAULT_SLOT_TIME, LocalnetBuilder, PAYER_LAMPORTS};
pub use error::{LocalnetError, Server};
pub use localnet::Localnet;
pub use programs::{CHUNK_BUFFER_ID, DELEGATION_ID, OWNER_PROGRAM_ID};
pub use scenarios::{Scenario, Validator, run_on_agave};
