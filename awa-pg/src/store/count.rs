//! Counting jobs.

use std::collections::BTreeMap;

use awa_core::error::StoreError;
use awa_core::name::QueueName;
use awa_core::state::JobState;
use awa_core::store::{Accuracy, Counts, QueueCounts};

use super::{PgStore, undecodable};
use crate::value::Param;

const OPERATION: &str = "counts";

impl PgStore {
    /// See [`Operator::counts`](awa_core::store::Operator::counts).
    pub async fn counts(&self, accuracy: Accuracy) -> Result<Counts, StoreError> {
        let rows = match accuracy {
            Accuracy::Estimate => {
                let most = [Param::I64(i64::from(Counts::MOST_READY))];
                self.call(OPERATION, self.sql.statement("operate/estimate"), &most).await?
            }
            _ => self.call(OPERATION, self.sql.statement("operate/counts"), &[]).await?,
        };
        let mut queues: BTreeMap<String, QueueCounts> = BTreeMap::new();
        for row in &rows {
            let bad = undecodable(OPERATION);
            let name = row.text(0).map_err(&bad)?;
            let paused = row.bool(1).map_err(&bad)?;
            let queue =
                queues.entry(name.to_owned()).or_insert_with(|| QueueCounts::empty(QueueName::trusted(name), paused));
            let Some(state) = row.opt_text(2).map_err(&bad)? else { continue };
            let count = |column| row.i64(column).map(i64::unsigned_abs).map_err(&bad);
            queue.add(state.parse::<JobState>()?, count(3)?, count(4)?);
        }
        Ok(Counts::new(accuracy, queues.into_values().collect()))
    }
}
