//! A second server that follows the first by streaming replication.

use std::fs::OpenOptions;
use std::io::Write;
use std::process::Stdio;
use std::sync::Mutex;

use super::endpoint::{Endpoint, MAINTENANCE_DATABASE};
use super::error::ClusterError;
use super::folder::Folder;
use super::postmaster::Postmaster;
use super::server_user::ServerUser;
use super::{Cluster, binaries};

impl Cluster {
    /// Copies this server and starts the copy as a hot standby, which follows under the name `name`: with that in
    /// `synchronous_standby_names` of this server, what is acknowledged is there as well. The standby is a server of its own that
    /// vanishes with its value; it goes on when this one is killed.
    pub fn start_standby(&self, name: &str) -> Result<Cluster, ClusterError> {
        let user = ServerUser::for_this_process()?;
        let folder = Folder::private(user.as_ref())?;
        let data = folder.path().join("data");
        let copier = self.bin("pg_basebackup")?;
        let mut command = binaries::command(&copier);
        command.current_dir(folder.path()).arg("-D").arg(&data).args(["-R", "-X", "stream", "-c", "fast"]);
        command.args(["-d", &self.url(MAINTENANCE_DATABASE)]).stdin(Stdio::null());
        if let Some(user) = user {
            user.assume(&mut command);
        }
        let output = command
            .output()
            .map_err(|source| ClusterError::NotRun { program: copier.display().to_string(), source })?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(ClusterError::Failed { program: "pg_basebackup".to_owned(), output });
        }
        // The copy has the settings of the original; later lines win.
        let path = data.join("postgresql.auto.conf");
        let conninfo = format!("host=127.0.0.1 port={} user=postgres application_name={name}", self.port());
        let settings = format!(
            "\nprimary_conninfo = '{conninfo}'\nunix_socket_directories = ''\nsynchronous_standby_names = ''\n"
        );
        let file = OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(settings.as_bytes())).map_err(ClusterError::file("writing", path))?;
        let postmaster = Postmaster::on_copy(&self.binaries, user, folder.path())?;
        let endpoint = Endpoint::local(postmaster.port(), &self.binaries)?;
        Ok(Self { postmaster: Mutex::new(postmaster), endpoint, binaries: self.binaries.clone(), folder })
    }

    /// Makes a standby a server that takes writes, and waits until it does.
    pub fn promote(&self) -> Result<(), ClusterError> {
        let answer = self.psql(MAINTENANCE_DATABASE, "SELECT pg_promote(true, 60)")?;
        if answer == "t" {
            return Ok(());
        }
        let output = "the standby did not take over within a minute".to_owned();
        Err(ClusterError::Failed { program: "pg_promote".to_owned(), output })
    }
}
