//! What the test suites of this workspace share: a fresh store on real PostgreSQL for each test.

pub mod postgres;
