//! Chaos: real worker processes and real servers that are killed, stopped and cut off under load, and a census afterwards.
//!
//! A *scene* has a database of its own, producers that write down what was acknowledged (`ledger.rs`), worker processes whose
//! handlers write down what they ran (`journal.rs`), triggers in the database that keep what the rings forget (`audit.sql`), and
//! somebody who does harm (`scenes`). When the harm is over, everything must come to its end by itself (`settled.rs`); then
//! the books are compared (`census.rs`).
//!
//! `cargo xtask chaos` runs it, by the program `tests/src/bin/chaos.rs`.

mod actors;
pub mod arguments;
mod bouncer;
mod census;
mod crew;
mod job;
mod journal;
mod ledger;
mod play;
mod producers;
pub mod report;
mod scenes;
mod servers;
mod settled;
mod switch;
pub mod worker;

pub use play::run;
pub use scenes::Scene;

/// What stops a run, as opposed to what a census finds.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
