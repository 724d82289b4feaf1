//! Runs the program.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use awa_pg::cluster::{TestDatabase, TestServer};
use serde_json::Value;

/// How long anything may take that a test waits for; reached only when the test fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// The program with some surroundings.
pub(crate) struct Awa {
    environment: Vec<(&'static str, String)>,
}

/// How one run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Awa {
    /// Without any database.
    pub(crate) fn alone() -> Self {
        Self { environment: Vec::new() }
    }

    /// With a database given by the variable.
    pub(crate) fn on(url: impl Into<String>) -> Self {
        Self { environment: vec![("DATABASE_URL", url.into())] }
    }

    /// With a further variable.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Runs it to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ended {
        self.run_with_input(arguments, b"")
    }

    /// Runs it to its end with an input.
    pub(crate) fn run_with_input<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Ended {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            // A program that refuses its command line does not read its input.
            scope.spawn(move || drop(stdin.write_all(input)));
            child.wait_with_output().unwrap()
        });
        output.into()
    }

    /// Starts it and lets it run.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Running {
        Running(Some(self.command(arguments).spawn().unwrap()))
    }

    /// The answer of a run with `--json`, which must end well.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.run(arguments.iter().chain(&["--json"])).ok().json()
    }

    /// The answer of a command that is repeated until `is_wanted`.
    pub(crate) fn json_until(&self, arguments: &[&str], is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.json(arguments);
            if is_wanted(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "awa {arguments:?} still answers {answer}");
            sleep(Duration::from_millis(50));
        }
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_awa"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("PG") || name == "DATABASE_URL" || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value))).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Ended {
    /// It ended well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// It failed with this code, and said something of all of `words` on standard error.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is missing in: {}", self.stderr);
        }
        self
    }

    /// Its answer.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "more than one line: {}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// A run that goes on; killed when dropped.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Tells it to stop, as `kill` does, and waits for its end.
    pub(crate) fn stop(mut self) -> Ended {
        let child = self.0.take().unwrap();
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        child.wait_with_output().unwrap().into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// An empty database.
pub(crate) fn empty_database() -> TestDatabase {
    TestServer::shared().unwrap().empty_database().unwrap()
}

/// The program on a database of its own with Awa's schema in it.
pub(crate) fn migrated() -> (Awa, TestDatabase) {
    let database = empty_database();
    let awa = Awa::on(database.url());
    awa.run(["migrate"]).ok();
    (awa, database)
}
