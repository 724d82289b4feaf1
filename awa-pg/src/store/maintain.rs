//! The small tasks of maintenance.

use std::time::Duration;

use awa_core::error::StoreError;
use awa_core::name::QueueName;
use awa_core::store::{Promoted, Task};

use super::clock::micros_of;
use super::{PgStore, only_row, undecodable};
use crate::value::Param;

impl PgStore {
    /// See [`Maintainer::try_tick`](awa_core::store::Maintainer::try_tick).
    pub async fn try_tick(&self, task: Task, every: Duration) -> Result<bool, StoreError> {
        const OPERATION: &str = "try_tick";
        let params = [Param::Text(task.as_str().into()), Param::I64(micros_of(every)), self.clock.param()];
        let rows = self.call(OPERATION, self.sql.statement("ticks/try_tick"), &params).await?;
        only_row(OPERATION, &rows)?.bool(0).map_err(undecodable(OPERATION))
    }

    /// See [`Maintainer::promote`](awa_core::store::Maintainer::promote).
    pub async fn promote(&self, limit: usize) -> Result<Promoted, StoreError> {
        const OPERATION: &str = "promote";
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let params = [Param::I32(limit), self.clock.param()];
        let rows = self.call(OPERATION, self.sql.statement("ticks/promote"), &params).await?;
        let row = only_row(OPERATION, &rows)?;
        let jobs = row.i32(0).map_err(undecodable(OPERATION))?;
        let more = row.bool(1).map_err(undecodable(OPERATION))?;
        Ok(Promoted { jobs: usize::try_from(jobs).unwrap_or(0), more })
    }

    /// See [`Maintainer::tidy`](awa_core::store::Maintainer::tidy).
    pub async fn tidy(&self) -> Result<(), StoreError> {
        self.call("tidy", self.sql.statement("ticks/fold_lane_hints"), &[]).await?;
        self.call("tidy", self.sql.statement("ticks/release_leftover_keys"), &[]).await?;
        self.call("tidy", self.sql.statement("ticks/deliver_cancels"), &[self.clock.param()]).await?;
        self.call("tidy", self.sql.statement("ticks/forget_orphaned_notes"), &[self.clock.param()]).await?;
        self.call("tidy", self.sql.statement("ticks/compact_counters"), &[]).await?;
        self.call("tidy", self.sql.statement("ticks/forget_instances"), &[self.clock.param()]).await.map(drop)
    }

    /// See [`Maintainer::open_queue`](awa_core::store::Maintainer::open_queue).
    pub async fn open_queue(&self, queue: &QueueName) -> Result<(), StoreError> {
        let params = [Param::Text(queue.as_str().into())];
        self.call("open_queue", self.sql.statement("ticks/open_queue"), &params).await.map(drop)
    }

    /// See [`Maintainer::forget_dead`](awa_core::store::Maintainer::forget_dead).
    pub async fn forget_dead(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        const OPERATION: &str = "forget_dead";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let params = [Param::I64(micros_of(age)), Param::I64(limit), self.clock.param()];
        let rows = self.call(OPERATION, self.sql.statement("ticks/forget_dead"), &params).await?;
        let jobs = only_row(OPERATION, &rows)?.i64(0).map_err(undecodable(OPERATION))?;
        Ok(usize::try_from(jobs).unwrap_or(0))
    }

    /// See [`Maintainer::open_queues`](awa_core::store::Maintainer::open_queues).
    pub async fn open_queues(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        let params = [Param::Texts(queues.iter().map(QueueName::as_str).collect())];
        self.call("open_queues", self.sql.statement("ticks/open_queues"), &params).await.map(drop)
    }
}
