use std::fmt;
use std::time::Duration;

use super::SweepKind;
use crate::attempt::ErrorText;
use crate::retry::{AttemptBudget, Disposition};

/// Why an attempt is ended by somebody who is not its worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum RescueCause {
    /// Its worker has given no sign of life for too long, or has said goodbye.
    Gone,
    /// Its deadline was over.
    DeadlineOver,
    /// It was parked, and no callback came in time.
    NotCalled,
}

impl RescueCause {
    /// The name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::DeadlineOver => "deadline_over",
            Self::NotCalled => "not_called",
        }
    }

    /// What the job shows as its error: what happened, and that no attempt is left when none is.
    pub fn error(self, staleness: Duration, budget: AttemptBudget, next: &Disposition) -> ErrorText {
        let what = match self {
            Self::Gone => format!("rescued: its worker gave no sign of life for {staleness:?}"),
            Self::DeadlineOver => "rescued: its deadline was over".to_owned(),
            Self::NotCalled => "rescued: no callback came in time".to_owned(),
        };
        ErrorText::new(match next {
            Disposition::Retry { .. } => what,
            Disposition::Exhausted => format!("{what}; all {} attempts are used up", budget.max_attempts),
        })
    }
}

impl fmt::Display for RescueCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<SweepKind> for RescueCause {
    fn from(kind: SweepKind) -> Self {
        match kind {
            SweepKind::Stale => Self::Gone,
            SweepKind::Deadline => Self::DeadlineOver,
        }
    }
}
