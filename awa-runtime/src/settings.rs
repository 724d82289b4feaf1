//! The settings of a worker that are not about one queue.

use std::time::Duration;

use awa_core::BadInput;
use awa_core::retry::RetryPolicy;
use awa_core::store::BatchLimit;

use crate::maintenance_config::MaintenanceConfig;

/// See the module; each is documented on the builder's method.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) retry: RetryPolicy,
    pub(crate) heartbeat: Duration,
    pub(crate) staleness: Duration,
    pub(crate) audit: Duration,
    pub(crate) grace: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) flush_at: usize,
    pub(crate) linger: Duration,
    pub(crate) flights: usize,
    pub(crate) max_unconfirmed: usize,
    pub(crate) unknown_kind_delay: Duration,
    pub(crate) roles: Roles,
    pub(crate) maintenance: MaintenanceConfig,
    pub(crate) own_threads: usize,
}

/// What a worker does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roles {
    pub(crate) claims: bool,
    pub(crate) maintenance: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            heartbeat: Duration::from_secs(5),
            staleness: Duration::from_secs(30),
            audit: Duration::from_secs(30),
            grace: Duration::from_secs(30),
            call_timeout: Duration::from_secs(30),
            flush_at: 1_000,
            linger: Duration::from_millis(1),
            flights: 2,
            max_unconfirmed: 5_000,
            unknown_kind_delay: Duration::from_secs(5),
            roles: Roles { claims: true, maintenance: true },
            maintenance: MaintenanceConfig::default(),
            own_threads: 2,
        }
    }
}

impl Settings {
    const SHORTEST: Duration = Duration::from_millis(10);
    const BEATS_PER_STALENESS: u32 = 3;
    const MAX_THREADS: usize = 64;

    pub(crate) fn check(&self) -> Result<(), BadInput> {
        let refuse = |field, problem: String| Err(BadInput::new(field, problem));
        for (field, length) in [("heartbeat_interval", self.heartbeat), ("call_timeout", self.call_timeout)] {
            if length < Self::SHORTEST {
                return refuse(field, format!("{length:?} is below {:?}", Self::SHORTEST));
            }
        }
        if self.staleness < self.heartbeat.saturating_mul(Self::BEATS_PER_STALENESS) {
            let (staleness, heartbeat) = (self.staleness, self.heartbeat);
            return refuse("staleness", format!("{staleness:?} is below three heartbeat intervals of {heartbeat:?}"));
        }
        if self.max_unconfirmed == 0 {
            return refuse("max_unconfirmed", "it is 0; no job could ever be claimed".into());
        }
        if self.own_threads > Self::MAX_THREADS {
            return refuse("own_threads", format!("{} is above {}", self.own_threads, Self::MAX_THREADS));
        }
        BatchLimit::new(self.flush_at).map_err(|refusal| BadInput::new("flush_at", refusal.problem))?;
        self.maintenance.check()
    }
}
