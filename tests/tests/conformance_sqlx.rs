//! The conformance suite on PostgreSQL through sqlx.

use awa_tests::postgres::FreshStore;

awa_conformance::suite!(tokio::test, FreshStore::with_manual_clock());
