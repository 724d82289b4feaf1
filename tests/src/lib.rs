//! What the test suites of this workspace share: a fresh store on real PostgreSQL for each test, a stage on which races are
//! stepped by hand, and numbers that can be replayed.

pub mod chaos;
pub mod diesel_store;
pub mod differential;
pub mod dump;
pub mod halt;
pub mod life;
pub mod memory;
pub mod postgres;
pub mod seed;
pub mod shapes;
pub mod stage;
