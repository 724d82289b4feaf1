//! The conformance suite on PostgreSQL through diesel.

use awa_tests::diesel_store::FreshDieselStore;

awa_conformance::suite!(tokio::test, FreshDieselStore::with_manual_clock());
