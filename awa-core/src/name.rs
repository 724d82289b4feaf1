//! Names of queues and of job kinds.
//!
//! A name is 1 to 200 bytes of letters and digits of any script and the signs `_ - . : / @ #`. Everything else (spaces,
//! quotes, control characters, symbols) is refused at the door: names travel through shells, URLs, logs, metrics and
//! dashboards, and what those would have to escape is not worth having in a name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::BadInput;

/// The longest name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 200;

fn check(field: &'static str, name: &str) -> Result<(), BadInput> {
    if name.is_empty() {
        return Err(BadInput::new(field, "it is empty; a name has 1 to 200 bytes"));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(BadInput::new(
            field,
            format!("it has {} bytes; a name has at most {MAX_NAME_BYTES} bytes of UTF-8", name.len()),
        ));
    }
    let allowed = |c: char| c.is_alphanumeric() || "_-.:/@#".contains(c);
    if let Some((at, c)) = name.char_indices().find(|&(_, c)| !allowed(c)) {
        return Err(BadInput::new(
            field,
            format!("{c:?} at byte {at} is not allowed; use letters, digits and any of _ - . : / @ #"),
        ));
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `name` against the rules of [this module](self).
            ///
            /// # Errors
            ///
            #[doc = concat!("[`BadInput`] of the field `", $field, "`.")]
            pub fn new(name: impl AsRef<str>) -> Result<Self, BadInput> {
                let name = name.as_ref();
                check($field, name)?;
                Ok(Self(Arc::from(name)))
            }

            /// A name read back from a store. What is stored is served, whatever wrote it: a name that
            /// [`Self::new`] would refuse must stop neither its own job nor others beside it.
            pub fn trusted(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = BadInput;

            fn from_str(name: &str) -> Result<Self, BadInput> {
                Self::new(name)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadInput;

            fn try_from(name: String) -> Result<Self, BadInput> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// The name of a queue: the stretch of work that workers subscribe to. Cheap to clone.
    QueueName,
    "queue"
);
name!(
    /// The name of a type of job, by which a worker finds the handler. Cheap to clone.
    JobKind,
    "kind"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_kept_to_the_byte() {
        for name in ["email", "billing.invoices:v2", "ünïcode", "日本語", "a/b@c#1", &"q".repeat(200)] {
            assert_eq!(QueueName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn hostile_names_are_refused_with_the_field_named() {
        for name in ["", "'; drop table x; --", "a\"b", "a\nb", "a b", "🦀", "nul\0", "%s", "$$", &"ü".repeat(101)] {
            assert_eq!(QueueName::new(name).unwrap_err().field, "queue", "{name:?}");
            assert_eq!(JobKind::new(name).unwrap_err().field, "kind", "{name:?}");
        }
    }

    #[test]
    fn names_are_checked_when_they_are_read_from_json() {
        assert!(serde_json::from_str::<QueueName>("\"ok\"").is_ok());
        assert!(serde_json::from_str::<QueueName>("\"not ok\"").is_err());
    }
}
