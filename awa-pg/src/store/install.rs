//! Installing and checking the schema.

mod objects;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use awa_core::doctor::SchemaFacts;
use awa_core::error::{StoreError, StoreErrorKind};

pub(super) use objects::replace_objects;

use super::{PgStore, only_row, undecodable};
use crate::schema_name::SchemaName;
use crate::session::{PgError, Session, Transaction, TransactionLimits};
use crate::sql::{RingSizes, Sql};
use crate::value::{DecodeError, Param, Row};

const PREPARE: &str = "prepare_schema";
const CHECK: &str = "check_ready";
/// An installation is one transaction, so that nobody ever sees half of one; others wait for it that long.
const LIMITS: TransactionLimits = TransactionLimits {
    idle: Duration::from_mins(1),
    statement: Duration::from_mins(2),
    lock: Some(Duration::from_mins(1)),
};

/// What [`PgStore::prepare_schema`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// The schema.
    pub schema: String,
    /// Whether it was made.
    pub created: bool,
    /// Titles of the migrations that were applied, in order.
    pub migrations: Vec<String>,
    /// How many functions and views were made or replaced.
    pub objects: usize,
    /// What was taken over from a schema of before the rings.
    pub pre_ring: Option<PreRing>,
}

/// Receipts of before the rings that were rewritten into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreRing {
    /// Claims.
    pub claims: u64,
    /// Closures.
    pub closures: u64,
    /// Claims without a closure, which were closed as rescued.
    pub closed_as_rescued: u64,
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.migrations.is_empty() && self.objects == 0 {
            return write!(f, "schema {:?} is up to date", self.schema);
        }
        let (migrations, objects) = (self.migrations.len(), self.objects);
        write!(
            f,
            "schema {:?}: {migrations} migrations applied, {objects} functions and views installed",
            self.schema
        )?;
        let Some(PreRing { claims, closures, closed_as_rescued }) = self.pre_ring else { return Ok(()) };
        write!(
            f,
            ", {claims} claims and {closures} closures of before the rings rewritten, {closed_as_rescued} claims of them \
             closed as rescued"
        )
    }
}

/// What is installed, as far as a program must know.
pub(super) struct Installation {
    version: i32,
    fingerprint: String,
    pub(super) rings: RingSizes,
    program: String,
}

impl PgStore {
    /// Installs the schema or brings it up to date. Idempotent; safe when twenty processes do it at once with one
    /// connection each; never leaves half an installation behind.
    ///
    /// # Errors
    ///
    /// [`NotReady`](StoreErrorKind::NotReady) when the schema was installed by a newer Awa, or a migration that was
    /// applied differs from this program's; [`Denied`](StoreErrorKind::Denied) without the privilege to create.
    pub async fn prepare_schema(&self, rings: RingSizes) -> Result<Prepared, StoreError> {
        let lost = |error: PgError| error.into_store_error(PREPARE);
        let mut session = self.pool.session().await.map_err(lost)?;
        let mut transaction = Transaction::begin(session.as_mut(), &LIMITS).await.map_err(lost)?;
        let prepared = self.install(transaction.session(), rings).await;
        transaction.finish(prepared, lost).await
    }

    /// Checks that the schema is there, fits this program, and is of this cluster with all its rows.
    ///
    /// # Errors
    ///
    /// [`NotReady`](StoreErrorKind::NotReady) with what helps.
    pub async fn check_ready(&self) -> Result<(), StoreError> {
        let sql = self.installed(CHECK).await?;
        let rows = self.call(CHECK, sql.statement("install/is_foreign"), &[]).await?;
        if only_row(CHECK, &rows)?.bool(0).map_err(undecodable(CHECK))? {
            let schema = sql.schema().as_str();
            let problem = format!(
                "schema {schema:?}, or what is in it, was carried here from another PostgreSQL cluster and is not repaired \
                 yet; run `awa repair` or call repair(), nothing is lost until then"
            );
            return Err(not_ready(CHECK, problem));
        }
        Ok(())
    }

    /// All statements, for the sizes of the rings that are installed.
    pub(super) async fn installed(&self, operation: &'static str) -> Result<Arc<Sql>, StoreError> {
        let read = async || {
            let mut session = self.pool.session().await.map_err(|error| error.into_store_error(operation))?;
            let found = find(session.as_mut(), &self.sql, operation).await?;
            let Some(found) = found else { return Err(missing(operation, &self.sql)) };
            let sql = Sql::new(self.sql.schema(), found.rings);
            found.must_fit(&sql, operation)?;
            Ok(Arc::new(sql))
        };
        self.installed.get_or_try_init(read).await.cloned()
    }

    /// What the doctor is told of the installation; the version of the server is left for it to fill in.
    pub(super) async fn schema_facts(&self, session: &mut dyn Session) -> Result<SchemaFacts, StoreError> {
        const OPERATION: &str = "doctor";
        let unfit = |error: StoreError| {
            let text = error.to_string();
            SchemaFacts::Unfit(text.strip_prefix("doctor failed: ").unwrap_or(&text).to_owned())
        };
        let found = match find(session, &self.sql, OPERATION).await {
            Err(error) if error.kind() == StoreErrorKind::NotReady => return Ok(unfit(error)),
            Err(error) => return Err(error),
            Ok(None) => return Ok(SchemaFacts::Missing),
            Ok(Some(found)) => found,
        };
        let sql = Sql::new(self.sql.schema(), found.rings);
        Ok(match found.must_fit(&sql, OPERATION) {
            Err(error) => unfit(error),
            Ok(()) => SchemaFacts::Fits { version: found.version, program: found.program, server: String::new() },
        })
    }

    async fn install(&self, session: &mut dyn Session, rings: RingSizes) -> Result<Prepared, StoreError> {
        query(session, &self.sql, "install/take_turn", &[], PREPARE).await?;
        let Looked { has_schema, has_bookkeeping, has_pre_ring } = look(session, &self.sql, PREPARE).await?;
        if has_pre_ring {
            batch(session, &self.sql.statement("install/set_pre_ring_aside").text, PREPARE).await?;
        }
        if !has_schema {
            batch(session, &self.sql.statement("install/create_schema").text, PREPARE).await?;
        }
        if !has_bookkeeping {
            batch(session, &self.sql.statement("install/bookkeeping").text, PREPARE).await?;
        }
        let found = find(session, &self.sql, PREPARE).await?;
        let sql = Sql::new(self.sql.schema(), found.as_ref().map_or(rings, |found| found.rings));
        let migrations = migrate(session, &sql).await?;
        let pre_ring = if has_pre_ring { rewrite_pre_ring(session, &sql).await? } else { None };
        let objects = replace_objects(session, &sql, PREPARE).await?;
        if !migrations.is_empty() || objects > 0 {
            record(session, &sql, PREPARE).await?;
        }
        Ok(Prepared { schema: sql.schema().as_str().to_owned(), created: !has_schema, migrations, objects, pre_ring })
    }
}

impl Installation {
    fn read(row: &Row) -> Result<Self, DecodeError> {
        let size = |column| row.i16(column).map(|size| u8::try_from(size).unwrap_or(u8::MAX));
        Ok(Self {
            version: row.i32(0)?,
            fingerprint: row.text(1)?.to_owned(),
            rings: RingSizes { queue: size(2)?, claim: size(3)?, lease: size(4)? },
            program: row.text(5)?.to_owned(),
        })
    }

    pub(super) fn must_fit(&self, sql: &Sql, operation: &'static str) -> Result<(), StoreError> {
        let (mine, schema) = (newest(sql), sql.schema().as_str());
        let program = env!("CARGO_PKG_VERSION");
        if self.version > mine {
            return Err(not_ready(
                operation,
                format!(
                    "schema {schema:?} was set up by awa {} (version {}), newer than this program's {program} \
                     (version {mine}); update this program",
                    self.program, self.version
                ),
            ));
        }
        if self.version < mine || self.fingerprint != sql.fingerprint() {
            return Err(not_ready(
                operation,
                format!(
                    "schema {schema:?} was set up by another awa ({}); run `{}` of awa {program}, or call prepare_schema()",
                    self.program,
                    migrate_command(sql)
                ),
            ));
        }
        Ok(())
    }
}

/// What is there before anything is done.
struct Looked {
    has_schema: bool,
    has_bookkeeping: bool,
    /// Receipt tables of before the rings.
    has_pre_ring: bool,
}

async fn look(session: &mut dyn Session, sql: &Sql, operation: &'static str) -> Result<Looked, StoreError> {
    let rows = session
        .query(sql.statement("install/has_schema"), &[])
        .await
        .map_err(|error| error.into_store_error(operation))?;
    let row = only_row(operation, &rows)?;
    let encoding = row.text(3).map_err(undecodable(operation))?;
    if encoding != "UTF8" {
        let problem =
            format!("the database has the encoding {encoding}, which cannot keep every text; use one with UTF8");
        return Err(StoreError::new(StoreErrorKind::Refused, operation, problem));
    }
    let read = || Ok(Looked { has_schema: row.bool(0)?, has_bookkeeping: row.bool(1)?, has_pre_ring: row.bool(2)? });
    read().map_err(undecodable(operation))
}

/// Moves the receipts of before the rings into the tables that the migrations made.
async fn rewrite_pre_ring(session: &mut dyn Session, sql: &Sql) -> Result<Option<PreRing>, StoreError> {
    batch(session, &sql.statement("install/rewrite_pre_ring").text, PREPARE).await?;
    let rows = query(session, sql, "install/pre_ring_counts", &[], PREPARE).await?;
    let counts = only_row(PREPARE, &rows)?.opt_text(0).map_err(undecodable(PREPARE))?;
    let Some(counts) = counts else { return Ok(None) };
    let counts: Vec<u64> = counts.split(' ').filter_map(|count| count.parse().ok()).collect();
    let [claims, closures, closed_as_rescued] = counts[..] else {
        return Err(StoreError::new(
            StoreErrorKind::Internal,
            PREPARE,
            "the counts of the rewritten receipts are missing",
        ));
    };
    Ok(Some(PreRing { claims, closures, closed_as_rescued }))
}

pub(super) async fn find(
    session: &mut dyn Session,
    sql: &Sql,
    operation: &'static str,
) -> Result<Option<Installation>, StoreError> {
    if !look(session, sql, operation).await?.has_bookkeeping {
        return Ok(None);
    }
    let rows = session
        .query(sql.statement("install/installation"), &[])
        .await
        .map_err(|error| error.into_store_error(operation))?;
    rows.first().map(Installation::read).transpose().map_err(undecodable(operation))
}

/// Applies what is missing, and returns the titles.
async fn migrate(session: &mut dyn Session, sql: &Sql) -> Result<Vec<String>, StoreError> {
    let rows = query(session, sql, "install/applied_migrations", &[], PREPARE).await?;
    let read = |row: &Row| Ok((row.i32(0)?, row.text(1)?.to_owned()));
    let applied: HashMap<i32, String> =
        rows.iter().map(read).collect::<Result<_, _>>().map_err(undecodable(PREPARE))?;
    if let Some(newer) = applied.keys().copied().filter(|version| *version > newest(sql)).max() {
        return Err(not_ready(
            PREPARE,
            format!("the schema has migration {newer}, this program knows up to {}; update this program", newest(sql)),
        ));
    }
    let mut titles = Vec::new();
    for migration in sql.migrations() {
        let version = i32::try_from(migration.version).unwrap_or(i32::MAX);
        let hash = migration.hash.to_string();
        match applied.get(&version) {
            Some(known) if *known == hash => {}
            Some(_) => {
                return Err(not_ready(
                    PREPARE,
                    format!(
                        "migration {version} was applied with another content than this program's; nothing was changed"
                    ),
                ));
            }
            None => {
                session.batch(&migration.text).await.map_err(|error| collision(error, sql))?;
                let params = [Param::I32(version), Param::Text(migration.title.into()), Param::Text(hash.into())];
                query(session, sql, "install/record_migration", &params, PREPARE).await?;
                titles.push(migration.title.to_owned());
            }
        }
    }
    Ok(titles)
}

/// Says that the installation is complete and for which sizes of the rings.
pub(super) async fn record(session: &mut dyn Session, sql: &Sql, operation: &'static str) -> Result<(), StoreError> {
    let rings = sql.rings();
    let params = [
        Param::I32(newest(sql)),
        Param::Text(sql.fingerprint().into()),
        Param::I16(i16::from(rings.queue)),
        Param::I16(i16::from(rings.claim)),
        Param::I16(i16::from(rings.lease)),
        Param::Text(env!("CARGO_PKG_VERSION").into()),
    ];
    query(session, sql, "install/record_installation", &params, operation).await.map(drop)
}

/// A migration that failed, told as what it usually is when a name is taken: a schema of somebody else, or of a version
/// that this one cannot upgrade.
fn collision(error: PgError, sql: &Sql) -> StoreError {
    const DUPLICATE_TABLE: &str = "42P07";
    if error.sqlstate() != Some(DUPLICATE_TABLE) {
        return error.into_store_error(PREPARE);
    }
    let (schema, taken) = (sql.schema().as_str(), error.message().to_owned());
    let problem = format!(
        "schema {schema:?} holds tables that are not of this version ({taken}), and of older versions only the receipt \
         tables can be upgraded; use another schema, nothing was changed"
    );
    not_ready(PREPARE, problem).with_source(error)
}

fn newest(sql: &Sql) -> i32 {
    let newest = sql.migrations().iter().map(|migration| migration.version).max().unwrap_or(0);
    i32::try_from(newest).unwrap_or(i32::MAX)
}

/// There is no installation in the schema.
pub(super) fn missing(operation: &'static str, sql: &Sql) -> StoreError {
    let schema = sql.schema().as_str();
    not_ready(
        operation,
        format!("schema {schema:?} is not set up; run `{}` or call prepare_schema()", migrate_command(sql)),
    )
}

/// The command that sets up this very schema.
fn migrate_command(sql: &Sql) -> String {
    let schema = sql.schema().as_str();
    let is_plain = schema.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    if sql.schema() == &SchemaName::default() {
        "awa migrate".to_owned()
    } else if is_plain {
        format!("awa migrate --schema {schema}")
    } else {
        format!("awa migrate --schema {schema:?}")
    }
}

fn not_ready(operation: &'static str, message: String) -> StoreError {
    StoreError::new(StoreErrorKind::NotReady, operation, message)
}

async fn query(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    params: &[Param<'_>],
    operation: &'static str,
) -> Result<Vec<Row>, StoreError> {
    session.query(sql.statement(statement), params).await.map_err(|error| error.into_store_error(operation))
}

async fn batch(session: &mut dyn Session, text: &str, operation: &'static str) -> Result<(), StoreError> {
    session.batch(text).await.map_err(|error| error.into_store_error(operation))
}
