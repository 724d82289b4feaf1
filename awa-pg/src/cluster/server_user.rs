//! The user that a server runs as when this process is root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::error::ClusterError;

/// A user without privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerUser {
    uid: u32,
    gid: u32,
}

impl ServerUser {
    /// The user to run servers as, or `None` when this process has no privileges to drop.
    pub(super) fn for_this_process() -> Result<Option<Self>, ClusterError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let found = ["postgres", "nobody"].into_iter().find_map(Self::by_name);
        found.map(Some).ok_or(ClusterError::NoServerUser)
    }

    fn by_name(name: &str) -> Option<Self> {
        let id = |flag| {
            let output = Command::new("id").args([flag, name]).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self { uid: id("-u")?, gid: id("-g")? })
    }

    /// Makes a command run as this user, without further groups.
    pub(super) fn assume(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives a file or folder to this user.
    pub(super) fn own(self, path: &Path) -> Result<(), ClusterError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(ClusterError::file("changing the owner of", path))
    }
}
