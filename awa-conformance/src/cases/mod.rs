//! The cases, one file per topic. Each is a function of a fresh subject; it panics when the store is wrong.

pub mod audit;
pub mod cancel_in;
pub mod carry;
pub mod close;
pub mod ends;
pub mod enqueue;
pub mod fencing;
pub mod grow;
pub mod leases;
pub mod moves;
pub mod operate;
pub mod order;
pub mod park;
pub mod pause;
pub mod peek;
pub mod progress;
pub mod purge;
pub mod queues;
pub mod reclaim;
pub mod rescue;
pub mod retention;
pub mod shapes;
pub mod ticks;
pub mod transactions;
pub mod unique;
pub mod wakeups;
