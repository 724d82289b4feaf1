//! A result that is not of the shape its reader was written for.

use std::fmt;

use awa_core::error::{StoreError, StoreErrorKind};

use super::types::PgType;

/// A cell that could not be read as the type asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {index} ({name}) cannot be read as {expected}: {problem}")]
pub struct DecodeError {
    /// The position of the column, from zero.
    pub index: usize,
    /// The name of the column as the server sent it; empty when the row has no such column.
    pub name: String,
    /// The type that the reader asked for.
    pub expected: &'static str,
    /// What is in the way.
    pub problem: DecodeProblem,
}

impl DecodeError {
    /// The same failure as that of a store's call: a result which Awa's own statements should never give.
    pub fn into_store_error(self, operation: &'static str) -> StoreError {
        let message = format!("{self}; check that this program and the schema are of the same version of Awa");
        StoreError::new(StoreErrorKind::Internal, operation, message).with_source(self)
    }
}

/// Why a cell could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// The row has fewer columns.
    NoSuchColumn,
    /// The column has another type, given by its object id.
    OtherType(u32),
    /// The cell, or an element of the array in it, is NULL and the reader does not take NULL.
    Null,
    /// The bytes are not a value of that type.
    Malformed(&'static str),
}

impl fmt::Display for DecodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchColumn => f.write_str("the row has fewer columns"),
            Self::OtherType(oid) => match PgType::by_oid(*oid) {
                Some(known) => write!(f, "it is of type {known}"),
                None => write!(f, "it is of the type with object id {oid}"),
            },
            Self::Null => f.write_str("it is or contains NULL"),
            Self::Malformed(why) => write!(f, "its bytes are malformed, {why}"),
        }
    }
}
