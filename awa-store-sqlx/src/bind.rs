//! Parameters on their way to the server, and rows on their way back, as raw bytes in binary format.

use std::sync::Arc;

use awa_pg::session::Statement;
use awa_pg::value::{Columns, IsNull, Param, Row};
use sqlx::encode::IsNull as SqlxIsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo, Postgres};
use sqlx::{Arguments, AssertSqlSafe, Column, Encode, Executor, Row as _, Type, ValueRef};

/// A parameter that knows its own type and bytes.
struct Bound<'p>(&'p Param<'p>);

impl Type<Postgres> for Bound<'_> {
    fn type_info() -> PgTypeInfo {
        // Never used: every value says what it produces.
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Bound<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<SqlxIsNull, BoxDynError> {
        Ok(match self.0.encode(buffer) {
            IsNull::Yes => SqlxIsNull::Yes,
            IsNull::No => SqlxIsNull::No,
        })
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.0.oid())))
    }
}

/// What a connection keeps from one statement to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Prepared statements, by their text, for the life of the connection.
    Statements,
    /// Nothing: statements have no name on the server.
    Nothing,
}

/// Runs a prepared statement.
pub(crate) async fn run<'c, E>(
    executor: E,
    statement: &Statement,
    params: &[Param<'_>],
    keep: Keep,
) -> Result<Vec<Row>, sqlx::Error>
where
    E: Executor<'c, Database = Postgres>,
{
    let mut arguments = PgArguments::default();
    for param in params {
        arguments.add(Bound(param)).map_err(sqlx::Error::Encode)?;
    }
    let sql = AssertSqlSafe(Arc::clone(&statement.text));
    let rows = sqlx::query_with(sql, arguments).persistent(keep == Keep::Statements).fetch_all(executor).await?;
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let columns = Columns::new(
        first
            .columns()
            .iter()
            .map(|column| (column.name().to_owned(), column.type_info().oid().map_or(0, |oid| oid.0))),
    );
    rows.iter().map(|row| read(&columns, row)).collect()
}

fn read(columns: &Arc<Columns>, row: &PgRow) -> Result<Row, sqlx::Error> {
    let cells: Vec<_> = (0..row.len()).map(|column| row.try_get_raw(column)).collect::<Result<_, _>>()?;
    let bytes = cells.iter().map(|cell| if cell.is_null() { Ok(None) } else { cell.as_bytes().map(Some) });
    let bytes: Vec<Option<&[u8]>> = bytes.collect::<Result<_, _>>().map_err(sqlx::Error::Decode)?;
    Ok(Row::new(columns, bytes))
}
