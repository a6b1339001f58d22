//! Simulating here gives what the node's own simulation gives.

mod bank;
mod cases;
mod equal;
mod fetching;
mod rpc;
