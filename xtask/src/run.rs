//! Runs other programs, and says what failed.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// Why a command of xtask ended without success.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// It failed, for this reason.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// It was not understood.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, message: message.into() }
    }

    /// Says why, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        eprintln!("xtask: {}", self.message);
        ExitCode::from(self.code)
    }
}

/// Whether an environment variable is set to something.
pub(crate) fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// One run of cargo.
#[derive(Debug)]
pub(crate) struct Cargo {
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
}

impl Cargo {
    /// Cargo with these arguments.
    pub(crate) fn new<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Self {
        Self { arguments: arguments.into_iter().map(OsString::from).collect(), variables: Vec::new() }
    }

    /// The same with further arguments.
    pub(crate) fn arguments(mut self, more: &[impl AsRef<std::ffi::OsStr>]) -> Self {
        self.arguments.extend(more.iter().map(OsString::from));
        self
    }

    /// The same with an environment variable.
    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The same with further environment variables.
    pub(crate) fn variables(mut self, more: &[(&'static str, OsString)]) -> Self {
        self.variables.extend_from_slice(more);
        self
    }

    /// Runs it; a failure has the exit code of the program that cargo ran.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.judge(self.command().status().map_err(|error| could_not_run(&error))?)
    }

    /// Runs it and shows, while it runs, what `shown` picks from the lines that it prints; all of them when it fails.
    pub(crate) fn run_showing(&self, shown: impl Fn(&str) -> Option<&str>) -> Result<(), Failure> {
        let mut child = self.command().stdout(Stdio::piped()).spawn().map_err(|error| could_not_run(&error))?;
        let mut lines = Vec::new();
        for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
            let line = line.map_err(|error| could_not_run(&error))?;
            if let Some(picked) = shown(&line) {
                println!("{picked}");
            }
            lines.push(line);
        }
        let status = child.wait().map_err(|error| could_not_run(&error))?;
        if !status.success() {
            println!("{}", lines.join("\n"));
        }
        self.judge(status)
    }

    fn judge(&self, status: ExitStatus) -> Result<(), Failure> {
        if status.success() {
            return Ok(());
        }
        let words: Vec<_> = self.arguments.iter().map(|word| word.to_string_lossy()).collect();
        Err(Failure { code: code_of(status), message: format!("cargo {} failed", words.join(" ")) })
    }

    /// Whether it ends well; what it prints is not shown.
    pub(crate) fn succeeds_silently(&self) -> bool {
        let status = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn could_not_run(error: &std::io::Error) -> Failure {
    Failure::new(format!("cargo could not be run: {error}"))
}

fn code_of(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_shows_the_lines_that_were_picked_and_fails_as_it_does() {
        assert!(Cargo::new(["--version"]).run_showing(|line| line.strip_prefix("cargo ")).is_ok());
        let failure = Cargo::new(["no-such-command"]).run_showing(|_| None).unwrap_err();
        assert_eq!(failure.message, "cargo no-such-command failed");
    }

    #[test]
    fn a_run_that_fails_says_what_was_run() {
        let failure = Cargo::new(["no-such-command"]).arguments(&["x".to_owned()]).run().unwrap_err();
        assert_eq!(failure.message, "cargo no-such-command x failed");
        assert_ne!(failure.code, 0);
        assert!(!Cargo::new(["no-such-command"]).succeeds_silently());
        assert!(Cargo::new(["--version"]).succeeds_silently());
    }
}
