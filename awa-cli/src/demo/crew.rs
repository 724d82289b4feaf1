//! The workers of the demo, seen from outside: started, counted, killed and stopped.

use std::env;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use awa_core::{InstanceId, QueueName};
use awa_runtime::{RuntimeError, ShutdownReport};
use awa_store_mem::MemStore;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::count::{Count, Tally};
use super::gate::Gate;
use super::place::{Database, Place};
use super::process::{HOLD, Told};
use super::worker;
use crate::failure::Failure;

/// How long a worker may take until it works.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long a worker may take to stop; its own grace period is shorter.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// All workers. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Crew {
    members: Vec<Member>,
    tally: Tally,
}

#[derive(Debug)]
struct Member {
    instance: InstanceId,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// A process of its own; the end of its input tells it to stop.
    Process { child: Box<Child>, input: ChildStdin },
    /// A worker of this process; a dropped sender tells it to stop.
    Task { run: JoinHandle<Result<ShutdownReport, RuntimeError>>, stop: oneshot::Sender<()>, gate: Gate },
    /// It was killed.
    Killed,
}

impl Crew {
    /// Starts `workers` workers on `queue`, and waits until they work.
    pub(super) async fn start(place: &Place, queue: &QueueName, workers: usize) -> Result<Self, Failure> {
        let mut started = Vec::with_capacity(workers);
        for _ in 0..workers {
            started.push(match place {
                Place::Memory(store) => Member::as_task(store, queue)?,
                Place::Postgres(database) => Member::as_process(database, queue)?,
            });
        }
        let (mut members, mut counts) = (Vec::new(), Vec::new());
        for starting in started {
            let (member, count) = starting.await_start().await?;
            members.push(member);
            counts.push(count);
        }
        Ok(Self { members, tally: Tally(counts.into()) })
    }

    /// The counts of the workers.
    pub(super) fn tally(&self) -> Tally {
        self.tally.clone()
    }

    /// The worker that will be killed.
    pub(super) fn victim(&self) -> InstanceId {
        self.members[0].instance
    }

    /// Makes the first worker stand still: it goes on to claim jobs and ends none, so that it holds some when it dies.
    pub(super) async fn hold_first(&mut self) -> Result<(), Failure> {
        match &mut self.members[0].body {
            Body::Process { input, .. } => {
                let told = input.write_all(format!("{HOLD}\n").as_bytes()).await;
                told.map_err(|error| Failure::of("telling a worker to stand still", &error))
            }
            Body::Task { gate, .. } => {
                gate.close();
                Ok(())
            }
            Body::Killed => Ok(()),
        }
    }

    /// Kills the first worker as the system would: it gets no chance to put anything in order.
    pub(super) async fn kill_first(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.members[0].body, Body::Killed) {
            Body::Process { mut child, .. } => {
                // Returns when the process has ended.
                child.kill().await.map_err(|error| Failure::of("killing a worker", &error))
            }
            Body::Task { run, gate, .. } => {
                run.abort();
                // Aborting is what the outcome will say.
                let _ = run.await;
                // What its threads still do changes nothing any more.
                gate.open();
                Ok(())
            }
            Body::Killed => Ok(()),
        }
    }

    /// Fails when a worker has ended that nobody killed.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        for (number, member) in (1..).zip(&mut self.members) {
            let ended = match &mut member.body {
                Body::Process { child, .. } => match child.try_wait() {
                    Ok(status) => status.map(describe),
                    Err(error) => Some(error.to_string()),
                },
                Body::Task { run, .. } => run.is_finished().then(|| "it stopped".to_owned()),
                Body::Killed => None,
            };
            if let Some(ended) = ended {
                return Err(Failure::new(format!("worker {number} ended by itself: {ended}; see its messages above")));
            }
        }
        Ok(())
    }

    /// Stops the workers in order and waits for them.
    pub(super) async fn stop(self) -> Result<(), Failure> {
        for (number, member) in (1..).zip(self.members) {
            let stopped = timeout(STOP_LIMIT, member.stop()).await;
            stopped.map_err(|_| Failure::new(format!("worker {number} did not stop within {STOP_LIMIT:?}")))??;
        }
        Ok(())
    }
}

impl Member {
    fn as_task(store: &MemStore, queue: &QueueName) -> Result<Starting, Failure> {
        let gate = Gate::default();
        let worker = worker::build(Arc::new(store.clone()), queue, gate.clone())?;
        let (instance, count) = (worker.instance(), Count::Read(worker.stats()));
        let (stop, stopped) = oneshot::channel::<()>();
        let run = tokio::spawn(worker.run_until(async move {
            // Nothing is ever sent: the end of the channel is the signal.
            let _ = stopped.await;
        }));
        Ok(Starting::Works(Self { instance, body: Body::Task { run, stop, gate } }, count))
    }

    fn as_process(database: &Database, queue: &QueueName) -> Result<Starting, Failure> {
        let starting = |error| Failure::of("starting a worker process", &error);
        let mut child = Command::new(env::current_exe().map_err(starting)?)
            .args(["demo-worker", "--queue", queue.as_str(), "--schema", database.schema.as_str()])
            // Other users can read a command line, but not an environment.
            .env("DATABASE_URL", database.url.reveal())
            .env("AWA_DRIVER", database.driver.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(starting)?;
        let missing = || Failure::new("a worker process has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(missing)?).lines();
        Ok(Starting::Process { child: Box::new(child), input, output })
    }

    async fn stop(self) -> Result<(), Failure> {
        match self.body {
            Body::Process { mut child, input } => {
                drop(input);
                let status = child.wait().await.map_err(|error| Failure::of("waiting for a worker", &error))?;
                status
                    .success()
                    .then_some(())
                    .ok_or_else(|| Failure::new(format!("a worker failed: {}", describe(status))))
            }
            Body::Task { run, stop, .. } => {
                drop(stop);
                run.await.map_err(|error| Failure::of("waiting for a worker", &error))??;
                Ok(())
            }
            Body::Killed => Ok(()),
        }
    }
}

/// A worker that may not work yet.
enum Starting {
    Works(Member, Count),
    Process { child: Box<Child>, input: ChildStdin, output: Lines<BufReader<ChildStdout>> },
}

impl Starting {
    async fn await_start(self) -> Result<(Member, Count), Failure> {
        let (mut child, input, mut output) = match self {
            Self::Works(member, count) => return Ok((member, count)),
            Self::Process { child, input, output } => (child, input, output),
        };
        let Some(Told::Started(instance)) = timeout(START_LIMIT, next_told(&mut output)).await.ok().flatten() else {
            let status = child.try_wait().ok().flatten().map_or_else(|| "it is silent".to_owned(), describe);
            return Err(Failure::new(format!("a worker process did not start: {status}; see its messages above")));
        };
        let completed = Arc::new(AtomicU64::new(0));
        let count = Count::Told(Arc::clone(&completed));
        tokio::spawn(async move {
            // Ends with the process.
            while let Some(told) = next_told(&mut output).await {
                if let Told::Completed(jobs) = told {
                    completed.store(jobs, Ordering::Relaxed);
                }
            }
        });
        Ok((Member { instance, body: Body::Process { child, input } }, count))
    }
}

/// The next thing that a worker tells, or `None` at the end. A line cut off by a kill is no news.
async fn next_told(output: &mut Lines<BufReader<ChildStdout>>) -> Option<Told> {
    let line = output.next_line().await.ok()??;
    serde_json::from_str(&line).ok()
}

fn describe(status: ExitStatus) -> String {
    status.to_string()
}
