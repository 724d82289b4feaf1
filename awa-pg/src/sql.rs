//! How the files under `sql/` become statements.
//!
//! The files are embedded at compile time and rendered once per store, by [`Sql::new`]. Each is valid SQL as it stands,
//! for a schema named `awa` and for slot 0 of every ring; marks in comments say what is replaced:
//!
//! | mark | becomes |
//! |---|---|
//! | `/*schema*/awa` | the schema's name as a quoted identifier, so `/*schema*/awa.jobs` is a table of it |
//! | `'/*schema*/awa'` | the schema's name as a string literal |
//! | `'/*schema*/awa.jobs'` | a name in the schema as a string literal, for `nextval` or `regclass` |
//! | `0/*slot*/` | the number of the slot in scope, also as the end (only the end) of a name: `leases_0/*slot*/` |
//! | `0/*queue slot*/`, `0/*claim slot*/`, `0/*lease slot*/` | the same, of the named ring when several are in scope |
//! | `16/*queue slots*/`, `8/*claim slots*/`, `4/*lease slots*/` | how many slots the ring has |
//!
//! A slot comes into scope in two ways. A file whose header has the line `-- per slot of: queue ring` is rendered once
//! for each slot of that ring. Inside any file, the lines between `-- each queue slot:` and `-- end each` are repeated
//! for each slot; blocks of different rings may nest. A block comment that is no mark is refused, so that a misspelt
//! mark cannot slip through.
//!
//! In the header of an object, `-- depends on: a, b` puts it after those objects.

mod file;
mod order;
mod rings;
mod template;

use std::collections::HashMap;

pub use file::{ContentHash, Migration, MigrationKind, Object};
pub use rings::{Ring, RingSizes};
pub use template::TemplateError;

use crate::schema_name::SchemaName;
use crate::session::Statement;
use template::{Rendered, Template};

/// Paths under `sql/` without the ending, and texts, in the order of their paths.
static FILES: &[SqlFile] = include!(concat!(env!("OUT_DIR"), "/sql_files.rs"));

/// A path under `sql/` without the ending, and the text of the file.
type SqlFile = (&'static str, &'static str);

/// All SQL of Awa, rendered for one schema and one size of the rings.
#[derive(Debug, Clone)]
pub struct Sql {
    schema: SchemaName,
    rings: RingSizes,
    migrations: Vec<Migration>,
    objects: Vec<Object>,
    /// By name; several are the instances of one file, by slot.
    statements: HashMap<&'static str, Rendered<Statement>>,
}

impl Sql {
    /// Renders every file for a schema and for rings of these sizes.
    ///
    /// # Panics
    /// When a file of this crate has a misspelt mark or header, which the crate's tests exclude.
    pub fn new(schema: &SchemaName, rings: RingSizes) -> Self {
        match Self::render(FILES, schema, rings) {
            Ok(sql) => sql,
            Err(error) => panic!("the SQL files of this build are faulty: {error}"),
        }
    }

    /// The schema that the SQL is for.
    pub fn schema(&self) -> &SchemaName {
        &self.schema
    }

    /// The sizes of the rings that the SQL is for.
    pub fn rings(&self) -> RingSizes {
        self.rings
    }

    /// The migrations, by rising number.
    pub fn migrations(&self) -> &[Migration] {
        &self.migrations
    }

    /// All functions and views, each after those it depends on; the instances of one file stand together by slot.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The instances of the file `objects/<name>.sql`, by slot: one, unless the file is a template.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn object(&self, name: &str) -> &[Object] {
        let first = self.objects.iter().position(|object| object.name == name);
        let first = first.unwrap_or_else(|| panic!("there is no file sql/objects/{name}.sql"));
        let count = self.objects[first..].iter().take_while(|object| object.name == name).count();
        &self.objects[first..first + count]
    }

    /// One text for everything that an installation consists of: a program whose own differs does not fit it.
    pub fn fingerprint(&self) -> String {
        let migrations = self.migrations.iter().map(|migration| migration.hash.to_string());
        let objects = self.objects.iter().map(|object| format!("{} {}", object.instance_name(), object.hash));
        let all: Vec<String> = migrations.chain(objects).collect();
        ContentHash::of(&all.join("\n")).to_string()
    }

    /// The statement of the file `statements/<name>.sql`.
    ///
    /// # Panics
    /// When there is no such file, or it is a template per slot.
    pub fn statement(&self, name: &str) -> &Statement {
        match self.statements.get(name) {
            Some(Rendered::Once(statement)) => statement,
            Some(Rendered::PerSlot(_)) => panic!("sql/statements/{name}.sql is a statement for each slot"),
            None => panic!("there is no file sql/statements/{name}.sql"),
        }
    }

    /// The statement of the file `statements/<name>.sql` for a slot; none when the slot is beyond [the sizes](Self::rings) that this
    /// was rendered for: the rings of an installation may be larger.
    ///
    /// # Panics
    /// When there is no such file, or it is no template per slot.
    pub fn statement_for_slot(&self, name: &str, slot: u8) -> Option<&Statement> {
        match self.statements.get(name) {
            Some(Rendered::PerSlot(statements)) => statements.get(usize::from(slot)),
            _ => panic!("there is no file sql/statements/{name}.sql for each slot"),
        }
    }

    /// All statements, one for each slot where they are templates.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.statements.values().flat_map(Rendered::as_slice)
    }

    /// The names of all files of statements, sorted.
    pub fn statement_names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.statements.keys().copied().collect();
        names.sort_unstable();
        names
    }

    fn render(files: &[SqlFile], schema: &SchemaName, rings: RingSizes) -> Result<Self, TemplateError> {
        let template = Template::new(schema, rings);
        let mut sql = Self {
            schema: schema.clone(),
            rings,
            migrations: Vec::new(),
            objects: Vec::new(),
            statements: HashMap::new(),
        };
        let mut objects = Vec::new();
        for &(path, text) in files {
            if let Some(title) = path.strip_prefix("migrations/") {
                sql.migrations.push(Migration::read(title, text, &template)?);
            } else if path.starts_with("objects/") {
                objects.push((path, text));
            } else if let Some(name) = path.strip_prefix("statements/") {
                let rendered = template.render(path, text)?;
                sql.statements.insert(name, rendered.map(|_, text| Statement { name, text: text.into() }));
            } else {
                return Err(TemplateError::new(path, None, "it is not under migrations/, objects/ or statements/"));
            }
        }
        file::check_versions(&sql.migrations)?;
        for (path, text) in order::by_dependency(&objects)? {
            sql.objects.extend(Object::read(path, text, &template)?);
        }
        Ok(sql)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tidy;
