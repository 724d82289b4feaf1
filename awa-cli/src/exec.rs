//! Runs one job by a program: the job on its standard input, its exit code decides, its output is the result.

mod capture;
mod group;

use std::env;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use awa_core::ClaimedJob;
use awa_core::attempt::ErrorText;
use awa_runtime::{CancelCause, HandlerResult, Interrupted, JobContext, JobError, JobResult, Outcome};
use rustix::fs::{Access, access};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

use crate::failure::Failure;
use crate::shape::AttemptShape;
use capture::{Capture, Keep, result_text};
use group::Group;

/// How much of standard output is kept: the largest result, as large as a document of a job may be.
const MAX_RESULT_BYTES: usize = awa_core::json::DEFAULT_MAX_JSON_BYTES;
/// How much of the end of standard error is kept, so that it fits an error text with the exit code before it.
const MAX_ERROR_BYTES: usize = ErrorText::MAX_BYTES - 256;
/// How long the outputs of a program that has ended are waited for; a process that it left behind may keep them open.
const OUTPUT_LINGER: Duration = Duration::from_secs(1);

/// A program that runs jobs.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    timeout: Option<Duration>,
}

/// How one run of the program ended.
enum End {
    Exited(ExitStatus),
    TimedOut,
    /// Somebody else has ended the attempt.
    Cancelled,
}

impl Program {
    /// The program that `words` name, looked up as a shell does. A program that is not there is found out here and
    /// not by failing every job.
    pub(crate) fn find(words: Vec<OsString>, timeout: Option<Duration>) -> Result<Self, Failure> {
        let mut words = words.into_iter();
        let name = words.next().unwrap_or_default();
        let missing = || {
            Failure::new(format!(
                "there is no program {:?} that may be executed; check --exec, and chmod +x a script",
                name.to_string_lossy()
            ))
        };
        let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
        let named = Path::new(&name);
        let path = if named.components().count() > 1 {
            Some(named.to_owned()).filter(is_program)
        } else {
            let folders = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&folders).map(|folder| folder.join(named)).find(is_program)
        };
        Ok(Self { path: path.ok_or_else(missing)?, arguments: words.collect(), timeout })
    }

    /// Runs one attempt.
    pub(crate) async fn run(&self, job: &ClaimedJob, cx: &JobContext) -> HandlerResult {
        let mut input = serde_json::to_vec(&AttemptShape::from(job))?;
        input.push(b'\n');
        let mut child = self.start()?;
        // Dropping the group kills it: when the worker drops this future, no program goes on behind its back.
        let mut group = Group::of(&child);
        let outputs = (
            Capture::of(child.stdout.take(), Keep::First(MAX_RESULT_BYTES)),
            Capture::of(child.stderr.take(), Keep::Last(MAX_ERROR_BYTES)),
        );
        let feed = feed(child.stdin.take(), &input);
        let work = async {
            let ((), status) = tokio::join!(feed, child.wait());
            status
        };
        let end = tokio::select! {
            status = work => End::Exited(status?),
            () = over(self.timeout) => End::TimedOut,
            () = ended_elsewhere(cx) => End::Cancelled,
        };
        match end {
            End::Exited(_) => group.release(),
            End::TimedOut | End::Cancelled => group.end(&mut child).await,
        }
        let (stdout, stderr) = tokio::join!(outputs.0.finish(OUTPUT_LINGER), outputs.1.finish(OUTPUT_LINGER));
        match end {
            End::Cancelled => Err(Interrupted.into()),
            End::TimedOut => {
                let limit = self.timeout.unwrap_or_default();
                Err(failure(&format!("the program was ended after its time-out of {limit:?}"), &stderr))
            }
            End::Exited(status) if status.success() => Ok(match result_text(&stdout, MAX_RESULT_BYTES) {
                Some(text) => Outcome::DoneWith(JobResult::from(text)),
                None => Outcome::Done,
            }),
            End::Exited(status) => Err(failure(&describe(status), &stderr)),
        }
    }

    fn start(&self) -> Result<Child, JobError> {
        Command::new(&self.path)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: a signal from the terminal is for the worker, which gives the program its time.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| JobError::from(format!("the program {} did not start: {error}", self.path.display())))
    }
}

/// Gives the program its input. One that does not read it is free to do so.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    let Some(mut stdin) = stdin else { return };
    let _ = stdin.write_all(input).await;
}

async fn over(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Waits until the program's result is no longer wanted. At a shutdown it is, for the grace period.
async fn ended_elsewhere(cx: &JobContext) {
    cx.until_cancelled().await;
    if cx.cancelled() == Some(CancelCause::Shutdown) {
        std::future::pending::<()>().await;
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program exited with code {code}"),
        (None, Some(signal)) => format!("the program was ended by signal {signal}"),
        (None, None) => format!("the program ended: {status}"),
    }
}

fn failure(what: &str, stderr: &[u8]) -> JobError {
    let said = String::from_utf8_lossy(stderr);
    match said.trim() {
        "" => what.to_owned().into(),
        said => format!("{what}: {said}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let find = |name: &str| Program::find(vec![name.into(), "x".into()], None);
        assert!(find("sh").unwrap().path.is_absolute());
        assert_eq!(find("/bin/sh").unwrap().arguments, ["x"]);
        for missing in ["no-such-program-here", "/bin/no-such-program", "/etc/passwd", "/", ""] {
            let failure = find(missing).unwrap_err();
            assert!(failure.message().contains("--exec"), "{}", failure.message());
        }
    }

    #[test]
    fn a_failure_says_how_the_program_ended_and_what_it_said_last() {
        let exited = ExitStatus::from_raw(3 << 8);
        assert_eq!(describe(exited), "the program exited with code 3");
        assert_eq!(describe(ExitStatus::from_raw(9)), "the program was ended by signal 9");
        assert_eq!(failure("ended", b" oh \xff no\n").to_string(), "ended: oh \u{fffd} no");
        assert_eq!(failure("ended", b"\n").to_string(), "ended");
    }
}
