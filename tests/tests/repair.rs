//! Schemas that were carried into another cluster: recognised, refused, repaired without loss.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use awa_core::attempt::ErrorText;
use awa_core::doctor::Severity;
use awa_core::id::Slot;
use awa_core::retry::RetryPolicy;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{
    BatchLimit, ClaimRequest, ClaimShape, Consumer, Maintainer, Operator, Producer, RescueRequest, RetentionPolicy,
};
use awa_core::unique::{Unique, UniqueBy};
use awa_core::{
    AttemptEnd, ClaimedJob, Closure, ClosureAnswer, Enqueued, InstanceId, JobId, JobKind, JsonText, NewJob, Nonce,
    Priority, QueueName, RunAt, StoreError, StoreErrorKind, Timestamp,
};
use awa_pg::cluster::{Cluster, ClusterOptions, Durability};
use awa_store_sqlx::{Clock, DoctorOptions, SqlxStore};
use awa_tests::postgres::SMALL_RINGS;
use sqlx::{AssertSqlSafe, Row};

const AT_ONCE: RotationPolicy = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
const HOUR: Duration = Duration::from_hours(1);

/// A cluster of its own with a store in it.
struct Place {
    cluster: Arc<Cluster>,
    store: SqlxStore,
    clock: Clock,
}

impl Place {
    async fn empty(clock: &Clock) -> Self {
        let start = || Cluster::start(ClusterOptions { durability: Durability::Relaxed, settings: Vec::new() });
        let cluster = tokio::task::spawn_blocking(start).await.unwrap().expect("PostgreSQL can be started");
        let options = SqlxStore::options().rings(SMALL_RINGS).clock(clock.clone()).max_connections(4).wakeups(false);
        let store = options.connect(&cluster.url("postgres")).await.unwrap();
        Self { cluster: Arc::new(cluster), store, clock: clock.clone() }
    }

    /// With a schema, in a cluster that has handed out more transaction numbers than a fresh one.
    async fn used() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let place = Self::empty(&Clock::manual(Timestamp::from_micros(now.as_micros() as i64))).await;
        place.store.prepare_schema().await.unwrap();
        place.run("CALL awa.use_up_transactions(10000)").await;
        place.store.open_queue(&queue()).await.unwrap();
        place
    }

    /// Another cluster with what `pg_dump` and `psql` carry over.
    async fn carried(&self) -> Self {
        let (source, target) = (Arc::clone(&self.cluster), Self::empty(&self.clock).await);
        let into = Arc::clone(&target.cluster);
        let carry = move || {
            let mut dump = Command::new(source.bin("pg_dump").unwrap());
            let dump = dump.arg("--dbname").arg(source.url("postgres")).output().unwrap();
            assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
            into.psql("postgres", &String::from_utf8(dump.stdout).unwrap()).unwrap();
        };
        tokio::task::spawn_blocking(carry).await.unwrap();
        target
    }

    async fn run(&self, sql: &str) {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(self.store.pool()).await.unwrap();
    }

    async fn number(&self, sql: &str) -> i64 {
        sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(self.store.pool()).await.unwrap().get(0)
    }

    async fn text(&self, sql: &str) -> String {
        sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(self.store.pool()).await.unwrap().get(0)
    }

    async fn enqueue(&self, jobs: &[NewJob]) -> Vec<JobId> {
        self.store.enqueue(jobs).await.unwrap().iter().map(|enqueued| enqueued.id()).collect()
    }

    async fn claim(&self, max: usize) -> Vec<ClaimedJob> {
        self.try_claim(max).await.unwrap()
    }

    async fn try_claim(&self, max: usize) -> Result<Vec<ClaimedJob>, StoreError> {
        let request = ClaimRequest {
            queue: queue(),
            instance: WORKER,
            nonce: Nonce(1),
            max_jobs: BatchLimit::new(max).unwrap(),
            max_bytes: 1 << 24,
            deadline: None,
            aging: None,
            shape: ClaimShape::Compact,
        };
        Ok(self.store.claim(&request).await?.jobs)
    }

    async fn end(&self, jobs: &[ClaimedJob], end: AttemptEnd) -> Vec<ClosureAnswer> {
        let closures: Vec<_> = jobs.iter().map(|job| Closure { receipt: job.receipt, end: end.clone() }).collect();
        self.store.close(&closures).await.unwrap()
    }

    async fn turn(&self) {
        self.store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
        self.store.rotate(RingKind::Claim, &AT_ONCE).await.unwrap();
    }

    /// All jobs that wait, in the order in which they are handed out.
    async fn take_all(&self) -> Vec<JobId> {
        let mut taken = Vec::new();
        loop {
            let jobs = self.claim(7).await;
            if jobs.is_empty() {
                return taken;
            }
            taken.extend(jobs.iter().map(|job| job.receipt.job));
        }
    }

    async fn worst(&self) -> Severity {
        let options = DoctorOptions {
            queue_rotation: AT_ONCE,
            claim_rotation: AT_ONCE,
            lease_rotation: AT_ONCE,
            retention: RetentionPolicy::default(),
            wakeup_patience: HOUR,
        };
        self.store.doctor(&options).await.unwrap().severity
    }
}

const WORKER: InstanceId = InstanceId(7);

fn queue() -> QueueName {
    QueueName::new("email").unwrap()
}

fn job() -> NewJob {
    NewJob::new(queue(), JobKind::new("send").unwrap(), JsonText::new("args", "{}").unwrap())
}

fn jobs(count: usize) -> Vec<NewJob> {
    vec![job(); count]
}

fn error() -> ErrorText {
    ErrorText::new("no")
}

fn assert_names_the_command<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.expect_err("refused");
    assert_eq!(error.kind(), StoreErrorKind::NotReady, "{error}");
    assert!(error.to_string().contains("run `awa repair`"), "{error}");
}

/// Jobs in every place and in every order: the attempts that stay open are returned.
async fn live_a_little(place: &Place) -> Vec<ClaimedJob> {
    let store = &place.store;
    place.enqueue(&jobs(12)).await;
    let completed = place.claim(2).await;
    place.end(&completed, AttemptEnd::Complete).await;
    let with_result = AttemptEnd::CompleteWith { result: JsonText::new("result", "[1]").unwrap() };
    place.end(&place.claim(1).await, with_result).await;
    place.end(&place.claim(1).await, AttemptEnd::Fail { error: error() }).await;
    let retry = AttemptEnd::Retry { delay: Duration::ZERO, error: error() };
    place.end(&place.claim(3).await, retry).await;
    // The rest of the first transaction waits: its lane stands in the middle of it. One of it is cancelled.
    let cancelled = place.enqueue(&jobs(1)).await;
    store.cancel(&cancelled, &error()).await.unwrap();
    place.turn().await;
    // A transaction that began to write before others and commits after them, in a slot that is not open any more.
    let mut late = store.pool().begin().await.unwrap();
    store.enqueue_in(&mut late, &jobs(3)).await.unwrap();
    place.enqueue(&jobs(2)).await;
    let running = place.claim(3).await;
    place.turn().await;
    place.enqueue(&jobs(3)).await;
    late.commit().await.unwrap();
    // Retried jobs join at the tail, with older ids than those before them.
    assert_eq!(store.promote(10).await.unwrap().jobs, 3);
    let urgent = job().with_priority(Priority::new(1).unwrap());
    place.enqueue(&[urgent.clone(), job(), urgent]).await;
    place.enqueue(&[job().with_run_at(RunAt::After(HOUR))]).await;
    running
}

#[tokio::test]
async fn a_restored_dump_is_refused_until_it_is_repaired_and_then_nothing_is_lost() {
    let source = Place::used().await;
    let running = live_a_little(&source).await;
    let before = source.store.census().await.unwrap();
    let target = source.carried().await;

    assert_names_the_command(target.store.enqueue(&jobs(1)).await);
    assert_names_the_command(target.try_claim(1).await);
    assert_names_the_command(target.store.drain().await);
    let mut tx = target.store.pool().begin().await.unwrap();
    assert_names_the_command(target.store.enqueue_in(&mut tx, &jobs(1)).await);
    tx.rollback().await.unwrap();
    assert_eq!(target.worst().await, Severity::Critical);
    // An upgrade on the way, which makes everything anew, does not hide it.
    target.run("DELETE FROM awa.objects").await;
    assert!(target.store.prepare_schema().await.unwrap().objects > 100);
    assert_names_the_command(target.try_claim(1).await);

    let (one, other) = tokio::join!(target.store.repair(), target.store.repair());
    let (mut one, mut other) = (one.unwrap(), other.unwrap());
    if one.is_nothing() {
        std::mem::swap(&mut one, &mut other);
    }
    assert!(one.was_carried && other.is_nothing(), "{one} and {other}");
    assert_eq!(one.reopened, [RingKind::Queue]);
    let waiting = before.iter().find(|count| count.state == awa_core::JobState::Ready).unwrap().jobs;
    assert_eq!(one.moved_jobs, waiting, "{one}");
    assert_eq!(target.store.census().await.unwrap(), before);
    assert!(target.worst().await < Severity::Critical);

    // What the source would have handed out, in the same order; then what is new.
    let new = target.enqueue(&jobs(2)).await;
    let expected = [source.take_all().await, new].concat();
    assert_eq!(expected.len() as u64, waiting + 2);
    assert_eq!(target.take_all().await, expected);
    // A worker that holds an attempt of before may still end it, once.
    assert_eq!(target.end(&running[..1], AttemptEnd::Complete).await, [ClosureAnswer::Closed]);
    assert_eq!(target.end(&running[..1], AttemptEnd::Complete).await, [ClosureAnswer::Stale]);
}

#[tokio::test]
async fn attempts_that_ran_are_rescued_after_a_repair_and_old_slots_are_reclaimed() {
    let source = Place::used().await;
    let running = live_a_little(&source).await;
    let target = source.carried().await;
    let store = &target.store;
    store.repair().await.unwrap();
    let (rescuer, staleness) = (InstanceId(9), Duration::from_secs(30));
    for _ in 0..4 {
        store.beat(rescuer, staleness).await.unwrap();
        target.clock.advance(Duration::from_secs(10));
    }
    store.beat(rescuer, staleness).await.unwrap();
    let request = RescueRequest { rescuer, staleness, page: 100 };
    let mut rescued = store.rescue(&request, &RetryPolicy::default()).await.unwrap().attempts;
    rescued.sort_by_key(|attempt| attempt.job);
    let mut expected: Vec<_> = running.iter().map(|job| job.receipt.job).collect();
    expected.sort();
    assert_eq!(rescued.iter().map(|attempt| attempt.job).collect::<Vec<_>>(), expected);

    let left: u64 = store.census().await.unwrap().iter().map(|count| count.jobs).sum();
    let taken = target.claim(1_000).await;
    target.end(&taken, AttemptEnd::Complete).await;
    target.clock.advance(2 * HOUR);
    store.promote(100).await.unwrap();
    for _ in 0..3 {
        target.turn().await;
        store.drain().await.unwrap();
        store.prune(RingKind::Queue, &RetentionPolicy::default()).await.unwrap();
        store.prune(RingKind::Claim, &RetentionPolicy::default()).await.unwrap();
    }
    let busy = "SELECT count(*) FROM awa.queue_ring_slots WHERE state NOT IN ('free', 'open')";
    assert!(target.number(busy).await <= 1, "only the slot that was open last may wait to be drained");
    let waiting = target.take_all().await.len();
    assert!(left > 0 && waiting == rescued.len() + 1, "the rescued jobs and the deferred one are there: {waiting}");
}

#[tokio::test]
async fn sequences_that_do_not_fit_the_rows_are_repaired_too() {
    let source = Place::used().await;
    live_a_little(&source).await;
    let before = source.store.census().await.unwrap();
    let target = source.carried().await;
    // A dump takes sequences later than rows: the rings went on by three slots, onto one in use. Replication takes none.
    target
        .run("SELECT setval('awa.queue_ring_pointer', (last_value / 64 + 3) * 64 + 1) FROM awa.queue_ring_pointer")
        .await;
    target
        .run("SELECT setval('awa.claim_ring_pointer', (last_value / 64 + 2) * 64 + 1) FROM awa.claim_ring_pointer")
        .await;
    target.run("SELECT setval('awa.job_id_seq', 1, false), setval('awa.batch_id_seq', 1, false)").await;
    let repaired = target.store.repair().await.unwrap();
    assert_eq!(repaired.reopened, [RingKind::Claim, RingKind::Queue], "{repaired}");
    assert_eq!(repaired.raised, ["job_id_seq", "batch_id_seq"], "{repaired}");
    assert_eq!(target.store.census().await.unwrap(), before);
    let new = target.enqueue(&jobs(1)).await;
    let expected = [source.take_all().await, new].concat();
    assert_eq!(target.take_all().await, expected);
    assert_eq!(target.store.repair().await.unwrap().to_string(), "schema \"awa\": nothing to repair");
    target.turn().await;
    assert!(target.worst().await < Severity::Critical);
}

#[tokio::test]
async fn a_pointer_that_left_its_ledger_is_repaired_in_place() {
    let place = Place::used().await;
    place.enqueue(&jobs(2)).await;
    assert_eq!(place.claim(2).await.len(), 2);
    place.turn().await;
    place.enqueue(&jobs(2)).await;
    assert_eq!(place.store.drain().await.unwrap().slots.len(), 1);
    // Writers are sent to slot 0, which is drained, and write there.
    place.run("SELECT setval('awa.queue_ring_pointer', 9 * 64)").await;
    let stray = place.enqueue(&jobs(1)).await;
    assert_eq!(place.worst().await, Severity::Critical);
    let repaired = place.store.repair().await.unwrap();
    assert!(!repaired.was_carried && repaired.moved_jobs == 0, "{repaired}");
    assert_eq!(repaired.reopened, [RingKind::Queue]);
    place.enqueue(&jobs(1)).await;
    let taken = place.take_all().await;
    assert_eq!(taken.len(), 4);
    assert!(taken.contains(&stray[0]));
    assert!(place.worst().await < Severity::Critical);
}

#[tokio::test]
async fn a_ring_without_a_free_slot_is_repaired_by_moving_history() {
    let source = Place::used().await;
    for _ in 0..SMALL_RINGS.queue {
        source.enqueue(&jobs(4)).await;
        let jobs = source.claim(2).await;
        source.end(&jobs[..1], AttemptEnd::Complete).await;
        source.end(&jobs[1..], AttemptEnd::Cancel { reason: error() }).await;
        let cancelled = source.enqueue(&[job()]).await;
        source.store.cancel(&cancelled, &error()).await.unwrap();
        source.store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    }
    assert_eq!(source.number("SELECT count(*) FROM awa.queue_ring_slots WHERE state = 'free'").await, 0);
    let before = source.store.census().await.unwrap();
    let target = source.carried().await;
    let repaired = target.store.repair().await.unwrap();
    assert!(repaired.moved_history >= 3, "{repaired}");
    assert_eq!(target.store.census().await.unwrap(), before);
    let fields =
        "SELECT string_agg(concat_ws(' ', job_id, state, queue, kind, priority, attempt, max_attempts, run_lease,
                  args, created_at, finalized_at, error), E'\\n' ORDER BY job_id) FROM awa.terminal_jobs";
    assert_eq!(target.text(fields).await, source.text(fields).await);
    assert_eq!(target.take_all().await, source.take_all().await);
}

#[tokio::test]
async fn a_ring_in_which_every_slot_has_running_jobs_is_left_alone_and_says_what_helps() {
    let source = Place::used().await;
    for _ in 0..SMALL_RINGS.queue {
        source.enqueue(&jobs(1)).await;
        source.claim(1).await;
        source.store.rotate(RingKind::Queue, &AT_ONCE).await.unwrap();
    }
    let target = source.carried().await;
    let error = target.store.repair().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    assert!(error.to_string().contains("start a worker"), "{error}");
    assert_names_the_command(target.try_claim(1).await);
}

#[tokio::test]
async fn a_cluster_whose_numbers_go_on_is_only_put_on_record() {
    let place = Place::used().await;
    live_a_little(&place).await;
    // As pg_upgrade leaves it: another identifier, the same numbers.
    place
        .run(
            "CREATE OR REPLACE FUNCTION awa.home_cluster() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1::bigint'",
        )
        .await;
    assert_names_the_command(place.store.enqueue(&jobs(1)).await);
    let before = place
        .number("SELECT sum(pg_relation_size(oid))::bigint FROM pg_class WHERE relname LIKE 'ready_entries%'")
        .await;
    let repaired = place.store.repair().await.unwrap();
    assert_eq!(repaired.to_string(), "schema \"awa\": this cluster is on record now");
    let after = place
        .number("SELECT sum(pg_relation_size(oid))::bigint FROM pg_class WHERE relname LIKE 'ready_entries%'")
        .await;
    assert_eq!(before, after, "no row was written");
    place.enqueue(&jobs(1)).await;
    assert!(!place.claim(1).await.is_empty());
}

#[tokio::test]
async fn more_runs_than_the_new_cluster_has_numbers_keep_their_order() {
    let source = Place::used().await;
    source.enqueue(&jobs(5_000)).await;
    source.run("UPDATE awa.ready_entries SET xid = (9000 - job_id)::text::xid8").await;
    let target = source.carried().await;
    assert!(target.number("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").await < 5_000);
    let repaired = target.store.repair().await.unwrap();
    assert_eq!(repaired.moved_jobs, 5_000, "{repaired}");
    let taken = target.take_all().await;
    assert_eq!(taken.len(), 5_000);
    assert!(taken.is_sorted_by(|one, next| one.0 == next.0 + 1), "descending, as they were");
}

impl Place {
    /// Everything that may be turned and reclaimed is, until nothing more changes.
    async fn reclaim_all(&self) {
        let nothing = RetentionPolicy::NONE;
        for _ in 0..2 * SMALL_RINGS.queue {
            for ring in RingKind::ALL {
                self.store.rotate(ring, &AT_ONCE).await.unwrap();
                self.store.drain().await.unwrap();
                self.store.prune(ring, &nothing).await.unwrap();
            }
        }
    }

    /// Slots of all rings that are in use and not open.
    async fn busy(&self) -> i64 {
        self.number(
            "SELECT (SELECT count(*) FROM awa.queue_ring_slots WHERE state NOT IN ('free', 'open'))
                  + (SELECT count(*) FROM awa.claim_ring_slots WHERE state NOT IN ('free', 'open'))
                  + (SELECT count(*) FROM awa.lease_ring_slots WHERE state NOT IN ('free', 'open'))",
        )
        .await
    }
}

/// A store with jobs in every place: waiting in and outside the ring in an order that only the numbers tell, running as a
/// claim and as a lease, deferred, dead, with a key. Returns the lease and the claim.
async fn live_outside_the_rings(place: &Place) -> (ClaimedJob, ClaimedJob) {
    let handed_back = AttemptEnd::Release { delay: Duration::ZERO };
    let first = place.enqueue(&jobs(4)).await;
    let claimed = place.claim(4).await;
    // The first job comes back by a later transaction, behind jobs with larger ids.
    place.end(&claimed[..1], AttemptEnd::Retry { delay: Duration::ZERO, error: error() }).await;
    assert_eq!(place.store.promote(10).await.unwrap().jobs, 1);
    place.end(&claimed[1..3], handed_back.clone()).await;
    place.turn().await;
    place.enqueue(&jobs(2)).await;
    let again = place.claim(3).await;
    let order: Vec<_> = again.iter().map(|job| job.receipt.job).collect();
    assert_eq!(order, [first[1], first[2], first[0]]);
    assert_eq!(again[0].receipt.claim_slot, Slot::LEASED);
    place.end(&again[1..], handed_back).await;
    let dead = place.enqueue(&[job().with_priority(Priority::new(1).unwrap())]).await;
    let last = place.claim(1).await;
    // Carried rows of its lane do not stand before a more urgent lane.
    assert_eq!(last[0].receipt.job, dead[0]);
    place.end(&last, AttemptEnd::Fail { error: error() }).await;
    place.enqueue(&[job().with_run_at(RunAt::After(HOUR))]).await;
    let key = UniqueBy::text("once").key_of(&job()).unwrap();
    place.enqueue(&[job().with_unique(Unique::new(key))]).await;
    assert_eq!(place.number("SELECT count(*) FROM awa.carried_entries").await, 2);
    (again[0].clone(), claimed[3].clone())
}

/// What a store does with those jobs from then on: the lease is handed back and stands in front, then all is taken in order.
async fn go_on(place: &Place, lease: &ClaimedJob, claim: &ClaimedJob) -> Vec<JobId> {
    let handed_back = AttemptEnd::Release { delay: Duration::ZERO };
    assert_eq!(place.end(std::slice::from_ref(lease), handed_back).await, [ClosureAnswer::Closed]);
    assert_eq!(place.end(std::slice::from_ref(lease), AttemptEnd::Complete).await, [ClosureAnswer::Stale]);
    assert_eq!(place.end(std::slice::from_ref(claim), AttemptEnd::Complete).await, [ClosureAnswer::Closed]);
    let mut taken = Vec::new();
    loop {
        let jobs = place.claim(3).await;
        if jobs.is_empty() {
            return taken;
        }
        let answers = place.end(&jobs, AttemptEnd::Complete).await;
        assert!(answers.iter().all(|answer| *answer == ClosureAnswer::Closed), "{answers:?}");
        taken.extend(jobs.iter().map(|job| job.receipt.job));
    }
}

#[tokio::test]
async fn jobs_outside_the_rings_keep_their_order_and_leases_end_as_ever() {
    let source = Place::used().await;
    let (lease, claim) = live_outside_the_rings(&source).await;
    let before = source.store.census().await.unwrap();
    let target = source.carried().await;
    // The rings of the dump are later than its pointers say.
    target
        .run("SELECT setval('awa.lease_ring_pointer', (last_value / 64 + 2) * 64 + 1) FROM awa.lease_ring_pointer")
        .await;
    assert_names_the_command(target.store.check_ready().await);
    assert_eq!(target.worst().await, Severity::Critical);
    let repaired = target.store.repair().await.unwrap();
    assert_eq!(repaired.reopened, [RingKind::Lease, RingKind::Queue], "{repaired}");
    assert_eq!(repaired.renumbered_jobs, 3, "two that were carried over and a lease: {repaired}");
    target.store.check_ready().await.unwrap();
    assert!(target.worst().await < Severity::Critical);
    assert_eq!(target.store.census().await.unwrap(), before);
    let future = "SELECT count(*) FROM (SELECT xid FROM awa.carried_entries UNION ALL SELECT xid FROM awa.leases) AS k
                  WHERE k.xid >= pg_snapshot_xmin(pg_current_snapshot())";
    assert_eq!(target.number(future).await, 0);
    // A key is held as before.
    let key = UniqueBy::text("once").key_of(&job()).unwrap();
    let duplicate = target.store.enqueue(&[job().with_unique(Unique::new(key))]).await.unwrap();
    assert!(matches!(duplicate[0], Enqueued::Duplicate(_)), "{duplicate:?}");

    assert_eq!(go_on(&target, &lease, &claim).await, go_on(&source, &lease, &claim).await);
    target.clock.advance(2 * HOUR);
    target.store.promote(10).await.unwrap();
    let deferred = target.claim(10).await;
    assert_eq!(deferred.len(), 1);
    target.end(&deferred, AttemptEnd::Complete).await;
    target.reclaim_all().await;
    assert_eq!(target.busy().await, 0, "everything drains");
    assert_eq!(target.store.repair().await.unwrap().to_string(), "schema \"awa\": nothing to repair");
}

/// The rows of another cluster in a schema that was set up here: its functions know this cluster, its rows do not.
#[tokio::test]
async fn a_restore_of_data_alone_is_recognised_and_repaired() {
    let source = Place::used().await;
    let (lease, claim) = live_outside_the_rings(&source).await;
    let before = source.store.census().await.unwrap();
    let target = Place::empty(&source.clock).await;
    target.store.prepare_schema().await.unwrap();
    target
        .run(
            "DO $$ BEGIN EXECUTE (SELECT 'TRUNCATE ' || string_agg(c.oid::regclass::text, ', ') FROM pg_class AS c
             WHERE c.relnamespace = 'awa'::regnamespace AND c.relkind = 'r'); END $$",
        )
        .await;
    let (from, into) = (Arc::clone(&source.cluster), Arc::clone(&target.cluster));
    let carry = move || {
        let mut dump = Command::new(from.bin("pg_dump").unwrap());
        let dump = dump.args(["--data-only", "--dbname"]).arg(from.url("postgres")).output().unwrap();
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        into.psql("postgres", &String::from_utf8(dump.stdout).unwrap()).unwrap();
    };
    tokio::task::spawn_blocking(carry).await.unwrap();
    assert_names_the_command(target.store.check_ready().await);
    assert_eq!(target.worst().await, Severity::Critical);
    // An upgrade on the way does not hide it.
    target.run("DELETE FROM awa.objects").await;
    target.store.prepare_schema().await.unwrap();
    assert_names_the_command(target.store.check_ready().await);
    let repaired = target.store.repair().await.unwrap();
    assert!(repaired.was_carried && repaired.renumbered_jobs == 3, "{repaired}");
    target.store.check_ready().await.unwrap();
    assert_eq!(target.store.census().await.unwrap(), before);
    assert_eq!(go_on(&target, &lease, &claim).await, go_on(&source, &lease, &claim).await);
}
