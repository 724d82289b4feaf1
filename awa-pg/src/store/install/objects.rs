//! Functions and views: what is installed is exactly what this version consists of.

use std::collections::{HashMap, HashSet};

use awa_core::error::StoreError;

use super::super::undecodable;
use super::{batch, query};
use crate::session::Session;
use crate::sql::{Object, Sql};
use crate::value::{Param, Row};

/// What the books of an installation say: the hash of each object by its name there.
struct Books(HashMap<String, String>);

impl Books {
    async fn read(session: &mut dyn Session, sql: &Sql, operation: &'static str) -> Result<Self, StoreError> {
        let rows = query(session, sql, "install/objects", &[], operation).await?;
        let read = |row: &Row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
        rows.iter().map(read).collect::<Result<_, _>>().map(Self).map_err(undecodable(operation))
    }

    fn knows(&self, object: &Object) -> bool {
        self.0.get(&object.instance_name()) == Some(&object.hash.to_string())
    }

    /// Whether an object of that name may be there in another shape; books that are empty say nothing.
    fn may_differ(&self, object: &Object) -> bool {
        self.0.is_empty() || self.0.contains_key(&object.instance_name()) && !self.knows(object)
    }

    /// Names in the books that this version has no file for.
    fn removed(&self, sql: &Sql) -> Vec<&str> {
        let current: HashSet<String> = sql.objects().iter().map(Object::instance_name).collect();
        self.0.keys().filter(|name| !current.contains(*name)).map(String::as_str).collect()
    }

    /// What views may be called that are installed now.
    fn view_names(&self, sql: &Sql) -> Vec<String> {
        let known = self.0.keys().map(|name| Object::name_in_schema(name));
        known.chain(sql.objects().iter().map(|object| Object::name_in_schema(&object.instance_name()))).collect()
    }
}

/// Makes or replaces the functions and views whose text changed, and drops what this version does not have any more: also a
/// function of the same name with other arguments, which would make each call of it ambiguous. Returns how many were made.
/// Views are made last, so that they refer to nothing that is dropped; a view whose columns changed cannot be replaced, and
/// all are dropped first in that case only, because readers of a view are waited for.
pub(in crate::store) async fn replace_objects(
    session: &mut dyn Session,
    sql: &Sql,
    operation: &'static str,
) -> Result<usize, StoreError> {
    let books = Books::read(session, sql, operation).await?;
    let removed = books.removed(sql);
    let (changed_views, changed): (Vec<&Object>, Vec<&Object>) =
        sql.objects().iter().filter(|object| !books.knows(object)).partition(|object| object.is_view());
    for function in &changed {
        batch(session, &function.text, operation).await?;
    }
    let name = |object: &&Object| Object::name_in_schema(&object.instance_name());
    let made = changed.iter().filter(|object| object.is_function()).map(name).collect();
    let gone = removed.iter().map(|name| Object::name_in_schema(name)).collect();
    let stale = drops(session, sql, "install/drop_functions", &[made, gone], operation).await?;
    let are_dropped =
        !stale.is_empty() || !removed.is_empty() || changed_views.iter().any(|view| books.may_differ(view));
    if are_dropped {
        for drop in drops(session, sql, "install/drop_views", &[books.view_names(sql)], operation).await? {
            batch(session, &drop, operation).await?;
        }
    }
    for drop in &stale {
        batch(session, drop, operation).await?;
    }
    let views: Vec<&Object> =
        if are_dropped { sql.objects().iter().filter(|object| object.is_view()).collect() } else { changed_views };
    for view in &views {
        batch(session, &view.text, operation).await?;
    }
    let done: Vec<&Object> = changed.into_iter().chain(views).collect();
    let names: Vec<String> = done.iter().map(|object| object.instance_name()).collect();
    let hashes: Vec<String> = done.iter().map(|object| object.hash.to_string()).collect();
    if !done.is_empty() {
        let params = [texts(&names), texts(&hashes)];
        query(session, sql, "install/record_objects", &params, operation).await?;
    }
    if !removed.is_empty() {
        query(session, sql, "install/forget_objects", &[Param::Texts(removed.into())], operation).await?;
    }
    Ok(done.len())
}

/// The scripts that a statement answers with.
async fn drops(
    session: &mut dyn Session,
    sql: &Sql,
    statement: &'static str,
    names: &[Vec<String>],
    operation: &'static str,
) -> Result<Vec<String>, StoreError> {
    let params: Vec<_> = names.iter().map(|names| texts(names)).collect();
    let rows = query(session, sql, statement, &params, operation).await?;
    rows.iter().map(|row| Ok(row.text(0)?.to_owned())).collect::<Result<_, _>>().map_err(undecodable(operation))
}

fn texts(texts: &[String]) -> Param<'_> {
    Param::Texts(texts.iter().map(String::as_str).collect::<Vec<_>>().into())
}
