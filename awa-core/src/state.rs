//! The states of a job and the table of legal transitions.
//!
//! At every instant a committed job is in exactly one state (invariant I1), and every state is one place in the store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::BadInput;

/// Where a job is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobState {
    /// Committed and due; the next claim of its lane may take it.
    Ready,
    /// Claimed: one attempt is open.
    Running,
    /// Waiting for its time: scheduled, to be retried, snoozed or released with a delay.
    Deferred,
    /// Parked until a callback comes or its time runs out.
    Waiting,
    /// Ended well.
    Completed,
    /// Ended by exhausted attempts or a fatal error, in a queue without a dead-letter queue.
    Failed,
    /// Ended because somebody asked for it.
    Cancelled,
    /// Held in the dead-letter queue for an operator.
    Dead,
}

impl JobState {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Running,
        Self::Deferred,
        Self::Waiting,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Dead,
    ];

    /// The name in JSON, SQL and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Deferred => "deferred",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }

    /// Whether nothing further happens unless an operator acts.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Dead)
    }

    /// Whether a job may move from this state to `next` in one step.
    ///
    /// `Ready` to `Ready` is a change of priority or queue; `Failed` and `Dead` to `Ready` an operator's retry.
    pub const fn may_become(self, next: Self) -> bool {
        use JobState::{Cancelled, Completed, Dead, Deferred, Failed, Ready, Running, Waiting};
        match self {
            Ready => matches!(next, Running | Cancelled | Ready),
            Running => matches!(next, Ready | Deferred | Waiting | Completed | Failed | Cancelled | Dead),
            Deferred => matches!(next, Ready | Cancelled),
            Waiting => matches!(next, Ready | Running | Deferred | Completed | Failed | Cancelled | Dead),
            Failed => matches!(next, Ready | Dead),
            Dead => matches!(next, Ready),
            Completed | Cancelled => false,
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for JobState {
    type Err = BadInput;

    fn from_str(text: &str) -> Result<Self, BadInput> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            BadInput::new("state", format!("{text:?} is not a state; use one of {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_jobs_never_move_again_but_by_an_operators_retry() {
        for from in JobState::ALL.into_iter().filter(|state| state.is_terminal()) {
            for to in JobState::ALL {
                let retry = matches!(from, JobState::Failed | JobState::Dead) && to == JobState::Ready;
                let filed = from == JobState::Failed && to == JobState::Dead;
                assert_eq!(from.may_become(to), retry || filed, "{from} -> {to}");
            }
        }
    }

    #[test]
    fn only_a_claim_starts_an_attempt() {
        let starts: Vec<_> = JobState::ALL.into_iter().filter(|s| s.may_become(JobState::Running)).collect();
        assert_eq!(starts, [JobState::Ready, JobState::Waiting]);
    }

    #[test]
    fn every_state_has_its_own_name_and_reads_back() {
        for state in JobState::ALL {
            assert_eq!(state.as_str().parse::<JobState>().unwrap(), state);
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
        assert_eq!("nonsense".parse::<JobState>().unwrap_err().field, "state");
    }
}
