//! Model checking of the receipt plane: the transition functions of `awa-core` over a small database, under every
//! interleaving of a few actors.
//!
//! | to read about | open |
//! |---|---|
//! | visibility, transactions, locks | `database`, `locks` |
//! | tables, and what lives outside snapshots | `rows`, `world` |
//! | one statement | `turn` |
//! | what each actor does, statement by statement | `actors` |
//! | what must always hold | `laws` |
//! | the fair schedule in which every job must end | `heal` |
//! | the worlds, and their exploration by stateright | `scenes`, `model`, `explore` |
//! | one actor stalling for a wrap of the rings | `directed` |
//! | protocols with a hole, each of which must be noticed | `mutants`, `catches` |
//!
//! `cargo xtask prove` runs the same tests with large bounds.

mod actors;
mod catches;
mod database;
mod directed;
mod explore;
mod heal;
mod laws;
mod locks;
mod model;
mod mutants;
mod rows;
mod scenes;
mod turn;
mod world;
