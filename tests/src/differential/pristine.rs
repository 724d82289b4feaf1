//! Makes a used schema what it was when it was new, without the cost of a new one: sessions stay, and what they have compiled.

use std::fmt::Write as _;

use awa_pg::cluster::Cluster;
use sqlx::PgPool;

/// The statements that do so for one schema.
#[derive(Debug, Clone)]
pub(super) struct Restore(String);

impl Restore {
    /// Runs them in one transaction.
    ///
    /// # Panics
    ///
    /// When the database fails, or somebody is still at it.
    pub(super) async fn run(&self, pool: &PgPool) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(self.0.clone())).execute(pool).await.expect("the schema can be restored");
    }
}

/// Keeps a copy of what is in the new `schema`, and says how it is put back.
///
/// Rows are deleted, not truncated: a truncation would make every session compile its plans again, and cost more files
/// than there are rows.
pub(super) fn keep(cluster: &Cluster, database: &str, schema: &str) -> Restore {
    let ask = |sql: &str| cluster.psql(database, sql).expect("the new schema can be read");
    ask(&format!("CREATE SCHEMA new_{schema}"));
    let mut statements = String::from("SET LOCAL lock_timeout = '10s';\n");
    let tables = ask(&format!(
        "SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
    ));
    for table in tables.split_whitespace() {
        writeln!(statements, "DELETE FROM {schema}.{table};").expect("a text takes everything");
        if ask(&format!("SELECT count(*) FROM {schema}.{table}")).trim() != "0" {
            ask(&format!("CREATE TABLE new_{schema}.{table} AS TABLE {schema}.{table}"));
            writeln!(statements, "INSERT INTO {schema}.{table} TABLE new_{schema}.{table};")
                .expect("a text takes everything");
        }
    }
    let sequences = ask(&format!(
        "SELECT pg_catalog.format('SELECT pg_catalog.setval(%L, %s, %L);', '{schema}.' || sequencename,
             coalesce(last_value, start_value), last_value IS NOT NULL)
         FROM pg_catalog.pg_sequences WHERE schemaname = '{schema}'"
    ));
    statements.push_str(&sequences);
    Restore(statements)
}
