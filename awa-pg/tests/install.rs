//! The SQL files of this crate are accepted by a real server, under any name of the schema and for any size of ring.

#![cfg(feature = "cluster")]

use std::fmt::Write as _;

use awa_pg::cluster::TestServer;
use awa_pg::{RingSizes, SchemaName, Sql, Statement};

/// The name whose every character is dangerous somewhere in an SQL text.
const HOSTILE: &str = "a\"'; $$ $awa$ \\ */ /* -- \n%s %";

/// Runs all migrations and objects for a schema in an empty database, and prepares every statement.
fn installs(schema: &str, rings: RingSizes) {
    let schema = SchemaName::new(schema).unwrap();
    let sql = Sql::new(&schema, rings);
    let database = TestServer::shared().unwrap().empty_database().unwrap();
    let first = ["install/create_schema", "install/bookkeeping"].map(|name| &*sql.statement(name).text);
    let migrations = sql.migrations().iter().map(|migration| migration.text.as_str());
    let objects = sql.objects().iter().map(|object| object.text.as_str());
    for text in first.into_iter().chain(migrations).chain(objects) {
        if let Err(error) = database.psql(&format!("{text};")) {
            panic!("{error}\n{text}");
        }
    }
    let mut script = String::new();
    for (number, statement) in sql.statements().filter(|statement| can_be_prepared(statement)).enumerate() {
        writeln!(script, "\\echo {}\nPREPARE s{number} AS {};", statement.name, statement.text).unwrap();
    }
    let prepared = database.psql(&format!("{script}SELECT count(*) FROM pg_prepared_statements;")).unwrap();
    let expected = sql.statements().filter(|statement| can_be_prepared(statement)).count();
    assert_eq!(prepared.lines().last(), Some(expected.to_string().as_str()));
    assert!(expected > 0);
}

/// Whether PREPARE takes the statement, by its first word after the header; it takes no definitions and no locks.
fn can_be_prepared(statement: &Statement) -> bool {
    let first = statement.text.lines().find(|line| !line.starts_with("--") && !line.trim().is_empty());
    let first = first.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "VALUES"].contains(&first)
}

#[test]
fn the_schema_installs_under_its_usual_name() {
    installs("awa", RingSizes::default());
}

#[test]
fn the_schema_installs_under_a_hostile_name() {
    installs(HOSTILE, RingSizes::default());
}

#[test]
fn the_schema_installs_with_small_rings() {
    installs("awa", RingSizes { queue: 4, claim: 4, lease: 2 });
}
