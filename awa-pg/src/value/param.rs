//! Parameters of a statement.

use std::borrow::Cow;
use std::ops::Deref;

use awa_core::time::Timestamp;

use super::array;
use super::scalar::{Json, Write};
use super::types::{self, PgType};

/// One parameter of a statement, owned or borrowed.
///
/// Build it with `Param::from` (also from `Option`, slices and vectors of plain and of optional values) or, for
/// `json`, with [`Param::json`], [`Param::jsons`] and [`Param::opt_jsons`]. A NULL carries its type, so that the
/// server never has to guess one.
///
/// ```
/// use awa_pg::value::{Param, types};
///
/// assert_eq!(Param::from(7_i64).pg_type(), types::INT8);
/// assert_eq!(Param::from(vec![Some("a"), None]).pg_type(), types::TEXT_ARRAY);
/// assert_eq!(Param::from(None::<i64>), Param::Null(types::INT8));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Param<'a> {
    /// NULL of a type.
    Null(PgType),
    /// `bool`.
    Bool(bool),
    /// `int2`.
    I16(i16),
    /// `int4`.
    I32(i32),
    /// `int8`.
    I64(i64),
    /// `float8`.
    F64(f64),
    /// `text`.
    Text(Cow<'a, str>),
    /// `bytea`.
    Bytea(Cow<'a, [u8]>),
    /// `uuid`.
    Uuid(u128),
    /// `timestamptz`.
    Timestamp(Timestamp),
    /// `json`, as text that the caller has checked.
    Json(Cow<'a, str>),
    /// `bool[]` without NULL.
    Bools(List<'a, bool>),
    /// `bool[]`.
    OptBools(List<'a, Option<bool>>),
    /// `int2[]` without NULL.
    I16s(List<'a, i16>),
    /// `int2[]`.
    OptI16s(List<'a, Option<i16>>),
    /// `int4[]` without NULL.
    I32s(List<'a, i32>),
    /// `int4[]`.
    OptI32s(List<'a, Option<i32>>),
    /// `int8[]` without NULL.
    I64s(List<'a, i64>),
    /// `int8[]`.
    OptI64s(List<'a, Option<i64>>),
    /// `text[]` without NULL.
    Texts(List<'a, &'a str>),
    /// `text[]`.
    OptTexts(List<'a, Option<&'a str>>),
    /// `bytea[]` without NULL.
    Byteas(List<'a, &'a [u8]>),
    /// `bytea[]`.
    OptByteas(List<'a, Option<&'a [u8]>>),
    /// `uuid[]` without NULL.
    Uuids(List<'a, u128>),
    /// `uuid[]`.
    OptUuids(List<'a, Option<u128>>),
    /// `timestamptz[]` without NULL.
    Timestamps(List<'a, Timestamp>),
    /// `timestamptz[]`.
    OptTimestamps(List<'a, Option<Timestamp>>),
    /// `json[]` without NULL.
    Jsons(List<'a, &'a str>),
    /// `json[]`.
    OptJsons(List<'a, Option<&'a str>>),
}

/// The elements of an array parameter, owned or borrowed.
///
/// Unlike a `Cow` of a slice it may hold borrowed texts of a longer life than its own.
#[derive(Debug, Clone)]
pub enum List<'a, T> {
    /// Elements that belong to the caller.
    Borrowed(&'a [T]),
    /// Elements of its own.
    Owned(Vec<T>),
}

impl<T> Deref for List<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(values) => values,
            Self::Owned(values) => values,
        }
    }
}

impl<T: PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'a, T> From<&'a [T]> for List<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self::Borrowed(values)
    }
}

impl<'a, T> From<&'a Vec<T>> for List<'a, T> {
    fn from(values: &'a Vec<T>) -> Self {
        Self::Borrowed(values)
    }
}

impl<T> FromIterator<T> for List<'_, T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::Owned(values.into_iter().collect())
    }
}

impl<T> From<Vec<T>> for List<'_, T> {
    fn from(values: Vec<T>) -> Self {
        Self::Owned(values)
    }
}

/// Whether a parameter is NULL, in which case nothing was written for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsNull {
    /// The parameter is NULL.
    Yes,
    /// The parameter has a value.
    No,
}

impl<'a> Param<'a> {
    /// A `json` parameter; the text must be JSON, else the server refuses the whole statement.
    pub fn json(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Json(text.into())
    }

    /// A `json` parameter or NULL.
    pub fn opt_json(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Null(types::JSON), Self::json)
    }

    /// A `json[]` parameter without NULL.
    pub fn jsons(texts: impl Into<List<'a, &'a str>>) -> Self {
        Self::Jsons(texts.into())
    }

    /// A `json[]` parameter.
    pub fn opt_jsons(texts: impl Into<List<'a, Option<&'a str>>>) -> Self {
        Self::OptJsons(texts.into())
    }

    /// The type of the parameter.
    pub fn pg_type(&self) -> PgType {
        match self {
            Self::Null(pg_type) => *pg_type,
            Self::Bool(_) => types::BOOL,
            Self::I16(_) => types::INT2,
            Self::I32(_) => types::INT4,
            Self::I64(_) => types::INT8,
            Self::F64(_) => types::FLOAT8,
            Self::Text(_) => types::TEXT,
            Self::Bytea(_) => types::BYTEA,
            Self::Uuid(_) => types::UUID,
            Self::Timestamp(_) => types::TIMESTAMPTZ,
            Self::Json(_) => types::JSON,
            Self::Bools(_) | Self::OptBools(_) => types::BOOL_ARRAY,
            Self::I16s(_) | Self::OptI16s(_) => types::INT2_ARRAY,
            Self::I32s(_) | Self::OptI32s(_) => types::INT4_ARRAY,
            Self::I64s(_) | Self::OptI64s(_) => types::INT8_ARRAY,
            Self::Texts(_) | Self::OptTexts(_) => types::TEXT_ARRAY,
            Self::Byteas(_) | Self::OptByteas(_) => types::BYTEA_ARRAY,
            Self::Uuids(_) | Self::OptUuids(_) => types::UUID_ARRAY,
            Self::Timestamps(_) | Self::OptTimestamps(_) => types::TIMESTAMPTZ_ARRAY,
            Self::Jsons(_) | Self::OptJsons(_) => types::JSON_ARRAY,
        }
    }

    /// The object id of the type, for a driver that wants numbers.
    pub fn oid(&self) -> u32 {
        self.pg_type().oid()
    }

    /// Appends the parameter in binary form, without a length, and says whether it is NULL.
    ///
    /// # Panics
    /// When an array or an element of one is longer than two thousand million bytes; the limits on batches and
    /// payloads are far below.
    pub fn encode(&self, out: &mut Vec<u8>) -> IsNull {
        match self {
            Self::Null(_) => return IsNull::Yes,
            Self::Bool(value) => value.write(out),
            Self::I16(value) => value.write(out),
            Self::I32(value) => value.write(out),
            Self::I64(value) => value.write(out),
            Self::F64(value) => value.write(out),
            Self::Text(value) | Self::Json(value) => value.as_ref().write(out),
            Self::Bytea(value) => value.as_ref().write(out),
            Self::Uuid(value) => value.write(out),
            Self::Timestamp(value) => value.write(out),
            Self::Bools(values) => full(out, types::BOOL, values),
            Self::OptBools(values) => sparse(out, types::BOOL, values),
            Self::I16s(values) => full(out, types::INT2, values),
            Self::OptI16s(values) => sparse(out, types::INT2, values),
            Self::I32s(values) => full(out, types::INT4, values),
            Self::OptI32s(values) => sparse(out, types::INT4, values),
            Self::I64s(values) => full(out, types::INT8, values),
            Self::OptI64s(values) => sparse(out, types::INT8, values),
            Self::Texts(values) => full(out, types::TEXT, values),
            Self::OptTexts(values) => sparse(out, types::TEXT, values),
            Self::Byteas(values) => full(out, types::BYTEA, values),
            Self::OptByteas(values) => sparse(out, types::BYTEA, values),
            Self::Uuids(values) => full(out, types::UUID, values),
            Self::OptUuids(values) => sparse(out, types::UUID, values),
            Self::Timestamps(values) => full(out, types::TIMESTAMPTZ, values),
            Self::OptTimestamps(values) => sparse(out, types::TIMESTAMPTZ, values),
            Self::Jsons(values) => full(out, types::JSON, values),
            Self::OptJsons(values) => sparse(out, types::JSON, values),
        }
        IsNull::No
    }
}

fn full<W: Write + Copy>(out: &mut Vec<u8>, element: PgType, values: &[W]) {
    array::write(out, element, values.iter().map(|value| Some(*value)));
}

fn sparse<W: Write + Copy>(out: &mut Vec<u8>, element: PgType, values: &[Option<W>]) {
    array::write(out, element, values.iter().copied());
}

/// Conversions from a scalar type, its optional form, and slices and vectors of both.
macro_rules! conversions {
    ($($element:ty => $scalar:ident $scalar_type:ident, $full:ident, $sparse:ident $array_type:ident;)*) => {$(
        impl<'a> From<$element> for Param<'a> {
            fn from(value: $element) -> Self {
                Self::$scalar(value.into())
            }
        }

        impl<'a> From<Option<$element>> for Param<'a> {
            fn from(value: Option<$element>) -> Self {
                value.map_or(Self::Null(types::$scalar_type), Self::from)
            }
        }

        impl<'a> From<&'a [$element]> for Param<'a> {
            fn from(values: &'a [$element]) -> Self {
                Self::$full(List::Borrowed(values))
            }
        }

        impl<'a> From<&'a Vec<$element>> for Param<'a> {
            fn from(values: &'a Vec<$element>) -> Self {
                Self::$full(List::Borrowed(values))
            }
        }

        impl<'a> From<Vec<$element>> for Param<'a> {
            fn from(values: Vec<$element>) -> Self {
                Self::$full(List::Owned(values))
            }
        }

        impl<'a> From<Option<Vec<$element>>> for Param<'a> {
            fn from(values: Option<Vec<$element>>) -> Self {
                values.map_or(Self::Null(types::$array_type), Self::from)
            }
        }

        impl<'a> From<&'a [Option<$element>]> for Param<'a> {
            fn from(values: &'a [Option<$element>]) -> Self {
                Self::$sparse(List::Borrowed(values))
            }
        }

        impl<'a> From<&'a Vec<Option<$element>>> for Param<'a> {
            fn from(values: &'a Vec<Option<$element>>) -> Self {
                Self::$sparse(List::Borrowed(values))
            }
        }

        impl<'a> From<Vec<Option<$element>>> for Param<'a> {
            fn from(values: Vec<Option<$element>>) -> Self {
                Self::$sparse(List::Owned(values))
            }
        }
    )*};
}

conversions! {
    bool => Bool BOOL, Bools, OptBools BOOL_ARRAY;
    i16 => I16 INT2, I16s, OptI16s INT2_ARRAY;
    i32 => I32 INT4, I32s, OptI32s INT4_ARRAY;
    i64 => I64 INT8, I64s, OptI64s INT8_ARRAY;
    &'a str => Text TEXT, Texts, OptTexts TEXT_ARRAY;
    &'a [u8] => Bytea BYTEA, Byteas, OptByteas BYTEA_ARRAY;
    u128 => Uuid UUID, Uuids, OptUuids UUID_ARRAY;
    Timestamp => Timestamp TIMESTAMPTZ, Timestamps, OptTimestamps TIMESTAMPTZ_ARRAY;
}

impl From<f64> for Param<'_> {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl From<Option<f64>> for Param<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Null(types::FLOAT8), Self::F64)
    }
}

impl From<String> for Param<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl From<Option<String>> for Param<'_> {
    fn from(value: Option<String>) -> Self {
        value.map_or(Self::Null(types::TEXT), Self::from)
    }
}

impl<'a> From<Json<'a>> for Param<'a> {
    fn from(value: Json<'a>) -> Self {
        Self::Json(Cow::Borrowed(value.0))
    }
}
