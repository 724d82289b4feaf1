//! Why a throw-away server could not be used, and what to do about it.

use std::io;
use std::path::PathBuf;

/// A throw-away server that could not be started or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// No installation of PostgreSQL was found.
    #[error(
        "start cluster failed: no PostgreSQL server programs found (searched: {searched}); install them \
         (`apt-get install postgresql`) or name their folder in AWA_PG_BIN"
    )]
    NotInstalled {
        /// The places searched.
        searched: String,
    },
    /// A program of the installation is missing.
    #[error("the program {tool} is neither in {folder} nor in PATH; install it (`apt-get install postgresql-client`)")]
    NoSuchTool {
        /// The program.
        tool: String,
        /// The folder of the installation.
        folder: PathBuf,
    },
    /// The process is root and there is nobody else to run the server as.
    #[error(
        "start cluster failed: PostgreSQL refuses to run as root and there is no user postgres or nobody; create one \
         (`useradd --system postgres`)"
    )]
    NoServerUser,
    /// A program could not be run.
    #[error("{program} could not be run; check that it is installed and may be executed")]
    NotRun {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// The program.
        program: String,
        /// What it printed.
        output: String,
    },
    /// The server did not come up.
    #[error("start cluster failed: the server {problem}; the end of its log: {log}")]
    NotReady {
        /// What happened instead.
        problem: &'static str,
        /// The last lines of the log.
        log: String,
    },
    /// A file or folder could not be used.
    #[error("{action} {path} failed; check that the folder for temporary files can be written, or set TMPDIR")]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The folder that the processes of a run share belongs to somebody else.
    #[error("the folder {path} belongs to another user; remove it or set TMPDIR")]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// The template database could not be filled.
    #[error("prepare template database {name} failed")]
    Template {
        /// The template.
        name: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The URL in the environment is no URL of a database.
    #[error("AWA_TEST_DATABASE_URL is not of the form postgres://user@host:port/database; correct it or unset it")]
    BadUrl,
}

impl ClusterError {
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
