//! The conformance suite on SQLite. What is not declared is named on standard error, case by case.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Capability, Subject, SubjectTransaction};
use awa_core::{Store, Timestamp};
use example_sqlite_store::SqliteStore;
use tempfile::TempDir;

struct Fresh {
    store: SqliteStore,
    clock: Arc<AtomicI64>,
    _folder: TempDir,
}

fn fresh() -> Fresh {
    let folder = tempfile::tempdir().expect("there is room for a file");
    let clock = Arc::new(AtomicI64::new(1_790_000_000_000_000));
    let now = Arc::clone(&clock);
    let clock_of_store = Arc::new(move || Timestamp::from_micros(now.load(Ordering::SeqCst)));
    let store = SqliteStore::with_clock(folder.path().join("jobs.db"), clock_of_store).expect("the file can be made");
    Fresh { store, clock, _folder: folder }
}

#[async_trait]
impl Subject for Fresh {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        unreachable!("transactions of an application are not declared")
    }

    async fn advance(&self, by: Duration) {
        self.clock.fetch_add(i64::try_from(by.as_micros()).expect("no case waits for ages"), Ordering::SeqCst);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::only([Capability::Clock])
    }
}

awa_conformance::suite!(tokio::test, std::future::ready(fresh()));
