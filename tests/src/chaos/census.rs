//! The comparison of the books after a scene: what producers were told, what handlers wrote down, what the database kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sqlx::{PgPool, Row};

use super::Failure;
use super::journal::{self, What};
use super::ledger::Known;

/// What a census found. All is well when the counts of faults are zero and nothing is listed.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Jobs whose commit was acknowledged.
    pub(super) jobs: usize,
    /// Attempts that were ended by a rescuer while their claim was in the ring.
    pub(super) rescued: usize,
    /// Rescued attempts whose handler came to an end all the same, which the store must have refused.
    pub(super) refused: usize,
    /// Acknowledged jobs that neither came to an end nor are stored.
    pub(super) lost: usize,
    /// Attempts that ended twice, and jobs that did.
    pub(super) doubled: usize,
    /// Acknowledged jobs that did not come to an end, and attempts that are still open.
    pub(super) stuck: usize,
    /// Everything else that is wrong, in words.
    pub(super) problems: Vec<String>,
}

/// Fixes the books for the queries that follow.
const TIMELINE: &str = "
    SET jit = off;
    DROP TABLE IF EXISTS audit.timeline;
    CREATE TABLE audit.timeline AS
        SELECT a.receipt, a.job, a.claimed_at, a.outcome, a.ended_at, a.times_ended FROM audit.attempts AS a;
    CREATE INDEX ON audit.timeline (job, claimed_at);
    ANALYZE audit.timeline;";
/// Attempts of one job that were open at the same time, by the database's own books.
const OVERLAPS: &str = "
    SELECT count(*) FROM (
        SELECT a.ended_at, lead(a.claimed_at) OVER (PARTITION BY a.job ORDER BY a.claimed_at) AS next_claimed_at
        FROM audit.timeline AS a) AS pair
    WHERE pair.next_claimed_at IS NOT NULL AND (pair.ended_at IS NULL OR pair.ended_at > pair.next_claimed_at)";
/// Jobs that were handed out before their time, by the server's clock.
const EARLY: &str = "
    SELECT count(*) FROM audit.delays AS d
    CROSS JOIN LATERAL (
        SELECT min(a.claimed_at) AS claimed_at FROM audit.timeline AS a WHERE a.job = d.job AND a.claimed_at > d.at) AS next
    WHERE next.claimed_at < d.run_at";

/// Compares the books. Nobody works any more.
pub(super) async fn take(pool: &PgPool, known: &Known, folder: &Path) -> Result<Census, Failure> {
    let mut census = Census { jobs: known.acknowledged.len(), ..Census::default() };
    sqlx::raw_sql(TIMELINE).execute(pool).await?;
    let ends = rows(pool, "SELECT job, string_agg(state, ' and '), count(*) FROM audit.ends GROUP BY job").await?;
    let stored =
        rows(pool, "SELECT job_id, string_agg(state, ' and '), count(*) FROM awa.jobs GROUP BY job_id").await?;
    for job in &known.acknowledged {
        match (ends.get(job), stored.get(job)) {
            (Some(_), _) => {}
            (None, None) => census.lost += 1,
            (None, Some(_)) => census.stuck += 1,
        }
    }
    census.doubled += ends.values().filter(|(_, times)| *times > 1).count();
    census.doubled += number(pool, "SELECT count(*) FROM audit.timeline WHERE times_ended > 1").await?;
    census.stuck += number(pool, "SELECT count(*) FROM audit.timeline WHERE ended_at IS NULL").await?;
    census.rescued = number(pool, "SELECT count(*) FROM audit.timeline WHERE outcome = 7").await?;
    census.problem_if(stored.values().any(|(_, places)| *places > 1), "a job is in two places");
    let ghosts = ends.keys().chain(stored.keys()).filter(|job| {
        known.not_committed.contains(*job) || !(known.acknowledged.contains(*job) || known.unknown.contains(*job))
    });
    let ghosts: BTreeSet<_> = ghosts.collect();
    census.problem_if(!ghosts.is_empty(), &format!("jobs that were never committed exist: {ghosts:?}"));
    let overlaps = number(pool, OVERLAPS).await?;
    census.problem_if(overlaps > 0, &format!("{overlaps} attempts were open beside an attempt of the same job"));
    let early = number(pool, EARLY).await?;
    census.problem_if(early > 0, &format!("{early} jobs ran before their time"));
    census.compare_with_journals(pool, folder, &ends).await?;
    Ok(census)
}

impl Census {
    /// Whether everything is as it must be.
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.stuck == 0 && self.problems.is_empty()
    }

    pub(super) fn problem_if(&mut self, is_one: bool, problem: &str) {
        if is_one {
            self.problems.push(problem.to_owned());
        }
    }

    /// Every job that ended ran to this end in a handler, and every attempt that a handler ran was handed out once.
    async fn compare_with_journals(
        &mut self,
        pool: &PgPool,
        folder: &Path,
        ends: &BTreeMap<i64, (String, i64)>,
    ) -> Result<(), Failure> {
        let (mut done, mut fatal) = (BTreeSet::new(), BTreeSet::new());
        let (mut started, mut ended) = (BTreeMap::new(), BTreeSet::new());
        let mut jobs_of_number: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
        for entry in journal::read_all(folder)? {
            jobs_of_number.entry(entry.number).or_default().insert(entry.job);
            if entry.what != What::Start {
                ended.insert(entry.receipt);
            }
            match entry.what {
                What::Start => *started.entry(entry.receipt).or_insert(0) += 1,
                What::Done => drop(done.insert(entry.job)),
                What::Fatal => drop(fatal.insert(entry.job)),
                What::Again => {}
            }
        }
        let ran = |(job, (state, _)): &(&i64, &(String, i64))| match state.as_str() {
            "completed" => done.contains(*job),
            _ => fatal.contains(*job),
        };
        let unproven = ends.iter().filter(|end| !ran(end)).count();
        self.problem_if(unproven > 0, &format!("{unproven} jobs ended as no handler ended them"));
        let twice = started.values().filter(|times| **times > 1).count();
        self.problem_if(twice > 0, &format!("{twice} attempts were started twice"));
        let copied = jobs_of_number.values().filter(|jobs| jobs.len() > 1).count();
        self.problem_if(copied > 0, &format!("{copied} jobs exist twice"));
        let rescued = rows(pool, "SELECT receipt, '', 1::bigint FROM audit.timeline WHERE outcome = 7").await?;
        self.refused = ended.iter().filter(|receipt| rescued.contains_key(*receipt)).count();
        let claimed = rows(pool, "SELECT receipt, '', count(*) FROM audit.timeline GROUP BY receipt").await?;
        let unknown = started.keys().filter(|receipt| !claimed.contains_key(*receipt)).count();
        self.problem_if(unknown > 0, &format!("{unknown} attempts ran that the database does not know"));
        Ok(())
    }
}

/// Rows of an id, a text and a number.
async fn rows(pool: &PgPool, sql: &'static str) -> Result<BTreeMap<i64, (String, i64)>, Failure> {
    let rows = sqlx::query(sql).fetch_all(pool).await?;
    Ok(rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect())
}

/// The one number that a query gives.
pub(super) async fn number(pool: &PgPool, sql: &'static str) -> Result<usize, Failure> {
    Ok(usize::try_from(sqlx::query(sql).fetch_one(pool).await?.get::<i64, _>(0))?)
}

#[cfg(test)]
mod tests {
    use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Producer};
    use awa_core::{AttemptEnd, Closure, InstanceId, JobKind, JsonText, NewJob, Nonce, QueueName};

    use super::*;
    use crate::postgres::FreshStore;

    /// Two jobs, of which one was completed by nobody who wrote it down.
    async fn two_jobs(fresh: &FreshStore) -> [i64; 2] {
        sqlx::raw_sql(include_str!("audit.sql")).execute(fresh.store.pool()).await.unwrap();
        let queue = QueueName::new("census").unwrap();
        let args = JsonText::new("args", "{}").unwrap();
        let job = NewJob::new(queue.clone(), JobKind::new("census").unwrap(), args);
        fresh.store.open_queue(&queue).await.unwrap();
        fresh.store.enqueue(&[job.clone(), job]).await.unwrap();
        let request = ClaimRequest {
            queue,
            instance: InstanceId(1),
            nonce: Nonce(1),
            max_jobs: BatchLimit::new(1).unwrap(),
            max_bytes: 1 << 20,
            deadline: None,
            aging: None,
            shape: ClaimShape::Compact,
        };
        let receipt = fresh.store.claim(&request).await.unwrap().jobs[0].receipt;
        fresh.store.close(&[Closure { receipt, end: AttemptEnd::Complete }]).await.unwrap();
        [receipt.job.0, receipt.job.0 + 1]
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_lost_doubled_stuck_or_made_up_is_noticed() {
        let fresh = FreshStore::with_server_clock().await;
        let [done, waiting] = two_jobs(&fresh).await;
        let folder = std::env::temp_dir().join(format!("awa-census-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let never_stored = waiting + 1_000;
        let known = Known { acknowledged: BTreeSet::from([done, waiting, never_stored]), ..Known::default() };
        let census = take(fresh.store.pool(), &known, &folder).await.unwrap();
        assert_eq!((census.jobs, census.lost, census.doubled, census.stuck), (3, 1, 0, 1));
        assert_eq!(census.problems, ["1 jobs ended as no handler ended them"]);

        let twice = "INSERT INTO audit.ends (job, state) SELECT e.job, e.state FROM audit.ends AS e;
                     INSERT INTO audit.closures (receipt, outcome) SELECT c.receipt, c.outcome FROM audit.closures AS c;
                     INSERT INTO audit.claims (receipt, job) SELECT c.receipt + 1, c.job FROM audit.claims AS c";
        sqlx::raw_sql(twice).execute(fresh.store.pool()).await.unwrap();
        let known = Known { not_committed: BTreeSet::from([done, waiting]), ..Known::default() };
        let census = take(fresh.store.pool(), &known, &folder).await.unwrap();
        assert_eq!((census.doubled, census.stuck), (2, 1));
        assert!(census.problems[0].starts_with("jobs that were never committed exist"), "{:?}", census.problems);
        assert!(!census.is_clean());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
