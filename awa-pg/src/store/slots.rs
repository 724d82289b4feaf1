//! What the rings look like.

use std::time::Duration;

use awa_core::error::{StoreError, StoreErrorKind};
use awa_core::id::{Generation, Slot};
use awa_core::prune::SlotFacts;
use awa_core::ring::{BadRing, OpenSlotFacts, Pointer, RingKind, RingView, SlotState, SlotView};

use super::clock::{Clock, length_of};
use super::consume::slot;
use super::undecodable;
use crate::session::Session;
use crate::sql::Sql;
use crate::value::{DecodeError, Row};

/// A ring as stored, with what the decisions need to know of each slot.
#[derive(Debug)]
pub(super) struct StoredRing {
    pub(super) slots: Vec<StoredSlot>,
    pub(super) pointer: Pointer,
}

/// One slot as stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSlot {
    pub(super) slot: Slot,
    pub(super) generation: Generation,
    pub(super) state: SlotState,
    /// Since it was opened.
    pub(super) age: Duration,
    /// Of all its children.
    pub(super) bytes: u64,
    /// Since it was sealed; zero when it is not.
    pub(super) sealed_for: Duration,
    /// Whether it has been noted which lanes have rows in it; only of the queue ring.
    pub(super) has_noted_lanes: bool,
}

impl StoredRing {
    /// Reads a ring, in one statement.
    pub(super) async fn read(
        session: &mut dyn Session,
        sql: &Sql,
        clock: &Clock,
        ring: RingKind,
        operation: &'static str,
    ) -> Result<Self, StoreError> {
        let statement = match ring {
            RingKind::Queue => sql.statement("rings/queue_slots"),
            RingKind::Claim => sql.statement("rings/claim_slots"),
            RingKind::Lease => sql.statement("rings/lease_slots"),
        };
        let rows =
            session.query(statement, &[clock.param()]).await.map_err(|error| error.into_store_error(operation))?;
        let corrupt = |what: String| {
            StoreError::new(StoreErrorKind::Corrupt, operation, format!("the {ring:?} ring is damaged: {what}"))
        };
        let slots: Result<Vec<_>, DecodeError> = rows.iter().map(|row| StoredSlot::read(row, ring)).collect();
        let slots = slots.map_err(undecodable(operation))?;
        let slots: Option<Vec<_>> = slots.into_iter().collect();
        let slots = slots.ok_or_else(|| corrupt("a slot is in an unknown state".to_owned()))?;
        let pointer = rows.first().ok_or_else(|| corrupt("it has no slots".to_owned()))?;
        let pointer = pointer.i64(5).map_err(undecodable(operation))?;
        let pointer = Pointer::unpack(pointer).map_err(|error| corrupt(error.to_string()))?;
        Ok(Self { slots, pointer })
    }

    /// The ring as rotation sees it.
    pub(super) fn view(&self, operation: &'static str) -> Result<RingView, StoreError> {
        self.try_view().map_err(|error| {
            StoreError::new(StoreErrorKind::Corrupt, operation, format!("{error}; nothing was changed"))
        })
    }

    /// The ring as rotation sees it, or how it contradicts itself.
    pub(super) fn try_view(&self) -> Result<RingView, BadRing> {
        let slots = self.slots.iter();
        let slots = slots
            .map(|slot| SlotView { generation: slot.generation, state: slot.state, has_pages: slot.bytes > 0 })
            .collect();
        RingView::new(slots, self.pointer)
    }

    /// The open slot as rotation sees it; nothing in it when the ring is damaged, which [`Self::view`] tells.
    pub(super) fn open_slot(&self) -> OpenSlotFacts {
        let open = self.slots.iter().find(|slot| slot.state == SlotState::Open);
        let (age, bytes) = open.map_or((Duration::ZERO, 0), |open| (open.age, open.bytes));
        OpenSlotFacts { age, bytes, is_empty: bytes == 0 }
    }

    /// One slot as pruning sees it.
    pub(super) fn facts(&self, slot: Slot) -> Option<SlotFacts> {
        let stored = self.slots.iter().find(|stored| stored.slot == slot)?;
        Some(SlotFacts { slot, generation: stored.generation, state: stored.state, pointer: self.pointer })
    }
}

impl StoredSlot {
    fn read(row: &Row, ring: RingKind) -> Result<Option<Self>, DecodeError> {
        let state = match row.text(2)? {
            "free" => SlotState::Free,
            "open" => SlotState::Open,
            "sealed" => SlotState::Sealed,
            "drained" => SlotState::Drained,
            _ => return Ok(None),
        };
        Ok(Some(Self {
            slot: slot(row.i16(0)?),
            generation: Generation(row.i64(1)?),
            state,
            age: length_of(row.opt_i64(3)?.unwrap_or(0)),
            bytes: row.i64(4)?.unsigned_abs(),
            sealed_for: length_of(row.opt_i64(6)?.unwrap_or(0)),
            has_noted_lanes: match ring {
                RingKind::Queue => row.bool(7)?,
                _ => false,
            },
        }))
    }
}
