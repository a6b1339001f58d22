//! The engine on a real local validator, through a chain that fails, lies or dies at a chosen point.
//!
//! Whatever happens where: every bundle lands, in order, once, and no buffer's rent stays behind.

mod bundles;
mod faults;
mod queueing;
mod retries;
mod world;

committor_localnet::on_agave!(world::prepare; bundles::scenarios, queueing::scenarios, retries::scenarios);
