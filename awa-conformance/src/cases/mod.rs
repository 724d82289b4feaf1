//! The cases, one file per topic. Each is a function from a fresh subject to nothing; it panics when the store is wrong.

pub mod enqueue;
