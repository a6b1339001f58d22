//! A proxy in front of a validator that lies, loses and breaks on purpose.
//!
//! [`FaultProxy`] passes JSON-RPC over HTTP and subscriptions over websocket on to a real node. [`Rule`]s say for which
//! method, how often and by what chance a [`Fault`] comes in between. Chance follows from a seed: the n-th call that a rule
//! looks at always meets the same fate, whatever else goes on at the same time. What was asked and what was done to it is
//! counted, and can be waited for.
//!
//! ```no_run
//! # async fn run() -> Result<(), committor_faults::ProxyError> {
//! use committor_faults::{Fault, FaultProxy, Rule};
//!
//! let proxy = FaultProxy::start("http://localhost:8899", "ws://localhost:8900", 7).await?;
//! proxy.add(Rule::new(Fault::TooManyRequests { retry_after_seconds: Some(1) }).chance(0.1));
//! proxy.add(Rule::new(Fault::DropSend).on("sendTransaction").after(10).times(3));
//! println!("{}", proxy.rpc_url());
//! # Ok(()) }
//! ```
//!
//! - `fault` is what can go wrong, `rule` when; `counts` is what did.
//! - `proxy` listens, `http` serves requests, `websocket` passes subscriptions on.
//! - `tpu` is a leader's QUIC server in front of the node, `udp` a long and lossy way to it.
//! - `upstream` is the node behind; `recorded` keeps its older answers.
#![warn(missing_docs)]

mod counts;
mod fault;
mod http;
mod proxy;
mod recorded;
mod rule;
mod tpu;
mod udp;
mod upstream;
mod websocket;

pub use counts::Counts;
pub use fault::Fault;
pub use proxy::{FaultProxy, ProxyError};
pub use rule::{Rule, WEBSOCKET};
pub use tpu::{Tpu, TpuSettings};
pub use udp::UdpRelay;
