//! Migrations and objects, as their files describe them.

use std::fmt;

use sha2::{Digest, Sha256};

use super::template::{Rendered, Template, TemplateError};

/// The SHA-256 of a text; prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// The hash of a text.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

/// What a migration means for programs of the version before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MigrationKind {
    /// They go on working beside it.
    Additive,
    /// They must be stopped first.
    Breaking,
}

/// One step of the schema's history, frozen once released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The number that the file's name begins with.
    pub version: u32,
    /// The rest of the file's name.
    pub title: &'static str,
    /// What the first line of the file says.
    pub kind: MigrationKind,
    /// The SQL.
    pub text: String,
    /// The hash of the file as it stands, before the schema's name is filled in.
    pub hash: ContentHash,
}

/// A function or view, or one instance of it for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The file under `sql/objects/` without its ending.
    pub name: &'static str,
    /// The slot, when the file is a template per slot.
    pub slot: Option<u8>,
    /// The SQL.
    pub text: String,
    /// The hash of the SQL, which also changes with the schema's name and, where it matters, with the rings:
    /// what was created from another text is to be created again.
    pub hash: ContentHash,
}

impl Object {
    /// The file's name, with the slot for an instance of a template: the name in the installation's books.
    pub fn instance_name(&self) -> String {
        self.slot.map_or_else(|| self.name.to_owned(), |slot| format!("{} of slot {slot}", self.name))
    }

    /// What an object of that name in the books is called in the schema: a file of a template per slot is named after slot 0.
    pub(crate) fn name_in_schema(instance_name: &str) -> String {
        match instance_name.split_once(" of slot ") {
            Some((name, slot)) => format!("{}{slot}", name.strip_suffix('0').unwrap_or(name)),
            None => instance_name.to_owned(),
        }
    }

    /// Whether it is a function or a procedure, and not a script that makes one.
    pub fn is_function(&self) -> bool {
        let begins = |line: &str| ["FUNCTION ", "PROCEDURE "].iter().any(|kind| line.starts_with(kind));
        self.text.lines().filter_map(|line| line.strip_prefix("CREATE OR REPLACE ")).any(begins)
    }

    /// Whether it is a view.
    pub fn is_view(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("CREATE OR REPLACE VIEW"))
    }
}

impl Migration {
    /// Reads a file named `NNNN_title`.
    pub(super) fn read(name: &'static str, text: &str, template: &Template) -> Result<Self, TemplateError> {
        let path = format!("migrations/{name}");
        let fault = |problem: &str| TemplateError::new(&path, None, problem);
        let (version, title) = name
            .split_once('_')
            .filter(|(version, title)| version.len() == 4 && !title.is_empty())
            .and_then(|(version, title)| Some((version.parse().ok()?, title)))
            .ok_or_else(|| fault("the name of a migration is four digits, an underscore and a title"))?;
        let kind = match text.lines().next() {
            Some("-- additive") => MigrationKind::Additive,
            Some("-- breaking") => MigrationKind::Breaking,
            _ => return Err(fault("the first line of a migration is \"-- additive\" or \"-- breaking\"")),
        };
        match template.render(&path, text)? {
            Rendered::Once(sql) => Ok(Self { version, title, kind, text: sql, hash: ContentHash::of(text) }),
            Rendered::PerSlot(_) => Err(fault("a migration cannot be a template per slot, use blocks")),
        }
    }
}

impl Object {
    /// Reads a file and gives its instances by slot.
    pub(super) fn read(path: &'static str, text: &str, template: &Template) -> Result<Vec<Self>, TemplateError> {
        let name = path.strip_prefix("objects/").unwrap_or(path);
        let object = |slot, text: String| Self { name, slot, hash: ContentHash::of(&text), text };
        Ok(template.render(path, text)?.map(object).into_vec())
    }
}

/// Checks that the numbers of the migrations, in order, are 1, 2, 3, ...
pub(super) fn check_versions(migrations: &[Migration]) -> Result<(), TemplateError> {
    for (migration, expected) in migrations.iter().zip(1_u32..) {
        if migration.version != expected {
            let path = format!("migrations/{:04}_{}", migration.version, migration.title);
            return Err(TemplateError::new(&path, None, format!("the next migration has the number {expected:04}")));
        }
    }
    Ok(())
}
