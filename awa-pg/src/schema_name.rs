//! The name of the schema that Awa lives in, and why no name is dangerous.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use awa_core::error::BadInput;

/// The longest identifier that PostgreSQL keeps whole, in bytes.
pub const MAX_SCHEMA_NAME_BYTES: usize = 63;

/// The name of a schema, exactly as PostgreSQL stores it.
///
/// Any name is accepted that PostgreSQL would accept in quotes: 1 to 63 bytes without U+0000, not beginning with
/// `pg_`. What [`Self::quoted`] and [`Self::quoted_text`] return is safe wherever an identifier or a literal may
/// stand, also inside a dollar-quoted function body or a comment: characters that could end either are escaped. Only
/// `%TYPE` and `%ROWTYPE` of PL/pgSQL do not take escaped names; the name of the type does there.
///
/// ```
/// use awa_pg::SchemaName;
///
/// assert_eq!(SchemaName::default().quoted(), r#""awa""#);
/// assert_eq!(SchemaName::new(r#"a"$$"#)?.quoted(), r#"U&"a\0022\0024\0024""#);
/// # Ok::<(), awa_core::error::BadInput>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaName(String);

impl SchemaName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, BadInput> {
        let name = name.into();
        let refused = |problem: String| Err(BadInput::new("schema", problem));
        if name.is_empty() {
            return refused("the name of the schema is empty; give one, or leave it out for \"awa\"".to_owned());
        }
        if name.len() > MAX_SCHEMA_NAME_BYTES {
            return refused(format!(
                "the name of the schema has {} bytes, PostgreSQL keeps only {MAX_SCHEMA_NAME_BYTES}; shorten it",
                name.len()
            ));
        }
        if name.contains('\0') {
            return refused("the name of the schema contains U+0000, which PostgreSQL cannot store".to_owned());
        }
        if name.starts_with("pg_") {
            return refused(
                "the name of the schema begins with pg_, which PostgreSQL keeps for itself; choose another".to_owned(),
            );
        }
        Ok(Self(name))
    }

    /// The name as it is, for a parameter of a statement; never for SQL text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as an SQL identifier in quotes.
    pub fn quoted(&self) -> String {
        if self.0.chars().all(is_harmless) {
            return format!("\"{}\"", self.0);
        }
        let mut quoted = String::from("U&\"");
        for character in self.0.chars() {
            match u32::from(character) {
                _ if is_harmless(character) => quoted.push(character),
                code @ ..=0xFFFF => write!(quoted, "\\{code:04X}").expect("a string takes any text"),
                code => write!(quoted, "\\+{code:06X}").expect("a string takes any text"),
            }
        }
        quoted.push('"');
        quoted
    }

    /// The name as an SQL string literal.
    pub fn quoted_text(&self) -> String {
        if self.0.chars().all(is_harmless) {
            return format!("'{}'", self.0);
        }
        format!("E'{}'", escaped(&self.0))
    }

    /// The beginning of an SQL string literal that holds the name of something in the schema, for example of a
    /// sequence in a call of `nextval`; letters, digits, underscores and the closing quote may follow.
    pub(crate) fn quoted_text_of_member(&self) -> String {
        if self.0.chars().all(is_harmless) {
            return format!("'\"{}\".", self.0);
        }
        let doubled = self.0.replace('"', "\"\"");
        format!("E'{}.", escaped(&format!("\"{doubled}\"")))
    }
}

/// The inside of an escape string literal, where only harmless characters stand for themselves.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match u32::from(character) {
            _ if is_harmless(character) => escaped.push(character),
            code @ ..=0xFFFF => write!(escaped, "\\u{code:04X}").expect("a string takes any text"),
            code => write!(escaped, "\\U{code:08X}").expect("a string takes any text"),
        }
    }
    escaped
}

/// Whether a character stands for itself in every place of an SQL text: no quote, dollar, backslash, slash, star or
/// line end among them.
fn is_harmless(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | ' ' | '.')
}

impl Default for SchemaName {
    /// The schema `awa`.
    fn default() -> Self {
        Self("awa".to_owned())
    }
}

impl FromStr for SchemaName {
    type Err = BadInput;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

/// The name as it is, for messages.
impl fmt::Display for SchemaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_postgresql_cannot_keep_are_refused_with_the_reason() {
        for (name, reason) in [
            ("", "is empty"),
            ("a\0b", "U+0000"),
            ("pg_awa", "pg_"),
            ("x".repeat(64).as_str(), "64 bytes"),
            ("ä".repeat(32).as_str(), "64 bytes"),
        ] {
            let refusal = SchemaName::new(name).unwrap_err();
            assert_eq!(refusal.field, "schema");
            assert!(refusal.problem.contains(reason), "{name:?}: {refusal}");
        }
        assert!(SchemaName::new("x".repeat(63)).is_ok());
        assert!(SchemaName::new("pg").is_ok());
    }

    #[test]
    fn harmless_names_are_quoted_as_they_are() {
        for name in ["awa", "Awa", "my jobs", "a.b", "a--b", "größe", "1st", "select"] {
            let schema = SchemaName::new(name).unwrap();
            assert_eq!(schema.quoted(), format!("\"{name}\""));
            assert_eq!(schema.quoted_text(), format!("'{name}'"));
        }
    }

    #[test]
    fn characters_that_could_end_a_quote_a_body_or_a_comment_are_escaped() {
        let hostile = SchemaName::new("a\"'; $$ $f$ \\ */ /* \n\r\t😀").unwrap();
        for quoted in [hostile.quoted(), hostile.quoted_text()] {
            let inside = quoted
                .strip_prefix("U&\"")
                .and_then(|rest| rest.strip_suffix('"'))
                .or_else(|| quoted.strip_prefix("E'").and_then(|rest| rest.strip_suffix('\'')))
                .unwrap();
            assert!(!inside.contains(['"', '\'', '$', '/', '*', '\n', '\r', ';']), "{quoted}");
        }
        assert_eq!(SchemaName::new("😀$").unwrap().quoted(), "U&\"\\+01F600\\0024\"");
        assert_eq!(SchemaName::new("a\"b").unwrap().quoted_text_of_member(), "E'\\u0022a\\u0022\\u0022b\\u0022.");
        assert_eq!(SchemaName::new("my jobs").unwrap().quoted_text_of_member(), "'\"my jobs\".");
        assert_eq!(SchemaName::new("😀'").unwrap().quoted_text(), "E'\\U0001F600\\u0027'");
    }
}
