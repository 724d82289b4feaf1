//! PostgreSQL values in the binary wire format, encoded and decoded without a driver.
//!
//! An adapter binds each [`Param`] as the bytes of [`Param::encode`] with the type [`Param::oid`], and hands back the
//! raw cells of a result as a [`Row`]. Every cell is checked against its type and length when it is read: what does
//! not fit is a [`DecodeError`] that names the column, never a panic and never a guess.

mod array;
mod error;
mod param;
mod row;
mod scalar;
pub mod types;

pub use error::{DecodeError, DecodeProblem};
pub use param::{IsNull, List, Param};
pub use row::{Columns, FromCell, Row};
pub use scalar::{Json, Scalar};
pub use types::PgType;

#[cfg(test)]
mod tests;
