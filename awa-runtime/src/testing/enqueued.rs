use std::error::Error;

use awa_core::JobKind;
use awa_core::store::{JobFilter, JobView, Operator};

use crate::job::Job;

/// A job of a store with its arguments decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredJob<J> {
    /// The arguments.
    pub job: J,
    /// Everything that the store tells about it: its state, queue, priority, time, result, error.
    pub view: JobView,
}

/// All jobs of a type that `store` knows, whatever their state, in the order in which they were enqueued.
///
/// # Errors
///
/// The store's, or that of arguments which do not decode.
pub async fn jobs_of<J: Job>(
    store: &(impl Operator + ?Sized),
) -> Result<Vec<StoredJob<J>>, Box<dyn Error + Send + Sync>> {
    let kind = JobKind::new(J::KIND)?;
    let mut filter = JobFilter { kind: Some(kind), limit: JobFilter::MAX_LIMIT, ..JobFilter::default() };
    let mut jobs = Vec::new();
    loop {
        let page = store.list(&filter).await?;
        filter.before = page.last().map(|view| view.id);
        let is_last = page.len() < JobFilter::MAX_LIMIT;
        for view in page {
            jobs.push(StoredJob { job: view.args.decode()?, view });
        }
        if is_last {
            jobs.reverse();
            return Ok(jobs);
        }
    }
}
