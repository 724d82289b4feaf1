//! The worker processes of a scene, seen from outside: started, killed, stopped, continued and ended.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use awa_store_sqlx::SqlxStore;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::journal::ENDING;
use super::servers::Servers;
use super::worker::{Address, Orders, Told};
use super::{Failure, Scene};

/// How long a worker may take until it works, on a busy machine and with the server away at first.
const START_LIMIT: Duration = Duration::from_secs(40);
/// How long a worker may take to stop; its own grace period is shorter.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Where the processes of a scene work.
#[derive(Clone, Debug)]
pub(super) struct Workplace {
    /// The folder for journals and messages.
    folder: PathBuf,
    /// The database as workers and producers see it.
    address: Address,
}

impl Workplace {
    pub(super) fn of(scene: Scene, servers: &Servers, database: &str, folder: &Path) -> Self {
        let address = Address {
            url: servers.address(database, scene.role()),
            connections: scene.connections(),
            is_pooled: scene == Scene::Pooler,
            listen_url: (scene == Scene::Pooler).then(|| servers.direct(database)),
        };
        Self { folder: folder.to_owned(), address }
    }

    /// A store for producers.
    pub(super) async fn open_store(&self) -> Result<SqlxStore, Failure> {
        Ok(self.address.options().wakeups(false).connect(&self.address.url).await?)
    }
}

/// The living workers. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Crew {
    workplace: Workplace,
    members: Vec<Member>,
    started: usize,
    /// Workers that were killed on purpose.
    pub(super) killed: u64,
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) instance: i64,
    /// How far its clock is ahead of this machine's, in seconds.
    pub(super) clock_ahead: i64,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// How the workers ended that were not killed.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) stale: u64,
    pub(super) problems: Vec<String>,
}

impl Crew {
    pub(super) fn new(workplace: Workplace) -> Self {
        Self { workplace, members: Vec::new(), started: 0, killed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    /// Starts a worker and waits until it works.
    pub(super) async fn start(&mut self) -> Result<(), Failure> {
        self.start_by(&[]).await
    }

    /// The same through a program that runs another: `wrapper` and its arguments come before the worker's.
    pub(super) async fn start_by(&mut self, wrapper: &[&str]) -> Result<(), Failure> {
        let number = self.started;
        self.started += 1;
        let file = |ending: &str| self.workplace.folder.join(format!("worker-{number}.{ending}"));
        let orders = Orders { journal: file(ENDING).display().to_string(), address: self.workplace.address.clone() };
        let program = std::env::current_exe()?.display().to_string();
        let words = wrapper.iter().map(|word| (*word).to_owned()).chain([program, "worker".to_owned()]);
        let mut words = words.chain([serde_json::to_string(&orders)?]);
        let mut child = Command::new(words.next().expect("a program is named"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(file("messages"))?)
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().ok_or("a worker process has no input")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("a worker process has no output")?).lines();
        let Ok(Some(Told::Started { instance, clock })) = timeout(START_LIMIT, next_told(&mut output)).await else {
            let messages = std::fs::read_to_string(file("messages")).unwrap_or_default();
            return Err(format!("a worker process did not start: {messages}").into());
        };
        let here = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as i64;
        let clock_ahead = (clock as i64 - here) / 1_000_000;
        self.members.push(Member { instance, clock_ahead, child, input, output });
        Ok(())
    }

    /// Kills a worker as the system would, and forgets it.
    pub(super) async fn kill(&mut self, index: usize) -> Result<(), Failure> {
        let mut member = self.members.swap_remove(index);
        // Returns when the process has ended.
        member.child.kill().await?;
        self.killed += 1;
        Ok(())
    }

    /// Makes a worker stand still: the process and all its threads.
    pub(super) fn freeze(&self, index: usize) -> Result<(), Failure> {
        self.signal(index, Signal::STOP)
    }

    /// Lets a frozen worker go on.
    pub(super) fn thaw(&self, index: usize) -> Result<(), Failure> {
        self.signal(index, Signal::CONT)
    }

    fn signal(&self, index: usize, signal: Signal) -> Result<(), Failure> {
        let id = self.members[index].child.id().ok_or("a worker process has ended")?;
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or("a worker process has no id")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Stops all workers in order, at the same time, and waits for them.
    pub(super) async fn end(self) -> Ended {
        let mut ended = Ended::default();
        let ends = futures::future::join_all(self.members.into_iter().map(Member::end)).await;
        for end in ends {
            match end {
                Ok((stale, 0)) => ended.stale += stale,
                Ok((stale, unconfirmed)) => {
                    ended.stale += stale;
                    ended.problems.push(format!("a worker stopped with {unconfirmed} ends that were not confirmed"));
                }
                Err(failure) => ended.problems.push(failure.to_string()),
            }
        }
        ended
    }
}

impl Member {
    async fn end(mut self) -> Result<(u64, usize), Failure> {
        drop(self.input);
        let told = timeout(STOP_LIMIT, next_told(&mut self.output)).await;
        let Ok(Some(Told::Ended { stale, unconfirmed })) = told else {
            return Err("a worker did not stop in time".into());
        };
        let status = timeout(STOP_LIMIT, self.child.wait()).await.map_err(|_| "a worker did not end")??;
        if status.success() { Ok((stale, unconfirmed)) } else { Err(format!("a worker ended with {status}").into()) }
    }
}

/// The next thing that a worker tells, or `None` at the end.
async fn next_told(output: &mut Lines<BufReader<ChildStdout>>) -> Option<Told> {
    let line = output.next_line().await.ok()??;
    serde_json::from_str(&line).ok()
}
