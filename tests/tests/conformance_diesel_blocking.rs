//! The conformance suite on PostgreSQL, with applications that enqueue in transactions of blocking diesel connections.

use awa_tests::diesel_store::FreshDieselStore;

awa_conformance::suite!(tokio::test, FreshDieselStore::with_blocking_transactions());
