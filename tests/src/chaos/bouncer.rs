//! PgBouncer in transaction mode in front of a server.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Failure;

/// How long it may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A pooler. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Bouncer {
    child: Child,
    port: u16,
}

impl Bouncer {
    /// Whether the program is installed.
    pub(super) fn is_possible() -> bool {
        let mut probe = Command::new("pgbouncer");
        probe.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    }

    /// Starts one in front of the server on `server`, with fewer server connections than its clients have together.
    pub(super) fn start(server: u16, folder: &Path) -> Result<Self, Failure> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let file = folder.join("pgbouncer.ini");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={server} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = 6\nmax_client_conn = 200\n\
             ignore_startup_parameters = extra_float_digits\n"
        );
        std::fs::write(&file, settings)?;
        let mut command = Command::new("pgbouncer");
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(folder.join("pgbouncer.messages"))?);
        // It refuses to run as root.
        if rustix::process::geteuid().is_root() {
            command.args(["-u", "postgres"]);
        }
        let mut child = command.spawn()?;
        let deadline = Instant::now() + START_LIMIT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > deadline || child.try_wait()?.is_some() {
                drop(child.kill());
                let messages = std::fs::read_to_string(folder.join("pgbouncer.messages")).unwrap_or_default();
                return Err(format!("pgbouncer did not start: {messages}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { child, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        // Both fail only when it has ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
