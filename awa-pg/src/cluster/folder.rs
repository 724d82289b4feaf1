//! The folder of a server, and the process that removes it when nobody needs it any more.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::error::ClusterError;
use super::server_user::ServerUser;

/// The watcher of a folder: stops the server in it and removes it when its users are gone, however they ended.
///
/// It is a shell process, because a thread or a destructor does not survive a kill, and asking the kernel for a
/// signal at the owner's death needs unsafe code between fork and exec.
const WATCHDOG: &str = include_str!("watchdog.sh");

/// The folder of a server of one's own.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    watchdog: Child,
}

impl Folder {
    /// A new folder that lasts until the value is dropped or this process ends.
    pub(super) fn private(user: Option<&ServerUser>) -> Result<Self, ClusterError> {
        let path = create(user)?;
        // The watchdog waits for the end of its input, which the kernel closes with this process.
        let watchdog = spawn_watchdog(Stdio::piped(), [OsStr::new("private"), path.as_os_str()])?;
        Ok(Self { path, watchdog })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // The watchdog bounds its own work, and an error here means that it is gone already.
        drop(self.watchdog.wait());
    }
}

/// A new folder that lasts until no process has been registered in it for a while; see [`register`]. `runner` is the
/// process after whose end nobody new will come, and `entry` the folder by which others find this one.
pub(super) fn create_shared(user: Option<&ServerUser>, runner: u32, entry: &Path) -> Result<PathBuf, ClusterError> {
    let path = create(user)?;
    fs::create_dir(path.join(USERS)).map_err(ClusterError::file("creating", path.join(USERS)))?;
    register(&path)?;
    let runner = runner.to_string();
    let arguments = [OsStr::new("shared"), path.as_os_str(), OsStr::new(&runner), entry.as_os_str()];
    spawn_watchdog(Stdio::null(), arguments)?;
    Ok(path)
}

/// The folder of files named by the processes that use a shared server.
const USERS: &str = "users";

/// Says that this process uses the server in a shared folder, until it ends.
pub(super) fn register(path: &Path) -> Result<(), ClusterError> {
    let file = user_file(path);
    fs::write(&file, "").map_err(ClusterError::file("writing", file))
}

/// Takes back [`register`], because the server is being given up.
pub(super) fn unregister(path: &Path) {
    // The watchdog may have removed the whole folder already.
    drop(fs::remove_file(user_file(path)));
}

fn user_file(path: &Path) -> PathBuf {
    path.join(USERS).join(std::process::id().to_string())
}

fn create(user: Option<&ServerUser>) -> Result<PathBuf, ClusterError> {
    let parent = std::env::temp_dir();
    let folder = tempfile::Builder::new().prefix("awa-pg-").tempdir_in(&parent);
    let path = folder.map_err(ClusterError::file("creating a folder in", parent))?.keep();
    // The watchdog compares this path with what the kernel reports as the server's working folder.
    let path = path.canonicalize().map_err(ClusterError::file("resolving", path))?;
    if let Some(user) = user {
        user.own(&path)?;
    }
    Ok(path)
}

fn spawn_watchdog<'a>(input: Stdio, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<Child, ClusterError> {
    Command::new("sh")
        .args(["-c", WATCHDOG, "awa-pg-watchdog"])
        .args(arguments)
        .current_dir("/")
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A group of its own keeps it alive when a terminal or a test runner signals the whole group of its owner.
        .process_group(0)
        .spawn()
        .map_err(|source| ClusterError::NotRun { program: "sh".to_owned(), source })
}
