//! The conformance suite on PostgreSQL through sqlx, with claims in the row-local shape.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use awa_conformance::{Capabilities, Subject, SubjectTransaction};
use awa_core::Store;
use awa_core::store::ClaimShape;
use awa_tests::postgres::FreshStore;

struct RowLocal(FreshStore);

#[async_trait]
impl Subject for RowLocal {
    fn store(&self) -> Arc<dyn Store> {
        self.0.store()
    }

    async fn begin(&self) -> Box<dyn SubjectTransaction> {
        self.0.begin().await
    }

    async fn advance(&self, by: Duration) {
        self.0.advance(by).await;
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().claiming(ClaimShape::RowLocal)
    }
}

async fn fresh() -> RowLocal {
    RowLocal(FreshStore::with_manual_clock().await)
}

awa_conformance::suite!(tokio::test, fresh());
