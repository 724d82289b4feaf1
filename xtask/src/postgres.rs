//! Makes sure that the server programs of PostgreSQL are on this machine.
//!
//! They are looked for where the throw-away clusters of `awa-pg` look for them.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where Debian and Ubuntu put the versions of the server.
const PACKAGED: &str = "/usr/lib/postgresql";
/// What to do where nothing can be installed from here.
const BY_HAND: &str = "install its server (Debian and Ubuntu: apt-get install postgresql; Fedora: dnf install \
                       postgresql-server; macOS: brew install postgresql), or name the folder of initdb in AWA_PG_BIN";

/// Finds PostgreSQL, else installs it.
///
/// # Errors
///
/// What is missing and how to get it.
pub(crate) fn ensure() -> Result<(), String> {
    if env::var_os("AWA_PG_BIN").is_some() {
        // A folder that was chosen on purpose is not replaced in silence.
        return is_there().then_some(()).ok_or_else(|| "AWA_PG_BIN names no folder with initdb in it".to_owned());
    }
    if is_there() {
        return Ok(());
    }
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        return Err(format!("PostgreSQL is not installed; {BY_HAND}"));
    }
    eprintln!("xtask: PostgreSQL is not installed; installing it by apt-get, which may take a minute");
    install("postgresql").map_err(|problem| format!("{problem}; {BY_HAND}"))?;
    is_there().then_some(()).ok_or_else(|| format!("apt-get installed PostgreSQL, and initdb is not there; {BY_HAND}"))
}

/// Finds a program in PATH, else installs the package of Debian and Ubuntu that has it.
///
/// # Errors
///
/// What is missing and how to get it.
pub(crate) fn ensure_program(program: &str, package: &str) -> Result<(), String> {
    if runs(Command::new(program).arg("--version")) {
        return Ok(());
    }
    if !is_root() || !runs(Command::new("apt-get").arg("--version")) {
        return Err(format!("{program} is not installed (Debian and Ubuntu: apt-get install {package})"));
    }
    eprintln!("xtask: {program} is not installed; installing it by apt-get");
    install(package)
}

/// Whether a server could be made and run.
fn is_there() -> bool {
    candidates().iter().any(|folder| folder.join("initdb").is_file())
}

fn candidates() -> Vec<PathBuf> {
    if let Some(chosen) = env::var_os("AWA_PG_BIN") {
        return vec![chosen.into()];
    }
    let mut folders: Vec<PathBuf> = folder_of_pg_config().into_iter().collect();
    folders.extend(versions_in(Path::new(PACKAGED)));
    if let Some(package) = env::var_os("AWA_EMBEDDED_POSTGRES").map(PathBuf::from) {
        folders.extend([package.join("native/bin"), package.join("bin")]);
    }
    folders
}

fn versions_in(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("bin")).collect()
}

fn folder_of_pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").stderr(Stdio::null()).output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Installs the package, without questions. A list of packages that is missing or too old is fetched once.
fn install(package: &str) -> Result<(), String> {
    let package = ["install", "--yes", "--no-install-recommends", package];
    if apt_get(&package).is_ok() {
        return Ok(());
    }
    eprintln!("xtask: that failed; fetching the list of packages and trying again");
    apt_get(&["update"])?;
    apt_get(&package)
}

fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    // The standard output is for the answer of the command that needs PostgreSQL.
    command.stdout(io::stderr());
    let failed = |problem: String| format!("apt-get {} failed: {problem}", arguments.join(" "));
    let status = command.status().map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(status.to_string())) }
}

fn runs(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_below_the_folder_is_a_candidate() {
        let root = env::temp_dir().join(format!("xtask-test-{}", std::process::id()));
        fs::create_dir_all(root.join("15")).unwrap();
        assert_eq!(versions_in(&root), [root.join("15/bin")]);
        fs::remove_dir_all(&root).unwrap();
        assert!(versions_in(&root).is_empty());
    }

    #[test]
    fn a_program_that_is_missing_does_not_run() {
        assert!(!runs(&mut Command::new("no-such-program-here")));
        assert!(runs(Command::new("sh").args(["-c", "exit 0"])));
    }
}
