//! Making a data folder, and starting and stopping a server on it.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::binaries::{self, Binaries};
use super::error::ClusterError;
use super::server_user::ServerUser;
use super::{ClusterOptions, Durability};

/// The folder of the server's unix socket, in the folder of the server.
pub(super) const SOCKET_FOLDER: &str = "socket";

/// The longest start, recovery after a crash included.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long a server may take for each way of being stopped, gentlest first.
const STOP_LIMITS: [(Signal, Duration); 2] =
    [(Signal::INT, Duration::from_secs(5)), (Signal::QUIT, Duration::from_secs(2))];
/// The pause between two looks at a server that starts or stops.
const PAUSE: Duration = Duration::from_millis(10);
/// How many ports are tried, since another program may take a free one before the server does.
const MAX_PORTS: usize = 8;
/// The longest path of a socket that every system accepts.
const MAX_SOCKET_PATH: usize = 103;

/// The main process of a server and what is needed to start it again.
#[derive(Debug)]
pub(super) struct Postmaster {
    program: PathBuf,
    user: Option<ServerUser>,
    folder: PathBuf,
    port: u16,
    pid: u32,
    child: Option<Child>,
    /// How long the log was when the server was started the last time.
    log_start: u64,
}

impl Postmaster {
    /// Makes a data folder below `folder` and starts a server on it.
    pub(super) fn create(
        binaries: &Binaries,
        user: Option<ServerUser>,
        folder: &Path,
        options: &ClusterOptions,
    ) -> Result<Self, ClusterError> {
        let postmaster = Self::new(binaries, user, folder)?;
        postmaster.init(&binaries.tool("initdb")?, options)?;
        postmaster.start_somewhere()
    }

    /// Starts a server on a data folder below `folder` that is there already.
    pub(super) fn on_copy(binaries: &Binaries, user: Option<ServerUser>, folder: &Path) -> Result<Self, ClusterError> {
        Self::new(binaries, user, folder)?.start_somewhere()
    }

    fn new(binaries: &Binaries, user: Option<ServerUser>, folder: &Path) -> Result<Self, ClusterError> {
        let (program, folder) = (binaries.tool("postgres")?, folder.to_owned());
        Ok(Self { program, user, folder, port: 0, pid: 0, child: None, log_start: 0 })
    }

    /// Starts the server on a free port.
    fn start_somewhere(mut self) -> Result<Self, ClusterError> {
        for _ in 1..MAX_PORTS {
            self.port = free_port()?;
            match self.start() {
                Err(ClusterError::NotReady { log, .. }) if log.contains("could not bind") => {}
                outcome => return outcome.map(|()| self),
            }
        }
        self.port = free_port()?;
        self.start().map(|()| self)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Starts the server and waits until it accepts connections.
    pub(super) fn start(&mut self) -> Result<(), ClusterError> {
        let log = OpenOptions::new().create(true).append(true).open(self.log());
        let log = log.map_err(ClusterError::file("opening", self.log()))?;
        self.log_start = log.metadata().map_err(ClusterError::file("reading", self.log()))?.len();
        if let Some(user) = self.user {
            user.own(&self.log())?;
        }
        let errors = log.try_clone().map_err(ClusterError::file("opening", self.log()))?;
        let mut command = self.command(&self.program);
        command.arg("-D").arg(self.data()).args(["-c", &format!("port={}", self.port)]);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let child = command.spawn().map_err(|source| not_run(&self.program, source))?;
        self.pid = child.id();
        self.child = Some(child);
        self.wait_until_ready()
    }

    /// Stops the server: open sessions are cut, data are written. A server that does not comply is killed.
    pub(super) fn stop(&mut self) {
        for (signal, limit) in STOP_LIMITS {
            self.signal(signal);
            let deadline = Instant::now() + limit;
            while Instant::now() < deadline {
                if self.has_ended() {
                    return;
                }
                sleep(PAUSE);
            }
        }
        self.kill_all();
    }

    /// Kills every process of the server and waits for them.
    pub(super) fn kill_all(&mut self) {
        if self.child.is_none() {
            return;
        }
        // A stopped parent starts no more children, so that none is missed.
        self.signal(Signal::STOP);
        let children = children_of(self.pid);
        self.signal(Signal::KILL);
        for child in &children {
            send(*child, Signal::KILL);
        }
        if let Some(mut child) = self.child.take() {
            // It was killed, so the wait ends; an error means that somebody else waited for it.
            drop(child.wait());
        }
        let deadline = Instant::now() + START_LIMIT;
        while children.iter().any(|child| is_running(*child)) && Instant::now() < deadline {
            sleep(PAUSE);
        }
    }

    /// Gives up the server without stopping it: somebody else does.
    pub(super) fn leave_running(mut self) {
        self.child = None;
    }

    fn init(&self, initdb: &Path, options: &ClusterOptions) -> Result<(), ClusterError> {
        let locale = if cfg!(target_os = "macos") { "C" } else { "C.UTF-8" };
        let mut command = self.command(initdb);
        command.arg("-D").arg(self.data());
        command.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "-N", "--no-instructions", "--locale", locale]);
        let output = command.stdin(Stdio::null()).output().map_err(|source| not_run(initdb, source))?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
            return Err(ClusterError::Failed { program: "initdb".to_owned(), output });
        }
        let sockets = self.folder.join(SOCKET_FOLDER);
        fs::create_dir(&sockets).map_err(ClusterError::file("creating", &sockets))?;
        if let Some(user) = self.user {
            user.own(&sockets)?;
        }
        let path = self.data().join("postgresql.conf");
        let mut file =
            OpenOptions::new().append(true).open(&path).map_err(ClusterError::file("opening", path.clone()))?;
        let settings = settings(&sockets, options);
        std::io::Write::write_all(&mut file, settings.as_bytes()).map_err(ClusterError::file("writing", path))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = binaries::command(program);
        // The folder of this process may be closed to the other user. The group keeps a terminal's signals away.
        command.current_dir(&self.folder).process_group(0);
        if let Some(user) = self.user {
            user.assume(&mut command);
        }
        command
    }

    fn wait_until_ready(&mut self) -> Result<(), ClusterError> {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline {
            if self.has_ended() {
                return Err(self.not_ready("ended"));
            }
            if self.says_ready() {
                return Ok(());
            }
            sleep(PAUSE);
        }
        self.kill_all();
        Err(self.not_ready("did not become ready within a minute"))
    }

    /// Whether the server's own status file, not one left by a crash, says that it accepts connections.
    fn says_ready(&self) -> bool {
        /// The line of the status, counted from zero; the process id is on the first one.
        const STATUS_LINE: usize = 7;
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let lines: Vec<&str> = file.lines().map(str::trim).collect();
        lines.first() == Some(&self.pid.to_string().as_str()) && lines.get(STATUS_LINE) == Some(&"ready")
    }

    fn has_ended(&mut self) -> bool {
        let Some(child) = &mut self.child else { return true };
        // An error means that somebody else waited for it.
        let has_ended = !matches!(child.try_wait(), Ok(None));
        if has_ended {
            self.child = None;
        }
        has_ended
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            send(Pid::from_child(child), signal);
        }
    }

    fn not_ready(&self, problem: &'static str) -> ClusterError {
        /// How much of the log goes into the error.
        const LAST_LINES: usize = 20;
        let log = fs::read(self.log()).unwrap_or_default();
        let since_start = usize::try_from(self.log_start).unwrap_or(usize::MAX).min(log.len());
        let log = String::from_utf8_lossy(&log[since_start..]);
        let lines: Vec<&str> = log.lines().collect();
        let log = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        ClusterError::NotReady { problem, log }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.stop();
        }
    }
}

/// The settings of a throw-away server, as lines of `postgresql.conf`.
fn settings(sockets: &Path, options: &ClusterOptions) -> String {
    let sockets = sockets.to_string_lossy();
    let fits = sockets.len() + "/.s.PGSQL.65535".len() <= MAX_SOCKET_PATH;
    let mut settings = vec![
        ("listen_addresses", "127.0.0.1"),
        ("unix_socket_directories", if fits { sockets.as_ref() } else { "" }),
        ("max_connections", "200"),
        ("shared_buffers", "128MB"),
        ("autovacuum", "on"),
        ("max_prepared_transactions", "20"),
        ("synchronous_commit", "on"),
        ("log_line_prefix", "%m [%p] "),
    ];
    if options.durability == Durability::Relaxed {
        settings.extend([("fsync", "off"), ("full_page_writes", "off")]);
    }
    settings.extend(options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    settings.iter().fold(String::from("\n"), |mut lines, (name, value)| {
        writeln!(lines, "{name} = '{}'", value.replace('\'', "''")).expect("a string takes any text");
        lines
    })
}

fn free_port() -> Result<u16, ClusterError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    Ok(address.map_err(ClusterError::file("finding a free port on", "127.0.0.1"))?.port())
}

fn not_run(program: &Path, source: std::io::Error) -> ClusterError {
    ClusterError::NotRun { program: program.display().to_string(), source }
}

/// Sends a signal to a process of the server.
fn send(pid: Pid, signal: Signal) {
    if let Err(error) = kill_process(pid, signal) {
        // It has ended by itself in the meantime, which is what the signals of this module ask for.
        tracing::trace!(pid = pid.as_raw_nonzero(), %error, "a process of the server was not there for a signal");
    }
}

/// The processes whose parent is `pid`.
fn children_of(pid: u32) -> Vec<Pid> {
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output();
    let table = match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        // Slim systems have no ps, and all of them are Linux.
        Err(_) => parents_from_proc(),
    };
    let pairs = table.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    let children = pairs.filter(|(_, parent)| *parent == pid);
    children.filter_map(|(child, _)| Pid::from_raw(i32::try_from(child).ok()?)).collect()
}

/// Lines of process and parent, from `/proc`.
fn parents_from_proc() -> String {
    let mut table = String::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        if let Some(parent) = status.lines().find_map(|line| line.strip_prefix("PPid:")) {
            writeln!(table, "{} {}", entry.file_name().display(), parent.trim()).expect("a string takes any text");
        }
    }
    table
}

/// Whether a process exists that has not ended; one that ended and was not waited for yet does not count where
/// `/proc` can tell.
fn is_running(pid: Pid) -> bool {
    if rustix::process::test_kill_process(pid).is_err() {
        return false;
    }
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    !status.lines().any(|line| line.starts_with("State:") && line.contains('Z'))
}

#[cfg(test)]
mod tests;
