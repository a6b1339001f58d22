//! Lookup tables on a real local validator: through a chain that fails, lies or dies at a chosen point, and beside
//! somebody else who works on the same tables.
//!
//! Whatever happens: what is reserved can be used, no address is in twice, and no table's rent stays behind.

mod chain;
mod closing;
mod command;
mod faults;
mod others;
mod reservations;
mod store;
mod world;

committor_localnet::on_agave!(
    world::prepare;
    closing::scenarios,
    command::scenarios,
    others::scenarios,
    reservations::scenarios,
);
