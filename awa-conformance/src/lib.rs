//! The definition of an Awa store as a test suite.
//!
//! A store is right when every case of this suite passes on it. Implement [`Subject`] for a fresh, empty store, write
//! one macro line, and each case becomes a test with a name of its own:
//!
//! ```ignore
//! async fn fresh_store() -> MySubject { /* a new, empty store with small rings */ }
//!
//! awa_conformance::suite!(tokio::test, fresh_store());
//! ```
//!
//! The first argument is the attribute that turns an `async fn` into a test, so that this crate needs no runtime; the
//! second an expression whose future gives the subject. A case that needs a [`Capability`] which the subject does not
//! declare says `not covered: NAME` on standard error; it never passes in silence.
//!
//! Each case names the clauses of the [contract](awa_core::store) that it tests, `C1` to `C14`.

mod agree;
pub mod cases;
mod list;
mod rings;
mod scene;
mod subject;

pub use subject::{Capabilities, Capability, Outcome, Subject, SubjectTransaction, run_case};
