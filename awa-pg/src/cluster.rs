//! Throw-away PostgreSQL clusters.
