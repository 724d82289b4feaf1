//! Where the programs of PostgreSQL are.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, fs};

use super::error::ClusterError;

/// The version of a PostgreSQL server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number, which changes with the features.
    pub major: u32,
    /// The second number; zero for a version that is not released.
    pub minor: u32,
}

impl Version {
    /// The version in a text such as `postgres (PostgreSQL) 15.4 (Debian 15.4-1)` or `17beta1`.
    pub(super) fn in_text(text: &str) -> Option<Self> {
        let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        let (major, rest) = number.split_at(digits(number).len());
        let minor = rest.strip_prefix('.').map(digits).unwrap_or_default();
        Some(Self { major: major.parse().ok()?, minor: minor.parse().unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// An installation of PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    folder: PathBuf,
    version: Version,
}

impl Binaries {
    /// Finds an installation that can make and run a server.
    pub(super) fn find() -> Result<Self, ClusterError> {
        let chosen = env::var_os("AWA_PG_BIN").map(PathBuf::from);
        let embedded = env::var_os("AWA_EMBEDDED_POSTGRES").map(PathBuf::from);
        let candidates = if let Some(folder) = chosen {
            // A folder chosen on purpose is not replaced by another one in silence.
            vec![folder]
        } else {
            let packaged = newest_first(Path::new("/usr/lib/postgresql"));
            let embedded = embedded.iter().flat_map(|package| [package.join("native/bin"), package.join("bin")]);
            bindir_of_pg_config().into_iter().chain(packaged).chain(embedded).collect()
        };
        Self::first_usable(&candidates)
    }

    fn first_usable(candidates: &[PathBuf]) -> Result<Self, ClusterError> {
        candidates.iter().find_map(|folder| Self::in_folder(folder)).ok_or_else(|| {
            let searched: Vec<_> = candidates.iter().map(|folder| folder.display().to_string()).collect();
            ClusterError::NotInstalled { searched: searched.join(", ") }
        })
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        if !folder.join("initdb").is_file() {
            return None;
        }
        let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
        let version = Version::in_text(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { folder: folder.to_owned(), version })
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// A program of the installation, else one of that name in PATH: some packages ship the server without clients.
    pub(super) fn tool(&self, tool: &str) -> Result<PathBuf, ClusterError> {
        let in_path = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.folder.clone()).chain(env::split_paths(&in_path));
        let found = folders.map(|folder| folder.join(tool)).find(|program| program.is_file());
        found.ok_or_else(|| ClusterError::NoSuchTool { tool: tool.to_owned(), folder: self.folder.clone() })
    }
}

/// Where `psql` is when no server is to be run.
pub(super) fn client() -> Result<PathBuf, ClusterError> {
    match Binaries::find() {
        Ok(binaries) => binaries.tool("psql"),
        Err(_) => Binaries { folder: PathBuf::from("/usr/bin"), version: Version { major: 0, minor: 0 } }.tool("psql"),
    }
}

/// A command without the settings of `PG...` variables, which would send it to another server.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
}

fn bindir_of_pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(folder.trim()))
}

/// The `bin` folders of the versions below `root`, the highest version first.
fn newest_first(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut versions: Vec<(Version, PathBuf)> = entries
        .filter_map(|entry| Some((Version::in_text(&entry.file_name().to_string_lossy())?, entry.path().join("bin"))))
        .collect();
    versions.sort_by_key(|(version, _)| Reverse(*version));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        for (text, version) in [
            ("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)", Some((15, 14))),
            ("postgres (PostgreSQL) 18beta2", Some((18, 0))),
            ("17", Some((17, 0))),
            ("no version", None),
        ] {
            assert_eq!(Version::in_text(text), version.map(|(major, minor)| Version { major, minor }), "{text}");
        }
    }

    #[test]
    fn the_newest_packaged_version_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for name in ["9.6", "14", "9", "17", "lost+found"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let found = newest_first(root.path());
        let names: Vec<_> = found.iter().map(|bin| bin.parent().unwrap().file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["17", "14", "9.6", "9"]);
        assert!(newest_first(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn without_an_installation_the_error_says_how_to_install_one() {
        let error = Binaries::first_usable(&[PathBuf::from("/nonexistent/bin")]).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/bin") && error.contains("apt-get install postgresql"), "{error}");
    }
}
