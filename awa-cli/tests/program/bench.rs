//! `awa bench`, tiny: the shape of its answer, and that its counts add up.

use serde_json::Value;

use crate::awa::{Awa, empty_database};

const FIELDS: [&str; 20] = [
    "scenario",
    "variant",
    "jobs",
    "lost",
    "seconds",
    "jobs_per_s",
    "enqueue_ms",
    "start_ms",
    "done_ms",
    "claim_ms",
    "max_backlog",
    "wal_bytes_per_job",
    "commits_per_job",
    "statements_per_job",
    "rows_per_job",
    "dead_tuples_per_job",
    "statements_per_s",
    "server_cpu_s_per_1000_jobs",
    "worker_cpu_s_per_1000_jobs",
    "worker_max_rss_bytes",
];

const TINY: [&str; 8] = ["--jobs", "300", "--duration", "30s", "--bulk", "50", "--rate", "2000"];

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn number(result: &Value, field: &str) -> f64 {
    result[field].as_f64().unwrap_or_else(|| panic!("{field} in {result}"))
}

#[track_caller]
fn assert_quantiles(result: &Value, field: &str) {
    let ms = &result[field];
    let [p50, p95, p99, max] = ["p50", "p95", "p99", "max"].map(|name| number(ms, name));
    assert!(0.0 <= p50 && p50 <= p95 && p95 <= p99 && p99 <= max && max > 0.0, "{field} in {result}");
}

/// What holds for every result: its shape, nothing lost, and all jobs that were asked for.
#[track_caller]
fn assert_adds_up(result: &Value, jobs: u64) {
    let mut expected = FIELDS;
    expected.sort_unstable();
    assert_eq!(names(result), expected);
    assert_eq!((&result["jobs"], &result["lost"]), (&jobs.into(), &0.into()), "{result}");
    let (seconds, per_s) = (number(result, "seconds"), number(result, "jobs_per_s"));
    assert!((per_s * seconds - jobs as f64).abs() < 0.01 * jobs as f64, "{result}");
    assert!(number(result, "worker_cpu_s_per_1000_jobs") > 0.0, "{result}");
}

fn results(report: &Value) -> Vec<&Value> {
    report["results"].as_array().unwrap().iter().collect()
}

fn of<'r>(report: &'r Value, scenario: &str) -> Vec<&'r Value> {
    results(report).into_iter().filter(|result| result["scenario"] == scenario).collect()
}

fn variants<'r>(report: &'r Value, scenario: &str) -> Vec<&'r str> {
    of(report, scenario).into_iter().map(|result| result["variant"].as_str().unwrap()).collect()
}

/// The scenarios of jobs that run, with what each must tell besides.
#[track_caller]
fn assert_run(report: &Value, jobs: u64) {
    for result in results(report) {
        assert_adds_up(result, jobs);
    }
    for scenario in ["steady", "saturate"] {
        let [result] = of(report, scenario)[..] else { panic!("not one {scenario} in {report}") };
        for field in ["enqueue_ms", "start_ms", "done_ms"] {
            assert_quantiles(result, field);
        }
        let (start, done) = (&result["start_ms"], &result["done_ms"]);
        assert!(number(start, "p50") <= number(done, "p50"), "a job starts before it is done: {result}");
    }
    let [saturate] = of(report, "saturate")[..] else { panic!("not one saturate in {report}") };
    assert!(saturate["max_backlog"].is_u64(), "{saturate}");
    let [drain] = of(report, "drain")[..] else { panic!("not one drain in {report}") };
    assert!(drain["start_ms"].is_null() && drain["done_ms"].is_null(), "{drain}");
    assert_eq!(variants(report, "enqueue-single"), ["1 connection", "16 connections"]);
    assert_eq!(variants(report, "open-tx"), ["nothing open", "transaction open"]);
    assert_eq!(of(report, "enqueue-bulk").len(), 1);
}

#[test]
fn in_memory_every_job_is_counted_and_the_server_is_not() {
    let report = Awa::alone().json(&[&["bench", "--store", "memory"][..], &TINY].concat());
    assert_run(&report, 300);
    assert_eq!(
        (&report["store"], &report["driver"], &report["settings"]),
        (&"memory".into(), &Value::Null, &Value::Null)
    );
    for result in results(&report) {
        for field in &FIELDS[11..18] {
            assert!(result[field].is_null(), "{field} in {result}");
        }
    }
}

#[test]
fn in_a_given_database_every_job_is_counted_and_nothing_is_left_behind() {
    let database = empty_database();
    let report = Awa::on(database.url()).json(&[&["bench"][..], &TINY].concat());
    assert_run(&report, 300);
    assert_eq!((&report["store"], &report["driver"]), (&"postgres".into(), &"sqlx".into()));
    assert_eq!(report["throw_away"], false);
    assert!(report["settings"]["fsync"].is_string(), "{report}");
    for result in results(&report) {
        assert!(number(result, "wal_bytes_per_job") > 10.0, "{result}");
        assert!(result["server_cpu_s_per_1000_jobs"].is_null(), "the processes of the server are not ours: {result}");
    }
    let [bulk] = of(&report, "enqueue-bulk")[..] else { panic!("not one enqueue-bulk in {report}") };
    // A row per job, and a few per batch and lane.
    assert!((1.0..1.5).contains(&number(bulk, "rows_per_job")), "{bulk}");
    let [single, _] = of(&report, "enqueue-single")[..] else { panic!("not two enqueue-single in {report}") };
    assert!((1.0..2.0).contains(&number(single, "commits_per_job")), "{single}");
    let schemas = database.psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'awa%'").unwrap();
    assert_eq!(schemas, "0");
}

#[test]
fn beside_a_snapshot_every_job_is_done() {
    let database = empty_database();
    let report = Awa::on(database.url()).json(&[&["bench", "pinned"][..], &TINY].concat());
    let expected =
        ["2000/s, nothing open", "2000/s, snapshot open", "saturate, nothing open", "saturate, snapshot open"];
    assert_eq!(variants(&report, "pinned"), expected);
    for result in results(&report) {
        assert_adds_up(result, 300);
        assert_quantiles(result, "done_ms");
    }
    Awa::alone().run(["bench", "pinned", "--store", "memory"]).failed(2, &["snapshots"]);
}

#[test]
fn claims_beside_a_backlog_are_timed() {
    let arguments = ["bench", "backlog", "--waiting", "300", "--waiting", "2000", "--bulk", "100"];
    let database = empty_database();
    for report in [
        Awa::on(database.url()).json(&arguments),
        Awa::alone().json(&[&arguments[..], &["--store", "memory"]].concat()),
    ] {
        assert_eq!(variants(&report, "backlog"), ["300 waiting", "2000 waiting"]);
        // One claim of a hundred jobs, so that the half is left; and ten.
        for (result, claimed) in results(&report).into_iter().zip([100, 1_000]) {
            assert_adds_up(result, claimed);
            assert_quantiles(result, "claim_ms");
        }
    }
}

#[test]
fn of_many_queues_those_with_jobs_are_served_and_the_idle_ones_cost_statements() {
    let database = empty_database();
    let arguments = ["bench", "queues", "--queues", "150", "--duration", "2s", "--rate", "100"];
    let report = Awa::on(database.url()).json(&arguments);
    assert_eq!(variants(&report, "queues"), ["idle", "1 % busy"]);
    let [idle, busy] = results(&report)[..] else { panic!("not two results in {report}") };
    assert_eq!((&idle["jobs"], &idle["lost"], &idle["wal_bytes_per_job"]), (&0.into(), &0.into(), &Value::Null));
    assert!(number(idle, "seconds") >= 2.0, "{idle}");
    assert_adds_up(busy, 200);
    assert_quantiles(busy, "start_ms");
}

#[test]
fn the_ramp_ends_when_its_time_is_over() {
    let database = empty_database();
    // No machine does a million jobs in a second, and so none does 20,000 in the twenty milliseconds of a step.
    let arguments = ["bench", "ramp", "--jobs", "20000", "--duration", "20ms"];
    let report = Awa::on(database.url()).json(&arguments);
    let handlers = ["1 handler", "4 handlers", "16 handlers", "64 handlers", "256 handlers", "1024 handlers"];
    assert_eq!(variants(&report, "ramp"), handlers);
    for result in results(&report) {
        let jobs = result["jobs"].as_u64().unwrap();
        assert!(jobs <= 20_000 && number(result, "seconds") < 30.0, "{result}");
        assert_eq!(result["lost"], 0, "{result}");
    }
    assert!(
        results(&report)[0]["jobs"].as_u64().unwrap() < 20_000,
        "the step ended with its jobs, not with its time: {report}"
    );
}

#[test]
fn through_diesel_and_several_workers_every_job_is_counted() {
    let database = empty_database();
    let arguments = [&["bench", "drain", "saturate", "--driver", "diesel", "--workers", "3"][..], &TINY].concat();
    let report = Awa::on(database.url()).json(&arguments);
    assert_eq!((&report["driver"], &report["options"]["workers"]), (&"diesel".into(), &3.into()));
    assert_eq!(results(&report).len(), 2);
    for result in results(&report) {
        assert_adds_up(result, 300);
    }
}

#[test]
fn a_throw_away_server_keeps_its_care_for_durability_and_its_processes_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("latency.svg");
    let arguments = ["bench", "saturate", "--server-setting", "max_wal_size=2GB", "--plot", plot.to_str().unwrap()];
    let report = Awa::alone().json(&[&arguments[..], &TINY].concat());
    assert_eq!((&report["throw_away"], &report["settings"]["fsync"]), (&true.into(), &"on".into()));
    for (setting, value) in [("synchronous_commit", "on"), ("full_page_writes", "on"), ("max_wal_size", "2GB")] {
        assert_eq!(report["settings"][setting], value, "{setting}");
    }
    let [result] = results(&report)[..] else { panic!("not one result in {report}") };
    assert_adds_up(result, 300);
    assert!(number(result, "server_cpu_s_per_1000_jobs") > 0.0, "{result}");
    assert!(number(result, "worker_max_rss_bytes") > 1e6, "{result}");
    let svg = std::fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("saturate"), "{svg}");
}

#[test]
fn the_tables_name_each_result_with_its_numbers() {
    let arguments = [&["bench", "drain", "enqueue-bulk", "--store", "memory"][..], &TINY].concat();
    let ended = Awa::alone().run(arguments).ok();
    for word in ["jobs/s", "drain", "enqueue-bulk", "RSS MiB"] {
        assert!(ended.stdout.contains(word), "{word} in {}", ended.stdout);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_name() {
    for (arguments, words) in [
        (&["bench", "fly"][..], &["fly"][..]),
        (&["bench", "--jobs", "0"], &["--jobs"]),
        (&["bench", "--payload", "5"], &["--payload"]),
        (&["bench", "--server-setting", "fsync"], &["NAME=VALUE"]),
    ] {
        Awa::alone().run(arguments).failed(2, words);
    }
    let given = Awa::on("postgres://127.0.0.1:1/none");
    given.run(["bench", "--server-setting", "fsync=off"]).failed(2, &["DATABASE_URL"]);
}
