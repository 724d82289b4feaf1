//! Parameters on their way to the server, and rows on their way back, as raw bytes in binary format.

use std::sync::Arc;

use awa_pg::session::Statement;
use awa_pg::value::{Columns, IsNull, Param, Row, types};
use diesel::QueryResult;
use diesel::pg::{Pg, PgTypeMetadata};
use diesel::query_builder::bind_collector::RawBytesBindCollector;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::row::{Field, Row as DieselRow};
use diesel::sql_types::Untyped;
use diesel_async::{AsyncConnectionCore, AsyncPgConnection};
use futures::TryStreamExt;

/// A statement with its parameters. Unlike `diesel::sql_query` it may be kept as a prepared statement, which diesel finds
/// again by its text and the types of its parameters.
pub(crate) struct Bound {
    text: Arc<str>,
    binds: RawBytesBindCollector<Pg>,
}

impl Bound {
    pub(crate) fn new(statement: &Statement, params: &[Param<'_>]) -> Self {
        let mut binds = RawBytesBindCollector::new();
        for param in params {
            let mut bytes = Vec::new();
            let is_null = param.encode(&mut bytes) == IsNull::Yes;
            binds.binds.push((!is_null).then_some(bytes));
            // Nothing asks for the array of a parameter's type.
            binds.metadata.push(PgTypeMetadata::new(param.oid(), 0));
        }
        Self { text: Arc::clone(&statement.text), binds }
    }
}

impl QueryFragment<Pg> for Bound {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        pass.push_sql(&self.text);
        pass.push_bind_collector_data(&self.binds)
    }
}

impl QueryId for Bound {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Bound {
    type SqlType = Untyped;
}

/// Runs a prepared statement, kept by its text for the life of the connection.
pub(crate) async fn run(
    connection: &mut AsyncPgConnection,
    statement: &Statement,
    params: &[Param<'_>],
) -> QueryResult<Vec<Row>> {
    let rows = connection.load(Bound::new(statement, params)).await?;
    let rows: Vec<_> = rows.try_collect().await?;
    Ok(read(&rows))
}

/// The rows of a result, whose every cell is copied once.
pub(crate) fn read<'r, R: DieselRow<'r, Pg>>(rows: &[R]) -> Vec<Row> {
    let Some(first) = rows.first() else { return Vec::new() };
    let columns = Columns::new((0..first.field_count()).map(|column| {
        let name = first.get(column).and_then(|field| field.field_name().map(str::to_owned));
        (name.unwrap_or_default(), type_of(rows, column))
    }));
    let read = |row: &R| {
        let fields: Vec<_> = (0..columns.len()).map(|column| row.get(column)).collect();
        let values = fields.iter().map(|field| field.as_ref().and_then(|field| field.value()));
        Row::new(&columns, values.map(|value| value.map(|value| value.as_bytes())))
    };
    rows.iter().map(read).collect()
}

/// The type of a column, which diesel tells only with a value: of a column of NULLs it is not known.
fn type_of<'r, R: DieselRow<'r, Pg>>(rows: &[R], column: usize) -> u32 {
    let known = rows.iter().find_map(|row| {
        let field = row.get(column)?;
        field.value().map(|value| value.get_oid().get())
    });
    known.unwrap_or(types::UNTOLD)
}
