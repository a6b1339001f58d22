//! Properties of plans: every byte is written once, every transaction can land, nothing happens before what it needs, and
//! nothing that fits is refused.

mod admit;
mod facts;
mod follower;
mod limits;
mod pack;
mod properties;
mod uploads;
