//! One value in binary form, read and written.

use awa_core::time::Timestamp;

use super::error::DecodeProblem;
use super::types::{self, PgType};

/// Microseconds from the Unix epoch to 2000-01-01, where PostgreSQL counts from.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// A Rust type that reads one PostgreSQL value, alone or as an element of an array.
///
/// Implemented for `bool`, `i16`, `i32`, `i64`, `f64`, `u128` (uuid), `&str` and `String`, `&[u8]`,
/// [`Timestamp`] and [`Json`]; closed to other crates.
pub trait Scalar<'row>: Sized + sealed::Sealed {
    /// The PostgreSQL types that can be read this way; the first one names the type in errors.
    const TYPES: &'static [PgType];
    /// The array types whose elements can be read this way.
    const ARRAYS: &'static [PgType];

    /// Reads the bytes of one value that is not NULL.
    fn read(bytes: &'row [u8]) -> Result<Self, DecodeProblem>;
}

/// The text of a `json` value, byte for byte as it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(
    /// The text.
    pub &'a str,
);

/// A value that can be written as a parameter or as an element of one.
pub(super) trait Write {
    /// Appends the bytes of the value, without a length.
    fn write(&self, out: &mut Vec<u8>);
}

mod sealed {
    /// Keeps [`super::Scalar`] closed, so that the set of types stays small and tested.
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($rust:ty => $scalar:ident, $array:ident;)*) => {$(
        impl sealed::Sealed for $rust {}

        impl Scalar<'_> for $rust {
            const TYPES: &'static [PgType] = &[types::$scalar];
            const ARRAYS: &'static [PgType] = &[types::$array];

            fn read(bytes: &[u8]) -> Result<Self, DecodeProblem> {
                Ok(Self::from_be_bytes(exact(bytes)?))
            }
        }

        impl Write for $rust {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    )*};
}

numbers! {
    i16 => INT2, INT2_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    f64 => FLOAT8, FLOAT8_ARRAY;
    u128 => UUID, UUID_ARRAY;
}

impl sealed::Sealed for bool {}

impl Scalar<'_> for bool {
    const TYPES: &'static [PgType] = &[types::BOOL];
    const ARRAYS: &'static [PgType] = &[types::BOOL_ARRAY];

    fn read(bytes: &[u8]) -> Result<Self, DecodeProblem> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(DecodeProblem::Malformed("a bool is one byte, 0 or 1")),
        }
    }
}

impl Write for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl sealed::Sealed for Timestamp {}

impl Scalar<'_> for Timestamp {
    const TYPES: &'static [PgType] = &[types::TIMESTAMPTZ];
    const ARRAYS: &'static [PgType] = &[types::TIMESTAMPTZ_ARRAY];

    fn read(bytes: &[u8]) -> Result<Self, DecodeProblem> {
        match i64::from_be_bytes(exact(bytes)?) {
            i64::MIN | i64::MAX => Err(DecodeProblem::Malformed("it is infinite")),
            micros => micros
                .checked_add(POSTGRES_EPOCH)
                .map(Self::from_micros)
                .ok_or(DecodeProblem::Malformed("it is later than 64 bits of microseconds can say")),
        }
    }
}

impl Write for Timestamp {
    /// The two extreme values mean infinity on the wire, so a moment that far out is sent as one that the server
    /// refuses as out of range.
    fn write(&self, out: &mut Vec<u8>) {
        let micros = self.as_micros().saturating_sub(POSTGRES_EPOCH).max(i64::MIN + 1);
        out.extend_from_slice(&micros.to_be_bytes());
    }
}

impl sealed::Sealed for &str {}

impl<'row> Scalar<'row> for &'row str {
    const TYPES: &'static [PgType] = &[types::TEXT, types::VARCHAR, types::NAME];
    const ARRAYS: &'static [PgType] = &[types::TEXT_ARRAY, types::VARCHAR_ARRAY, types::NAME_ARRAY];

    fn read(bytes: &'row [u8]) -> Result<Self, DecodeProblem> {
        std::str::from_utf8(bytes).map_err(|_| DecodeProblem::Malformed("it is not UTF-8"))
    }
}

impl Write for &str {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl sealed::Sealed for String {}

impl<'row> Scalar<'row> for String {
    const TYPES: &'static [PgType] = <&'row str>::TYPES;
    const ARRAYS: &'static [PgType] = <&'row str>::ARRAYS;

    fn read(bytes: &'row [u8]) -> Result<Self, DecodeProblem> {
        <&str>::read(bytes).map(str::to_owned)
    }
}

impl sealed::Sealed for &[u8] {}

impl<'row> Scalar<'row> for &'row [u8] {
    const TYPES: &'static [PgType] = &[types::BYTEA];
    const ARRAYS: &'static [PgType] = &[types::BYTEA_ARRAY];

    fn read(bytes: &'row [u8]) -> Result<Self, DecodeProblem> {
        Ok(bytes)
    }
}

impl Write for &[u8] {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl sealed::Sealed for Json<'_> {}

impl<'row> Scalar<'row> for Json<'row> {
    const TYPES: &'static [PgType] = &[types::JSON];
    const ARRAYS: &'static [PgType] = &[types::JSON_ARRAY];

    fn read(bytes: &'row [u8]) -> Result<Self, DecodeProblem> {
        <&str>::read(bytes).map(Json)
    }
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], DecodeProblem> {
    bytes.try_into().map_err(|_| DecodeProblem::Malformed("it has the wrong length"))
}
