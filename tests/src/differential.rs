//! One history of calls, told to any store, and what can be seen of it: stores that are told the same must show the same.
//!
//! A history names jobs, attempts and transactions by their position, so that it means the same to each store, and so that a
//! shorter history is still one.

mod draw;
mod jobs;
mod mutant;
mod mutant_transaction;
mod observed;
mod operate;
mod place;
mod player;
mod pristine;
mod server;
mod step;
mod told;
mod transact;

pub use draw::history;
pub use mutant::{MutantStore, Mutation};
pub use observed::{Job, Observed, SeenClaim, SeenJob, Sight};
pub use place::{DieselSubject, Place, START, SqlxSubject};
pub use player::Player;
pub use server::HistoryServer;
pub use step::{End, NewStep, Pick, Step};
pub use told::{Difference, Told, tell};
