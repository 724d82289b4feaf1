//! Throw-away servers live as long as their users and not longer, however those end.
//!
//! The tests that need another process run this test program again, with [`ROLE`] telling it what to be.

#![cfg(feature = "cluster")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use awa_pg::cluster::{Cluster, ClusterOptions, Durability, TestServer};

/// The variable that makes a test of this program play another process.
const ROLE: &str = "AWA_PG_TEST_ROLE";

fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// This program, to run only the test `name` in the given role.
fn again(name: &str, role: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

/// Lines of the form `key=value` that a process prints, up to and including the key `last`.
fn told_by(child: &mut Child, last: &str) -> Vec<(String, String)> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut told = Vec::new();
    for pair in lines.filter_map(|line| line.split_once('=').map(owned)) {
        let is_last = pair.0 == last;
        told.push(pair);
        if is_last {
            break;
        }
    }
    told
}

/// The lines of the form `key=value` in what a process printed.
fn told_in(output: &[u8]) -> Vec<(String, String)> {
    String::from_utf8_lossy(output).lines().filter_map(|line| line.split_once('=')).map(owned).collect()
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn value<'t>(told: &'t [(String, String)], key: &str) -> &'t str {
    &told.iter().find(|(known, _)| known == key).unwrap_or_else(|| panic!("{key} is missing in {told:?}")).1
}

/// Waits for something that another process does and does not announce.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within 30 seconds");
        thread::sleep(Duration::from_millis(20));
    }
}

fn relaxed() -> ClusterOptions {
    ClusterOptions { durability: Durability::Relaxed, ..ClusterOptions::default() }
}

fn is_running(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_server_answers_restarts_survives_a_kill_and_vanishes_when_dropped() {
    let cluster = Cluster::start(relaxed()).unwrap();
    cluster.create_database("first", None).unwrap();
    cluster.psql("first", "CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2);").unwrap();
    assert_eq!(cluster.psql("first", "SELECT n, n + 1 FROM t ORDER BY n;").unwrap(), "1|2\n2|3");

    cluster.create_database("second \"copy\"", Some("first")).unwrap();
    assert_eq!(cluster.psql("second \"copy\"", "SELECT count(*) FROM t;").unwrap(), "2");

    let failure = cluster.psql("first", "SELECT 1;\nSELECT nonsense;").unwrap_err().to_string();
    assert!(failure.contains("psql failed") && failure.contains("nonsense"), "{failure}");

    let settings = "SELECT string_agg(current_setting(name), ',' ORDER BY place) FROM unnest(ARRAY['fsync', \
                    'synchronous_commit', 'max_connections', 'max_prepared_transactions', 'server_encoding', \
                    'listen_addresses']) WITH ORDINALITY AS s (name, place);";
    assert_eq!(cluster.psql("first", settings).unwrap(), "off,on,200,20,UTF8,127.0.0.1");
    let version = cluster.psql("first", "SHOW server_version;").unwrap();
    assert!(version.starts_with(&cluster.version().major.to_string()), "{version}");
    assert!(cluster.bin("pg_dump").unwrap().is_file());
    assert!(cluster.url("first").ends_with(&format!("@127.0.0.1:{}/first", cluster.port())));
    assert!(cluster.socket_folder().join(format!(".s.PGSQL.{}", cluster.port())).exists());

    let before = cluster.postmaster_pid();
    cluster.restart().unwrap();
    assert_ne!(cluster.postmaster_pid(), before);
    assert!(!is_running(before));
    assert_eq!(cluster.psql("first", "SELECT count(*) FROM t;").unwrap(), "2");

    cluster.kill9();
    assert!(!is_running(cluster.postmaster_pid()));
    assert!(cluster.psql("first", "SELECT 1;").is_err());
    cluster.restart().unwrap();
    assert_eq!(cluster.psql("first", "SELECT count(*) FROM t;").unwrap(), "2");

    let (pid, folder) = (cluster.postmaster_pid(), cluster.folder().to_owned());
    drop(cluster);
    assert!(!is_running(pid));
    assert!(!folder.exists());
}

#[test]
fn a_kill_under_load_loses_no_commit_and_leaves_no_process() {
    let cluster = Cluster::start(ClusterOptions::default()).unwrap();
    cluster.psql("postgres", "CREATE TABLE t (n int); INSERT INTO t VALUES (1);").unwrap();
    let folder = cluster.folder().join("data");
    let members = || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == folder)).count()
    };
    thread::scope(|scope| {
        let busy = scope.spawn(|| cluster.psql("postgres", "SELECT pg_sleep(600);"));
        let busy_backend =
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active';";
        eventually("a session is busy", || cluster.psql("postgres", busy_backend).unwrap() == "1");
        cluster.kill9();
        assert_eq!(members(), 0);
        assert!(busy.join().unwrap().is_err());
    });
    cluster.restart().unwrap();
    assert_eq!(cluster.psql("postgres", "SELECT n FROM t;").unwrap(), "1");
}

#[test]
fn a_server_vanishes_when_its_owner_is_killed() {
    const NAME: &str = "a_server_vanishes_when_its_owner_is_killed";
    if role().is_some() {
        let cluster = Cluster::start(relaxed()).unwrap();
        println!("\npid={}\nfolder={}", cluster.postmaster_pid(), cluster.folder().display());
        loop {
            thread::park();
        }
    }
    let mut owner = again(NAME, "owner").stdout(Stdio::piped()).spawn().unwrap();
    let told = told_by(&mut owner, "folder");
    let (pid, folder) = (value(&told, "pid").parse().unwrap(), Path::new(value(&told, "folder")));
    assert!(is_running(pid) && folder.is_dir());
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the server is gone", || !is_running(pid));
    eventually("the folder is gone", || !folder.exists());
}

#[test]
fn a_server_vanishes_when_its_owner_is_killed_after_a_crash_of_the_server() {
    const NAME: &str = "a_server_vanishes_when_its_owner_is_killed_after_a_crash_of_the_server";
    if role().is_some() {
        let cluster = Cluster::start(relaxed()).unwrap();
        cluster.kill9();
        println!("\nfolder={}", cluster.folder().display());
        loop {
            thread::park();
        }
    }
    let mut owner = again(NAME, "owner").stdout(Stdio::piped()).spawn().unwrap();
    let told = told_by(&mut owner, "folder");
    let folder = Path::new(value(&told, "folder"));
    assert!(folder.join("data/postmaster.pid").exists(), "the crash left the stale process id behind");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the folder is gone", || !folder.exists());
}

/// Takes a database of the shared server as a test would, and tells what it saw.
fn use_shared_server() {
    let mut prepared = false;
    let server = TestServer::shared().unwrap();
    let database = server
        .database("numbers", |url| {
            prepared = true;
            let name = url.rsplit('/').next().unwrap();
            server.psql(name, "CREATE TABLE t AS SELECT 7 AS n;")?;
            Ok(())
        })
        .unwrap();
    let rows = database.psql("UPDATE t SET n = n + 1; SELECT n FROM t;").unwrap();
    let data = database.psql("SHOW data_directory;").unwrap();
    let name = database.name().to_owned();
    drop(database);
    let left = server.psql("postgres", &format!("SELECT count(*) FROM pg_database WHERE datname = '{name}';"));
    println!("\nrows={rows}\nprepared={prepared}\nleft={}\ndata={data}\nserver={}", left.unwrap(), server.url("x"));
}

#[test]
fn processes_of_a_run_share_a_server_that_ends_after_them() {
    const NAME: &str = "processes_of_a_run_share_a_server_that_ends_after_them";
    if role().is_some() {
        return use_shared_server();
    }
    // The shell is the runner: when it has ended, nobody waits for further tests.
    let run = format!("test-{}", std::process::id());
    let output = Command::new("sh")
        .args(["-c", "\"$@\" & \"$@\" & \"$@\" & wait; exec \"$@\"", "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ROLE, "user")
        .env("NEXTEST_RUN_ID", &run)
        .env_remove("AWA_TEST_DATABASE_URL")
        .output()
        .unwrap();
    let told = told_in(&output.stdout);
    let all = |key: &str| -> Vec<&str> {
        told.iter().filter(|(known, _)| known == key).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(all("rows"), ["8"; 4], "{told:?} {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(all("left"), ["0"; 4]);
    let prepared = all("prepared");
    assert_eq!(prepared.iter().filter(|prepared| **prepared == "true").count(), 1, "{prepared:?}");
    let (mut servers, data) = (all("server"), all("data"));
    servers.dedup();
    assert_eq!(servers.len(), 1, "{servers:?}");

    let folder = Path::new(data[0]).parent().unwrap();
    eventually("the folder of the server is gone", || !folder.exists());
    let entry = entry_of(&run);
    eventually("the entry of the run is gone", || !entry.exists());
}

#[test]
fn a_killed_user_of_a_shared_server_does_not_keep_it() {
    const NAME: &str = "a_killed_user_of_a_shared_server_does_not_keep_it";
    if role().is_some() {
        use_shared_server();
        println!("pid={}", std::process::id());
        loop {
            thread::park();
        }
    }
    let run = format!("killed-{}", std::process::id());
    let mut runner = Command::new("sh")
        .args(["-c", "\"$@\"; exit 0", "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ROLE, "user")
        .env("NEXTEST_RUN_ID", &run)
        .env_remove("AWA_TEST_DATABASE_URL")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let told = told_by(&mut runner, "pid");
    let folder = Path::new(value(&told, "data")).parent().unwrap();
    assert!(folder.is_dir() && entry_of(&run).is_dir());
    assert!(Command::new("kill").args(["-9", value(&told, "pid")]).status().unwrap().success());
    runner.wait().unwrap();
    eventually("the folder of the server is gone", || !folder.exists());
    eventually("the entry of the run is gone", || !entry_of(&run).exists());
}

#[test]
fn a_server_named_by_the_environment_is_used_instead() {
    const NAME: &str = "a_server_named_by_the_environment_is_used_instead";
    if role().is_some() {
        return use_shared_server();
    }
    let cluster = Cluster::start(relaxed()).unwrap();
    let mut servers = Vec::new();
    for prepared in ["true", "false"] {
        let url = cluster.url("postgres");
        let output = again(NAME, "user").env("AWA_TEST_DATABASE_URL", url).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = told_in(&output.stdout);
        assert_eq!((value(&told, "rows"), value(&told, "prepared"), value(&told, "left")), ("8", prepared, "0"));
        servers.push(value(&told, "server").to_owned());
    }
    assert_eq!(servers, [cluster.url("x"), cluster.url("x")]);
}

/// The entry by which the processes of a run find their server.
fn entry_of(run: &str) -> PathBuf {
    let names = fs::read_dir(env::temp_dir()).unwrap().flatten().map(|entry| entry.path());
    let mut entries = names.filter(|path| path.to_string_lossy().ends_with(&format!("-{run}")));
    entries.next().unwrap_or_else(|| PathBuf::from("/nonexistent"))
}
