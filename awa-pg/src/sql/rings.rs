//! The rings of partitions and how many slots each has.

use std::fmt;

use awa_core::ring::RingKind;

/// One of the three rings of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ring {
    /// Ready and completed jobs.
    Queue,
    /// Claims and closures.
    Claim,
    /// Leases of long attempts.
    Lease,
}

impl Ring {
    /// The three rings.
    pub const ALL: [Self; 3] = [Self::Queue, Self::Claim, Self::Lease];

    /// The name in tables, marks and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Claim => "claim",
            Self::Lease => "lease",
        }
    }

    /// The ring of that name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ring| ring.name() == name)
    }
}

impl From<RingKind> for Ring {
    fn from(kind: RingKind) -> Self {
        match kind {
            RingKind::Queue => Self::Queue,
            RingKind::Claim => Self::Claim,
            RingKind::Lease => Self::Lease,
        }
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many slots each ring has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RingSizes {
    /// Slots of the queue ring.
    pub queue: u8,
    /// Slots of the claim ring.
    pub claim: u8,
    /// Slots of the lease ring.
    pub lease: u8,
}

impl RingSizes {
    /// The number of slots of one ring.
    pub const fn of(self, ring: Ring) -> u8 {
        match ring {
            Ring::Queue => self.queue,
            Ring::Claim => self.claim,
            Ring::Lease => self.lease,
        }
    }

    /// The same with another number of slots of one ring.
    #[must_use]
    pub const fn with(mut self, ring: Ring, slots: u8) -> Self {
        match ring {
            Ring::Queue => self.queue = slots,
            Ring::Claim => self.claim = slots,
            Ring::Lease => self.lease = slots,
        }
        self
    }
}

impl Default for RingSizes {
    /// The sizes of a new schema: 16 queue, 8 claim and 4 lease slots.
    fn default() -> Self {
        Self { queue: 16, claim: 8, lease: 4 }
    }
}
