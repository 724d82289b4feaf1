//! One server for all tests of a run.
//!
//! `cargo nextest` runs each test in a process of its own. The first one that asks starts a server, the others find
//! it by an entry in the folder for temporary files, which is named after the run. Every process registers with the
//! server's folder before it looks whether the server is still there; the watchdog gives the server up before it
//! looks for registered processes a last time. So one of the two sees the other.

use std::fs::{self, DirBuilder, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, io};

use super::binaries::{Binaries, Version};
use super::database::TestDatabase;
use super::endpoint::{Endpoint, MAINTENANCE_DATABASE};
use super::error::ClusterError;
use super::folder;
use super::postmaster::Postmaster;
use super::server_user::ServerUser;
use super::{ClusterOptions, Durability};

/// The server that the tests of a run share; each takes a database of its own by [`Self::database`].
///
/// It is a throw-away server with [`Durability::Relaxed`] that ends within seconds after its last user, or the server
/// of `AWA_TEST_DATABASE_URL` when that is set; the role in it needs the right to create databases.
#[derive(Debug)]
pub struct TestServer {
    endpoint: Endpoint,
    /// A folder that lasts as long as the server is used, for the lock on templates.
    locks: PathBuf,
}

impl TestServer {
    /// The server of this run of tests, started when this is the first process that asks for it.
    pub fn shared() -> Result<&'static Self, ClusterError> {
        static SERVER: OnceLock<TestServer> = OnceLock::new();
        static STARTING: std::sync::Mutex<()> = std::sync::Mutex::new(());

        let _starting = STARTING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(server) = SERVER.get() {
            return Ok(server);
        }
        let server = match env::var("AWA_TEST_DATABASE_URL") {
            Ok(url) => Self { endpoint: Endpoint::of_url(&url)?, locks: own_entry(EXTERNAL)? },
            Err(_) => Self::of_run(&run_key())?,
        };
        Ok(SERVER.get_or_init(|| server))
    }

    /// The URL of a database of this server, over TCP.
    pub fn url(&self, database: &str) -> String {
        self.endpoint.url(database)
    }

    /// Runs a script by `psql`, as [`Cluster::psql`](super::Cluster::psql) does.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String, ClusterError> {
        self.endpoint.psql(database, sql)
    }

    /// The version of the server.
    pub fn version(&self) -> Result<Version, ClusterError> {
        let printed = self.psql(MAINTENANCE_DATABASE, "SHOW server_version;")?;
        Version::in_text(&printed)
            .ok_or(ClusterError::Failed { program: "reading the version".to_owned(), output: printed })
    }

    /// A new empty database, dropped with the value.
    pub fn empty_database(&self) -> Result<TestDatabase, ClusterError> {
        TestDatabase::create(&self.endpoint, None)
    }

    /// A new database that is a copy of the template `name`, dropped with the value.
    ///
    /// The first process that needs the template fills it by `prepare`, which is given the URL of an empty database
    /// and must close its connections before it returns; the others wait for it. The name must stand for the content,
    /// for example by a hash in it, because on a server that outlives the run the template is found again.
    pub fn database(
        &self,
        name: &str,
        prepare: impl FnOnce(&str) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
    ) -> Result<TestDatabase, ClusterError> {
        let template = format!("awa_template_{name}");
        let lock = lock_file(&self.locks)?;
        if !self.endpoint.has_database(&template)? {
            // The final name appears only when the content is complete, also when this process is killed meanwhile.
            let unfinished = format!("{template}_unfinished");
            self.endpoint.drop_database(&unfinished)?;
            self.endpoint.create_database(&unfinished, None)?;
            prepare(&self.url(&unfinished))
                .map_err(|source| ClusterError::Template { name: name.to_owned(), source })?;
            self.endpoint.rename_database(&unfinished, &template)?;
        }
        drop(lock);
        TestDatabase::create(&self.endpoint, Some(&template))
    }

    /// The throw-away server of the run `key`.
    pub(super) fn of_run(key: &str) -> Result<Self, ClusterError> {
        let binaries = Binaries::find()?;
        let entry = own_entry(key)?;
        let _lock = lock_file(&entry)?;
        let (port, locks) = match running(&entry) {
            Some(server) => server,
            None => start(&binaries, &entry)?,
        };
        Ok(Self { endpoint: Endpoint::local(port, &binaries)?, locks })
    }
}

/// The entry of all runs on servers that are not ours; nobody watches over it, so there is only one.
const EXTERNAL: &str = "external";

/// What tells this run of tests from others: the id that nextest gives it, else the process that runs the tests.
fn run_key() -> String {
    match env::var("NEXTEST_RUN_ID") {
        Ok(id) if !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') => id,
        _ => format!("parent-{}", runner()),
    }
}

/// The process that started this one.
fn runner() -> u32 {
    std::os::unix::process::parent_id()
}

/// The folder of the run's entry, which only this user can use.
fn own_entry(key: &str) -> Result<PathBuf, ClusterError> {
    let user = rustix::process::geteuid().as_raw();
    let path = env::temp_dir().join(format!("awa-pg-run-{user}-{key}"));
    let found = in_entry(&path, || fs::symlink_metadata(&path))?;
    if found.is_dir() && found.uid() == user { Ok(path) } else { Err(ClusterError::NotOurs { path }) }
}

/// Locks a folder until the file is closed. The watchdog of an ended server may remove its run's entry meanwhile, so
/// the lock counts only on the file that is there afterwards.
fn lock_file(folder: &Path) -> Result<File, ClusterError> {
    let path = folder.join("lock");
    for _ in 0..MAX_REMOVALS {
        let file = in_entry(folder, || File::create(&path))?;
        file.lock().map_err(ClusterError::file("locking", &path))?;
        let locked = file.metadata().map_err(ClusterError::file("reading", &path))?;
        if fs::metadata(&path).is_ok_and(|there| there.ino() == locked.ino()) {
            return Ok(file);
        }
    }
    Err(ClusterError::file("locking", path)(io::ErrorKind::Interrupted.into()))
}

/// How often an entry may vanish while one process works with it.
const MAX_REMOVALS: usize = 100;

/// Uses something in an entry, and makes the entry again when the watchdog of an ended server removes it meanwhile.
/// In the worst case two processes then publish two servers, and each goes on with its own.
fn in_entry<T>(entry: &Path, action: impl Fn() -> io::Result<T>) -> Result<T, ClusterError> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for _ in 0..MAX_REMOVALS {
        let folder = DirBuilder::new().mode(0o700).recursive(true).create(entry);
        folder.map_err(ClusterError::file("creating", entry))?;
        match action() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => failure = error,
            outcome => return outcome.map_err(ClusterError::file("using", entry)),
        }
    }
    Err(ClusterError::file("using", entry)(failure))
}

/// Registers with the running server of the entry and gives its port and folder.
fn running(entry: &Path) -> Option<(u16, PathBuf)> {
    let path = PathBuf::from(fs::read_to_string(entry.join("current")).ok()?);
    folder::register(&path).ok()?;
    if let Some(port) = fs::read_to_string(path.join(READY)).ok().and_then(|port| port.parse().ok()) {
        return Some((port, path));
    }
    folder::unregister(&path);
    None
}

/// The file that holds the port of a server that may be used.
const READY: &str = "ready";

fn start(binaries: &Binaries, entry: &Path) -> Result<(u16, PathBuf), ClusterError> {
    let user = ServerUser::for_this_process()?;
    let path = folder::create_shared(user.as_ref(), runner(), entry)?;
    let options = ClusterOptions { durability: Durability::Relaxed, settings: Vec::new() };
    let postmaster = Postmaster::create(binaries, user, &path, &options)?;
    let port = postmaster.port();
    let ready = path.join(READY);
    fs::write(&ready, port.to_string()).map_err(ClusterError::file("writing", ready))?;
    in_entry(entry, || fs::write(entry.join("current"), path.as_os_str().as_bytes()))?;
    postmaster.leave_running();
    Ok((port, path))
}
