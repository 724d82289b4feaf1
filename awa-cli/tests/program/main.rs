//! The built program, from outside: what it prints, how it ends, and the whole way of a job through it.

mod awa;
mod bad_input;
mod bench;
mod demo;
mod doctor;
mod driver;
mod round_trip;
mod usage;
