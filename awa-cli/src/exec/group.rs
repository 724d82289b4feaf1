//! The processes of one run of a program.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

/// How long a program that is told to end may take for it.
const POLITE: Duration = Duration::from_secs(2);

/// The process group of a program, killed when dropped before its leader has ended.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that `child` leads.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)))
    }

    /// The leader has ended, and its id may soon be somebody else's.
    pub(super) fn release(&mut self) {
        self.0 = None;
    }

    /// Ends the group: politely, then not.
    pub(super) async fn end(&mut self, child: &mut Child) {
        self.signal(Signal::TERM);
        if timeout(POLITE, child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            // A killed process ends; an error would mean that somebody else has waited for it.
            let _ = child.wait().await;
        }
        self.release();
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // A group that has ended by itself is what the signal is for.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
