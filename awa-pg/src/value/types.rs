//! The PostgreSQL types that Awa sends and reads, with the object ids that PostgreSQL fixed for them.

use std::fmt;

/// What an adapter gives as the type of a column when its driver tells none, which is allowed where every cell of the
/// column is NULL. PostgreSQL gives no type this number.
pub const UNTOLD: u32 = 0;

/// A built-in PostgreSQL type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PgType {
    oid: u32,
    name: &'static str,
}

impl PgType {
    /// The object id, the same on every server.
    pub const fn oid(self) -> u32 {
        self.oid
    }

    /// The name as PostgreSQL prints it, for example `int8[]`.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The known type with this object id.
    pub fn by_oid(oid: u32) -> Option<Self> {
        ALL.iter().copied().find(|known| known.oid == oid)
    }
}

impl fmt::Debug for PgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for PgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! types {
    ($($constant:ident = $oid:literal, $name:literal;)*) => {
        $(
            #[doc = concat!("The type `", $name, "`.")]
            pub const $constant: PgType = PgType { oid: $oid, name: $name };
        )*

        /// Every type of this module.
        pub const ALL: &[PgType] = &[$($constant),*];
    };
}

types! {
    BOOL = 16, "bool";
    BYTEA = 17, "bytea";
    NAME = 19, "name";
    INT8 = 20, "int8";
    INT2 = 21, "int2";
    INT4 = 23, "int4";
    TEXT = 25, "text";
    JSON = 114, "json";
    JSON_ARRAY = 199, "json[]";
    FLOAT8 = 701, "float8";
    BOOL_ARRAY = 1000, "bool[]";
    BYTEA_ARRAY = 1001, "bytea[]";
    NAME_ARRAY = 1003, "name[]";
    INT2_ARRAY = 1005, "int2[]";
    INT4_ARRAY = 1007, "int4[]";
    TEXT_ARRAY = 1009, "text[]";
    VARCHAR_ARRAY = 1015, "varchar[]";
    INT8_ARRAY = 1016, "int8[]";
    FLOAT8_ARRAY = 1022, "float8[]";
    VARCHAR = 1043, "varchar";
    TIMESTAMPTZ = 1184, "timestamptz";
    TIMESTAMPTZ_ARRAY = 1185, "timestamptz[]";
    UUID = 2950, "uuid";
    UUID_ARRAY = 2951, "uuid[]";
}
