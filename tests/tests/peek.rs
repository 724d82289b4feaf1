//! What a look at many queues costs, counted in index probes.

use awa_core::store::{BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Producer};
use awa_core::{InstanceId, JobKind, JsonText, NewJob, Nonce, QueueName};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use awa_store_sqlx::SqlxStore;
use sqlx::{Connection, PgConnection, Row};

/// A server, a store with many queues, and a connection that counts.
struct Bench {
    store: SqlxStore,
    queues: Vec<QueueName>,
    watch: PgConnection,
    // Stopped last.
    cluster: Cluster,
}

/// Probes of the indexes that a look uses, and index entries that were read for them.
#[derive(Debug)]
struct Probes {
    lanes: i64,
    rows: i64,
    cursors: i64,
    read: i64,
}

impl Bench {
    async fn new(queues: usize) -> Self {
        let settings = vec![("autovacuum".to_owned(), "off".to_owned())];
        let start = || Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings });
        let cluster = tokio::task::spawn_blocking(start).await.unwrap().expect("PostgreSQL can be started");
        let url = cluster.url("postgres");
        let store = SqlxStore::options().max_connections(1).wakeups(false).connect(&url).await.unwrap();
        store.prepare_schema().await.unwrap();
        let queues: Vec<_> = (0..queues).map(|number| QueueName::new(format!("bench-{number:05}")).unwrap()).collect();
        for page in queues.chunks(500) {
            store.open_queues(page).await.unwrap();
        }
        let mut watch = PgConnection::connect(&url).await.unwrap();
        sqlx::query("SET stats_fetch_consistency = none").execute(&mut watch).await.unwrap();
        Self { store, queues, watch, cluster }
    }

    fn jobs(queues: &[QueueName]) -> Vec<NewJob> {
        let args = JsonText::new("args", r#"{"to":"someone@example.org","template":"welcome-12345"}"#).unwrap();
        let kind = JobKind::new("send_email").unwrap();
        queues.iter().map(|queue| NewJob::new(queue.clone(), kind.clone(), args.clone())).collect()
    }

    /// One job for each of the first queues, claimed one by one, so that their lanes have rows and cursors.
    async fn serve_first(&self, count: usize) {
        let served = &self.queues[..count];
        self.store.enqueue(&Self::jobs(served)).await.unwrap();
        for (nonce, queue) in (0..).zip(served) {
            let request = ClaimRequest {
                queue: queue.clone(),
                instance: InstanceId(7),
                nonce: Nonce(nonce),
                max_jobs: BatchLimit::MAX,
                max_bytes: 1 << 24,
                deadline: None,
                aging: None,
                shape: ClaimShape::Compact,
            };
            assert_eq!(self.store.claim(&request).await.unwrap().jobs.len(), 1);
        }
    }

    async fn waiting(&self) -> usize {
        self.store.peek(&self.queues).await.unwrap().waiting.into_iter().filter(|waiting| *waiting).count()
    }

    async fn counted(&mut self) -> Probes {
        // The pool's only connection reports what it has done.
        sqlx::query("SELECT pg_stat_force_next_flush()").execute(self.store.pool()).await.unwrap();
        let sql = "SELECT coalesce(sum(idx_scan) FILTER (WHERE relname = 'queue_lanes'), 0)::bigint,
                          coalesce(sum(idx_scan) FILTER (WHERE relname ~ '^ready_entries_'), 0)::bigint,
                          coalesce(sum(idx_scan) FILTER (WHERE relname ~ '^ready_claim_attempt_batches_'), 0)::bigint,
                          coalesce(sum(idx_tup_read), 0)::bigint
                   FROM pg_stat_user_indexes";
        let row = sqlx::query(sql).fetch_one(&mut self.watch).await.unwrap();
        Probes { lanes: row.get(0), rows: row.get(1), cursors: row.get(2), read: row.get(3) }
    }

    /// What one look costs.
    async fn look(&mut self, expected: usize) -> Probes {
        let before = self.counted().await;
        assert_eq!(self.waiting().await, expected);
        let after = self.counted().await;
        Probes {
            lanes: after.lanes - before.lanes,
            rows: after.rows - before.rows,
            cursors: after.cursors - before.cursors,
            read: after.read - before.read,
        }
    }
}

/// What a look costs depends on the lanes that have rows, not on the queues that are asked for; and where more lanes have rows
/// than the queues have lanes, on those of the queues.
#[tokio::test]
async fn idle_queues_cost_nothing_in_a_look() {
    let mut bench = Bench::new(1_000).await;
    let empty = bench.look(0).await;
    assert_eq!((empty.lanes, empty.rows, empty.cursors), (0, 0, 0), "{empty:?}");
    bench.serve_first(1).await;
    let idle = bench.look(0).await;
    assert!(idle.lanes == 0 && idle.rows <= 3 && idle.cursors == 1, "{idle:?}");
    bench.serve_first(100).await;
    let served = bench.look(0).await;
    assert!(served.lanes == 0 && served.rows <= 202 && served.cursors == 100, "{served:?}");
    bench.store.enqueue(&Bench::jobs(&bench.queues[50..150])).await.unwrap();
    let busy = bench.look(100).await;
    assert!(busy.lanes <= 100 && busy.rows <= 302 && busy.cursors == 150, "{busy:?}");
    bench.queues.truncate(10);
    let few = bench.look(0).await;
    assert!(few.lanes == 10 && few.rows <= 42 + 40 + 10 && few.cursors == 10, "{few:?}");
}

/// A large transaction that is open is not walked through: looks go on beside a bulk load as before.
#[tokio::test]
async fn an_open_bulk_load_is_not_walked_through() {
    let mut bench = Bench::new(100).await;
    bench.serve_first(100).await;
    // Beyond the size up to which walking is cheaper.
    let mut loader = PgConnection::connect(&bench.cluster.url("postgres")).await.unwrap();
    let mut load = loader.begin().await.unwrap();
    let sql = "SELECT awa.enqueue_jobs(ARRAY['bench-00007'], ARRAY[2]::smallint[], NULL, NULL, ARRAY['k'],
                   (SELECT array_agg(('{\"n\":' || n || '}')::json) FROM generate_series(1, 10000) AS n), ARRAY[5]::smallint[],
                   NULL, NULL, NULL)";
    for _ in 0..12 {
        sqlx::query(sql).execute(&mut *load).await.unwrap();
    }
    let beside = bench.look(0).await;
    assert!(beside.read < 5_000, "{beside:?}");
    load.commit().await.unwrap();
    let after = bench.look(1).await;
    assert!(after.read < 5_000, "{after:?}");
}
