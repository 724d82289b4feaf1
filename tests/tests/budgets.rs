//! What one job costs, counted and not timed: rows, index entries, log bytes, locks, dead rows.
//!
//! Each test has a server of its own, because log bytes are counted for a whole server.

use std::sync::Arc;

use awa_core::store::{BatchLimit, ClaimRequest, Consumer, Maintainer, Producer};
use awa_core::{
    AttemptEnd, Closure, ClosureAnswer, InstanceId, JobKind, JsonText, NewJob, Nonce, QueueName,
};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use awa_store_sqlx::SqlxStore;
use sqlx::{AssertSqlSafe, Row};

const INSTANCE: InstanceId = InstanceId(7);

/// A server, a store on it, and a second connection that looks on.
struct Bench {
    store: SqlxStore,
    queue: QueueName,
    _cluster: Arc<Cluster>,
}

impl Bench {
    async fn new() -> Self {
        let start = || {
            let settings = [("autovacuum", "off"), ("checkpoint_timeout", "1h"), ("max_wal_size", "4GB")];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            // Without full pages in the log, the number of bytes is the same in every run.
            Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings })
        };
        let cluster = tokio::task::spawn_blocking(start).await.unwrap().expect("PostgreSQL can be started");
        let options = SqlxStore::options().max_connections(2).wakeups(false);
        let store = options.connect(&cluster.url("postgres")).await.unwrap();
        store.prepare_schema().await.unwrap();
        let queue = QueueName::new("email").unwrap();
        store.open_queue(&queue).await.unwrap();
        Self { store, queue, _cluster: Arc::new(cluster) }
    }

    fn jobs(&self, count: usize) -> Vec<NewJob> {
        let args = JsonText::new("args", r#"{"to":"someone@example.org","template":"welcome-12345"}"#).unwrap();
        assert_eq!(args.as_str().len(), 55);
        vec![NewJob::new(self.queue.clone(), JobKind::new("send_email").unwrap(), args); count]
    }

    async fn claim(&self, max: usize, nonce: i64) -> Vec<awa_core::ClaimedJob> {
        let request = ClaimRequest {
            queue: self.queue.clone(),
            instance: INSTANCE,
            nonce: Nonce(nonce),
            max_jobs: BatchLimit::new(max).unwrap(),
            max_bytes: 1 << 24,
            deadline: None,
            aging: None,
        };
        self.store.claim(&request).await.unwrap().jobs
    }

    async fn life_of(&self, batch: usize) {
        self.store.enqueue(&self.jobs(batch)).await.unwrap();
        let jobs = self.claim(batch, 1).await;
        assert_eq!(jobs.len(), batch);
        let closures: Vec<_> =
            jobs.iter().map(|job| Closure { receipt: job.receipt, end: AttemptEnd::Complete }).collect();
        let answers = self.store.close(&closures).await.unwrap();
        assert!(answers.iter().all(|answer| *answer == ClosureAnswer::Closed));
    }

    async fn number(&self, sql: &str) -> i64 {
        sqlx::query(AssertSqlSafe(sql)).fetch_one(self.store.pool()).await.unwrap().get(0)
    }

    async fn log_bytes(&self) -> i64 {
        self.number("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await
    }
}

#[tokio::test]
async fn a_job_costs_no_more_log_than_budgeted() {
    let bench = Bench::new().await;
    for (batch, rounds, budget) in [(500, 20, 275), (8, 200, 400), (1, 500, 1_200)] {
        bench.life_of(batch).await;
        let before = bench.log_bytes().await;
        for _ in 0..rounds {
            bench.life_of(batch).await;
        }
        let each = (bench.log_bytes().await - before) / i64::try_from(batch * rounds).unwrap();
        println!("batches of {batch}: {each} bytes of log per job, budget {budget}");
        assert!(each <= budget, "batches of {batch}: {each} bytes of log per job are more than {budget}");
    }
}
