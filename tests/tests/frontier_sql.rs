//! The frontier in SQL against the frontier of `awa-core`, on random inputs: both must say the same of every row.

use awa_core::frontier::{Frontier, Probe, RowKey, Snapshot, Stop};
use awa_core::id::{JobId, Xid};
use awa_tests::postgres::FreshStore;
use awa_tests::seed::Seed;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

const CASES: usize = 800;
/// Job ids of the rows that are looked at; ids start at 1.
const JOBS: [i64; 4] = [1, 2, 3, 900];

/// One random frontier, the snapshot of a claim, and where it stopped.
struct Case {
    frontier: Frontier,
    snapshot: Snapshot,
    stop: Stop,
    /// Transactions around everything that the two name.
    xids: Vec<Xid>,
}

impl Case {
    fn random(seed: &mut Seed) -> Self {
        // Small numbers make the two meet; large ones must not be cut to 32 bits.
        let base = *seed.pick(&[1, 1, 700, (1 << 32) - 30, (1 << 40) + 5]);
        let width = 1 + seed.below(14);
        let (seen, snapshot) = (random_snapshot(seed, base, width), random_snapshot(seed, base, width));
        let mut parts: Vec<RowKey> = Vec::new();
        for xid in seen.running() {
            if seed.one_in(2) {
                parts.push(RowKey::new(*xid, JobId(*seed.pick(&JOBS))));
            }
        }
        let frontier = Frontier::from_stored(seen, parts).expect("parts are of running transactions");
        let xids: Vec<Xid> = (base.saturating_sub(2).max(1)..base + width + 3).map(Xid).collect();
        let rows = rows(&xids);
        let candidates: Vec<RowKey> =
            rows.into_iter().filter(|row| snapshot.sees(row.xid) && !frontier.passed(*row)).collect();
        let stop =
            if candidates.is_empty() || seed.one_in(3) { Stop::Exhausted } else { Stop::At(*seed.pick(&candidates)) };
        Self { frontier, snapshot, stop, xids }
    }
}

fn random_snapshot(seed: &mut Seed, base: u64, width: u64) -> Snapshot {
    if seed.one_in(12) {
        return Snapshot::empty();
    }
    let xmax = base + seed.below(width + 1);
    let running = (base..xmax).filter(|_| seed.one_in(3)).map(Xid).collect::<Vec<_>>();
    let own = seed.one_in(3).then(|| Xid(base + seed.below(width)));
    Snapshot::of(Xid(xmax.max(1)), running, own)
}

/// All rows of some transactions, in order.
fn rows(xids: &[Xid]) -> Vec<RowKey> {
    xids.iter().flat_map(|xid| JOBS.map(|job| RowKey::new(*xid, JobId(job)))).collect()
}

/// The arguments that every function of the frontier begins with: `seen`, `part_xids`, `part_jobs` as SQL literals.
fn stored(frontier: &Frontier) -> String {
    let (xids, jobs): (Vec<String>, Vec<String>) =
        frontier.parts().iter().map(|part| (part.xid.to_string(), part.job.to_string())).unzip();
    if xids.is_empty() {
        return format!("'{}'::pg_snapshot, NULL::xid8[], NULL::bigint[]", frontier.seen());
    }
    format!("'{}'::pg_snapshot, '{{{}}}'::xid8[], '{{{}}}'::bigint[]", frontier.seen(), xids.join(","), jobs.join(","))
}

/// A piece as the SQL function gives it, without pieces that can hold no row.
fn piece(probe: Probe, snapshot: &Snapshot) -> (u64, i64, u64) {
    match probe {
        Probe::Member { xid, after } => (xid.0, after.map_or(0, |job| job.0), xid.0 + 1),
        Probe::Span { from, until } => (from.0, 0, until.0),
        Probe::Tail { from } => (from.0, 0, snapshot.xmax().0),
    }
}

async fn pieces_in_sql(connection: &mut PgConnection, case: &Case) -> Vec<(u64, i64, u64)> {
    let sql = format!(
        "SELECT p.lo::text::bigint, p.lo_job, p.hi::text::bigint FROM awa.frontier_probes({}, '{}'::pg_snapshot) AS p",
        stored(&case.frontier),
        case.snapshot
    );
    let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap();
    let pieces = rows.iter().map(|row| {
        let (lo, job, hi) = (row.get::<i64, _>(0) as u64, row.get::<i64, _>(1), row.get::<i64, _>(2) as u64);
        // Behind the last possible job of a transaction begins the next one.
        if job == i64::MAX { (lo + 1, 0, hi) } else { (lo, job, hi) }
    });
    pieces.filter(|(lo, _, hi)| lo < hi).collect()
}

async fn after_in_sql(connection: &mut PgConnection, case: &Case) -> Frontier {
    let stop = match case.stop {
        Stop::Exhausted => "NULL::xid8, NULL::bigint".to_owned(),
        Stop::At(row) => format!("'{}'::xid8, {}", row.xid, row.job),
    };
    let sql = format!(
        "SELECT f.seen::text, f.part_xids::text[], f.part_jobs FROM awa.frontier_after({}, '{}'::pg_snapshot, {stop}) AS f",
        stored(&case.frontier),
        case.snapshot
    );
    let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(connection).await.unwrap();
    let xids = row.get::<Option<Vec<String>>, _>(1).unwrap_or_default();
    let jobs = row.get::<Option<Vec<i64>>, _>(2).unwrap_or_default();
    assert_eq!(xids.len(), jobs.len());
    let parts = xids.iter().zip(jobs).map(|(xid, job)| RowKey::new(Xid(xid.parse().unwrap()), JobId(job))).collect();
    Frontier::from_stored(row.get::<String, _>(0).parse().unwrap(), parts)
        .expect("SQL stores frontiers that make sense")
}

async fn passed_in_sql(connection: &mut PgConnection, frontier: &Frontier, rows: &[RowKey]) -> Vec<bool> {
    let values: Vec<String> = rows.iter().map(|row| format!("('{}'::xid8, {}::bigint)", row.xid, row.job)).collect();
    let sql = format!(
        "SELECT awa.is_passed({}, r.xid, r.job) FROM (VALUES {}) AS r (xid, job)",
        stored(frontier),
        values.join(", ")
    );
    let answers = sqlx::query(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap();
    answers.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn sql_and_core_agree_on_where_to_look_what_is_passed_and_how_a_frontier_moves() {
    let fresh = FreshStore::with_server_clock().await;
    let mut connection = PgConnection::connect(&fresh.database.url()).await.unwrap();
    let mut seed = Seed::announced();
    for number in 0..CASES {
        let case = Case::random(&mut seed);
        let label = format!("case {number}: {:?} under {:?} to {:?}", case.frontier, case.snapshot, case.stop);
        let expected: Vec<_> =
            case.frontier.candidates(&case.snapshot).into_iter().map(|probe| piece(probe, &case.snapshot)).collect();
        assert_eq!(pieces_in_sql(&mut connection, &case).await, expected, "where to look, {label}");

        let after = case.frontier.advance(&case.snapshot, case.stop);
        assert_eq!(after_in_sql(&mut connection, &case).await, after, "the frontier after, {label}");

        let rows = rows(&case.xids);
        for frontier in [&case.frontier, &after] {
            let expected: Vec<bool> = rows.iter().map(|row| frontier.passed(*row)).collect();
            assert_eq!(passed_in_sql(&mut connection, frontier, &rows).await, expected, "{frontier:?} passed, {label}");
        }
    }
    let nothing: bool =
        sqlx::query("SELECT awa.is_passed(NULL, NULL, NULL, '5', 1)").fetch_one(&mut connection).await.unwrap().get(0);
    assert!(!nothing, "a lane that nobody has looked at has passed nothing");
}

/// A snapshot that ends at the first number of an epoch does not parse: a claim that stopped at the last transaction of
/// an epoch failed, and its lane with it.
#[tokio::test]
async fn a_claim_may_stop_at_the_last_transaction_of_an_epoch() {
    let fresh = FreshStore::with_server_clock().await;
    let mut connection = PgConnection::connect(&fresh.database.url()).await.unwrap();
    for last in [(1_u64 << 32) - 1, (1 << 40) - 1] {
        let frontier = Frontier::from_stored(Snapshot::of(Xid(last - 9), [], None), Vec::new()).unwrap();
        let snapshot = Snapshot::of(Xid(last + 9), [Xid(last - 1)], None);
        let stop = RowKey::new(Xid(last), JobId(7));
        let case = Case { frontier, snapshot, stop: Stop::At(stop), xids: Vec::new() };
        let after = after_in_sql(&mut connection, &case).await;
        let (first, real) = (RowKey::new(Xid(last - 1), JobId(1)), RowKey::new(Xid(last + 4), JobId(1)));
        assert!(after.passed(stop) && !after.passed(RowKey::new(Xid(last), JobId(8))));
        assert!(!after.passed(first) && !after.passed(real));
        // What is left comes again, in order: the rest of the stop, and the first transaction of the next epoch.
        let rest = Case {
            frontier: after,
            snapshot: Snapshot::of(Xid(last + 9), [], None),
            stop: Stop::Exhausted,
            xids: Vec::new(),
        };
        let pieces = pieces_in_sql(&mut connection, &rest).await;
        let covered =
            |row: RowKey| pieces.iter().any(|(lo, job, hi)| (*lo, *job) < (row.xid.0, row.job.0) && row.xid.0 < *hi);
        assert!(
            covered(first) && covered(real) && covered(RowKey::new(Xid(last), JobId(8))) && !covered(stop),
            "{pieces:?}"
        );
    }
}

/// F1: PostgreSQL leaves the caller's own transaction out of its snapshot, and every stored snapshot must put it back.
#[tokio::test]
async fn the_own_snapshot_is_the_current_one_with_the_own_transaction_running() {
    let fresh = FreshStore::with_server_clock().await;
    let url = fresh.database.url();
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push((PgConnection::connect(&url).await.unwrap(), false));
    }
    let mut me = PgConnection::connect(&url).await.unwrap();
    let (mut seed, mut i_write, mut own_was_hidden) = (Seed::announced(), false, 0);
    let run = async |connection: &mut PgConnection, sql: &str| {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
    };
    run(&mut me, "BEGIN").await;
    for _ in 0..300 {
        match seed.below(8) {
            0 => {
                run(&mut me, "COMMIT; BEGIN").await;
                i_write = false;
            }
            1 if !i_write => {
                run(&mut me, "SELECT pg_current_xact_id()").await;
                i_write = true;
            }
            step => {
                let other = seed.below(others.len() as u64) as usize;
                let (connection, is_open) = &mut others[other];
                let sql = match (*is_open, step % 2) {
                    (false, _) => "BEGIN; SELECT pg_current_xact_id()",
                    (true, 0) => "COMMIT",
                    (true, _) => "ROLLBACK",
                };
                run(connection, sql).await;
                *is_open = !*is_open;
            }
        }
        let row = look_while_nothing_ends(&mut me).await;
        let current: Snapshot = row.get::<String, _>(0).parse().unwrap();
        let own = row.get::<Option<String>, _>(1).map(|xid| Xid(xid.parse().unwrap()));
        own_was_hidden += usize::from(own.is_some_and(|own| current.sees(own)));
        let expected = Snapshot::of(current.xmax(), current.running().iter().copied(), own);
        assert_eq!(row.get::<String, _>(2), expected.to_string(), "from {current:?}, own {own:?}");
    }
    println!("in {own_was_hidden} of 300 snapshots the own transaction looked finished");
    assert!(own_was_hidden > 0, "the hazard that this test is about must have occurred");
}

/// The statement's snapshot, the own transaction and `own_snapshot()`, all of one moment. Transaction numbers belong to
/// the whole cluster, whose other databases go on, and the function sees the moment of its call: no snapshot ever comes
/// back once it has changed, so that equal ones before and after say that nothing ended in between.
async fn look_while_nothing_ends(me: &mut PgConnection) -> PgRow {
    let looked = "SELECT pg_current_snapshot()::text, pg_current_xact_id_if_assigned()::text, awa.own_snapshot()::text";
    for _ in 0..1_000 {
        let row = sqlx::query(looked).fetch_one(&mut *me).await.unwrap();
        let after: String = sqlx::query_scalar("SELECT pg_current_snapshot()::text").fetch_one(&mut *me).await.unwrap();
        if after == row.get::<String, _>(0) {
            return row;
        }
    }
    panic!("other transactions of the cluster ended during each of 1000 looks");
}
