//! Rows of a result.

use std::sync::Arc;

use awa_core::time::Timestamp;

use super::array::Elements;
use super::error::{DecodeError, DecodeProblem};
use super::scalar::{Json, Scalar};
use super::types::{PgType, UNTOLD};

/// The names and types of the columns of a result, shared by its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns(Vec<(String, u32)>);

impl Columns {
    /// Columns from the names and type object ids that the server sent; [`UNTOLD`] for a type that the driver does not tell.
    pub fn new(columns: impl IntoIterator<Item = (String, u32)>) -> Arc<Self> {
        Arc::new(Self(columns.into_iter().collect()))
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the result has no column.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and type object ids, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.0.iter().map(|(name, oid)| (name.as_str(), *oid))
    }
}

/// One row: the raw cells in PostgreSQL's binary format, with the types the server gave.
///
/// Columns are counted from zero. A reader names the Rust type, by [`Row::get`] or by a method such as
/// [`Row::i64`]; the column's type, the NULLs and the length are checked.
///
/// ```
/// use awa_pg::value::{Columns, Row, types};
///
/// let columns = Columns::new([("id".to_owned(), types::INT8.oid()), ("note".to_owned(), types::TEXT.oid())]);
/// let row = Row::new(&columns, [Some(&[0, 0, 0, 0, 0, 0, 0, 7][..]), None]);
/// assert_eq!(row.i64(0)?, 7);
/// assert_eq!(row.opt_text(1)?, None);
/// assert_eq!(
///     row.text(1).unwrap_err().to_string(),
///     "column 1 (note) cannot be read as text: it is or contains NULL"
/// );
/// # Ok::<(), awa_pg::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Row {
    columns: Arc<Columns>,
    /// All cells one after the other.
    data: Vec<u8>,
    /// Where each cell begins and ends in `data`; `None` for NULL.
    cells: Vec<Option<(usize, usize)>>,
}

/// A Rust type that reads one cell: a [`Scalar`], an `Option` of one (NULL), a `Vec` of one (array), a `Vec` of
/// `Option`s (array with NULL elements), or an `Option` of such a `Vec`.
pub trait FromCell<'row>: Sized {
    /// The PostgreSQL type that errors name.
    const EXPECTED: &'static str;

    /// Reads the cell of a column of the type `oid`.
    fn from_cell(oid: u32, cell: Option<&'row [u8]>) -> Result<Self, DecodeProblem>;
}

impl Row {
    /// A row of raw cells, `None` for NULL, which are copied into one allocation.
    pub fn new<'c>(columns: &Arc<Columns>, cells: impl IntoIterator<Item = Option<&'c [u8]>>) -> Self {
        let mut row = Self { columns: columns.clone(), data: Vec::new(), cells: Vec::with_capacity(columns.len()) };
        for cell in cells {
            row.cells.push(cell.map(|bytes| {
                let start = row.data.len();
                row.data.extend_from_slice(bytes);
                (start, row.data.len())
            }));
        }
        row
    }

    /// The columns of the result.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The cell of a column, read as `T`.
    pub fn get<'row, T: FromCell<'row>>(&'row self, column: usize) -> Result<T, DecodeError> {
        let (cell, oid) = match (self.cells.get(column), self.columns.0.get(column)) {
            (Some(cell), Some((_, oid))) => (cell, *oid),
            _ => return Err(self.error(column, T::EXPECTED, DecodeProblem::NoSuchColumn)),
        };
        let bytes = cell.map(|(start, end)| &self.data[start..end]);
        T::from_cell(oid, bytes).map_err(|problem| self.error(column, T::EXPECTED, problem))
    }

    #[cold]
    fn error(&self, index: usize, expected: &'static str, problem: DecodeProblem) -> DecodeError {
        let name = self.columns.0.get(index).map(|(name, _)| name.clone()).unwrap_or_default();
        DecodeError { index, name, expected, problem }
    }
}

macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident -> $rust:ty;)*) => {
        /// Readers by name, each the same as [`Row::get`] with that type.
        impl Row {
            $(
                $(#[$doc])*
                pub fn $name(&self, column: usize) -> Result<$rust, DecodeError> {
                    self.get(column)
                }
            )*
        }
    };
}

readers! {
    /// A `bool`.
    bool -> bool;
    /// A `bool` or NULL.
    opt_bool -> Option<bool>;
    /// An `int2`.
    i16 -> i16;
    /// An `int2` or NULL.
    opt_i16 -> Option<i16>;
    /// An `int4`.
    i32 -> i32;
    /// An `int4` or NULL.
    opt_i32 -> Option<i32>;
    /// An `int8`.
    i64 -> i64;
    /// An `int8` or NULL.
    opt_i64 -> Option<i64>;
    /// A `float8`.
    f64 -> f64;
    /// A `float8` or NULL.
    opt_f64 -> Option<f64>;
    /// A `text`, borrowed from the row.
    text -> &str;
    /// A `text` or NULL, borrowed from the row.
    opt_text -> Option<&str>;
    /// A `bytea`, borrowed from the row.
    bytea -> &[u8];
    /// A `bytea` or NULL, borrowed from the row.
    opt_bytea -> Option<&[u8]>;
    /// A `uuid`.
    uuid -> u128;
    /// A `uuid` or NULL.
    opt_uuid -> Option<u128>;
    /// A `timestamptz` that is not infinite.
    timestamp -> Timestamp;
    /// A `timestamptz` that is not infinite, or NULL.
    opt_timestamp -> Option<Timestamp>;
    /// A `bool[]` without NULL.
    bools -> Vec<bool>;
    /// A `bool[]`.
    opt_bools -> Vec<Option<bool>>;
    /// An `int2[]` without NULL.
    i16s -> Vec<i16>;
    /// An `int2[]`.
    opt_i16s -> Vec<Option<i16>>;
    /// An `int4[]` without NULL.
    i32s -> Vec<i32>;
    /// An `int4[]`.
    opt_i32s -> Vec<Option<i32>>;
    /// An `int8[]` without NULL.
    i64s -> Vec<i64>;
    /// An `int8[]`.
    opt_i64s -> Vec<Option<i64>>;
    /// A `text[]` without NULL.
    texts -> Vec<String>;
    /// A `text[]`.
    opt_texts -> Vec<Option<String>>;
    /// A `bytea[]` without NULL, borrowed from the row.
    byteas -> Vec<&[u8]>;
    /// A `bytea[]`, borrowed from the row.
    opt_byteas -> Vec<Option<&[u8]>>;
    /// A `uuid[]` without NULL.
    uuids -> Vec<u128>;
    /// A `uuid[]`.
    opt_uuids -> Vec<Option<u128>>;
    /// A `timestamptz[]` without NULL.
    timestamps -> Vec<Timestamp>;
    /// A `timestamptz[]`.
    opt_timestamps -> Vec<Option<Timestamp>>;
}

/// Readers of `json`, as the text that was stored.
impl Row {
    /// A `json`, borrowed from the row.
    pub fn json_text(&self, column: usize) -> Result<&str, DecodeError> {
        self.get::<Json<'_>>(column).map(|json| json.0)
    }

    /// A `json` or NULL, borrowed from the row.
    pub fn opt_json_text(&self, column: usize) -> Result<Option<&str>, DecodeError> {
        Ok(self.get::<Option<Json<'_>>>(column)?.map(|json| json.0))
    }

    /// A `json[]` without NULL.
    pub fn json_texts(&self, column: usize) -> Result<Vec<String>, DecodeError> {
        Ok(self.get::<Vec<Json<'_>>>(column)?.into_iter().map(|json| json.0.to_owned()).collect())
    }

    /// A `json[]`.
    pub fn opt_json_texts(&self, column: usize) -> Result<Vec<Option<String>>, DecodeError> {
        let texts = self.get::<Vec<Option<Json<'_>>>>(column)?;
        Ok(texts.into_iter().map(|json| json.map(|json| json.0.to_owned())).collect())
    }
}

impl<'row, S: Scalar<'row>> FromCell<'row> for S {
    const EXPECTED: &'static str = S::TYPES[0].name();

    fn from_cell(oid: u32, cell: Option<&'row [u8]>) -> Result<Self, DecodeProblem> {
        Option::<S>::from_cell(oid, cell)?.ok_or(DecodeProblem::Null)
    }
}

impl<'row, S: Scalar<'row>> FromCell<'row> for Option<S> {
    const EXPECTED: &'static str = S::TYPES[0].name();

    fn from_cell(oid: u32, cell: Option<&'row [u8]>) -> Result<Self, DecodeProblem> {
        check_type(oid, cell, S::TYPES)?;
        cell.map(S::read).transpose()
    }
}

impl<'row, S: Scalar<'row>> FromCell<'row> for Vec<S> {
    const EXPECTED: &'static str = S::ARRAYS[0].name();

    fn from_cell(oid: u32, cell: Option<&'row [u8]>) -> Result<Self, DecodeProblem> {
        Option::<Self>::from_cell(oid, cell)?.ok_or(DecodeProblem::Null)
    }
}

impl<'row, S: Scalar<'row>> FromCell<'row> for Option<Vec<S>> {
    const EXPECTED: &'static str = S::ARRAYS[0].name();

    fn from_cell(oid: u32, cell: Option<&'row [u8]>) -> Result<Self, DecodeProblem> {
        elements::<S, _>(oid, cell, |element| S::read(element.ok_or(DecodeProblem::Null)?))
    }
}

impl<'row, S: Scalar<'row>> FromCell<'row> for Vec<Option<S>> {
    const EXPECTED: &'static str = S::ARRAYS[0].name();

    fn from_cell(oid: u32, cell: Option<&'row [u8]>) -> Result<Self, DecodeProblem> {
        Option::<Self>::from_cell(oid, cell)?.ok_or(DecodeProblem::Null)
    }
}

impl<'row, S: Scalar<'row>> FromCell<'row> for Option<Vec<Option<S>>> {
    const EXPECTED: &'static str = S::ARRAYS[0].name();

    fn from_cell(oid: u32, cell: Option<&'row [u8]>) -> Result<Self, DecodeProblem> {
        elements::<S, _>(oid, cell, |element| element.map(S::read).transpose())
    }
}

/// Checks the type of a cell, which may be untold when the cell is NULL.
fn check_type(oid: u32, cell: Option<&[u8]>, accepted: &[PgType]) -> Result<(), DecodeProblem> {
    let is_accepted = accepted.iter().any(|known| known.oid() == oid) || (oid == UNTOLD && cell.is_none());
    is_accepted.then_some(()).ok_or(DecodeProblem::OtherType(oid))
}

/// The elements of an array of `S`, each read by `read`; `None` when the array itself is NULL.
fn elements<'row, S: Scalar<'row>, T>(
    oid: u32,
    cell: Option<&'row [u8]>,
    read: impl Fn(Option<&'row [u8]>) -> Result<T, DecodeProblem>,
) -> Result<Option<Vec<T>>, DecodeProblem> {
    check_type(oid, cell, S::ARRAYS)?;
    let Some(bytes) = cell else { return Ok(None) };
    let elements = Elements::new(bytes, S::TYPES)?;
    let mut values = Vec::with_capacity(elements.left());
    for element in elements {
        values.push(read(element?)?);
    }
    Ok(Some(values))
}
