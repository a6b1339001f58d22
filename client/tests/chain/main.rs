//! The chain layer against a real local validator, through a proxy that lies, loses and breaks.

mod engine;
mod landing;
mod lifetimes;
mod reading;
mod requests;
mod storm;
mod tpu;
mod world;

committor_localnet::on_agave!(
    world::prepare;
    engine::scenarios,
    landing::scenarios,
    lifetimes::scenarios,
    reading::scenarios,
    storm::scenarios,
    tpu::scenarios,
);
