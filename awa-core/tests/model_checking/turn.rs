//! One statement of an actor: what it may do to the world.

use awa_core::frontier::Snapshot;
use awa_core::id::{Slot, Xid};
use awa_core::ring::{OpenSlotFacts, Pointer, RingKind, RingView, SlotView};

use std::time::Duration;

use super::actors::Halt;
use super::database::{Isolation, Row, Table, Version, Who};
use super::locks::{Child, Mode, Sole};
use super::mutants::Mutant;
use super::rows::{LeaseRow, SlotRow, Tables};
use super::world::{Effect, Reach, Rules, World};

/// A statement that is being run.
#[derive(Debug)]
pub(crate) struct Turn<'w> {
    pub(crate) world: &'w mut World,
    pub(crate) who: Who,
    pub(crate) rules: &'w Rules,
    /// What the statement sees.
    snapshot: Snapshot,
}

impl<'w> Turn<'w> {
    /// Begins a statement, and a transaction if there is none. A statement that waited sees what it saw when it began.
    pub(crate) fn begin(world: &'w mut World, who: Who, rules: &'w Rules, isolation: Isolation) -> Self {
        let fresh = {
            let own = world.transactions.begin(who, isolation).xid;
            world.transactions.snapshot(own)
        };
        let transaction = world.transactions.begin(who, isolation);
        if transaction.isolation == Isolation::RepeatableRead && transaction.frozen.is_none() {
            transaction.frozen = Some(fresh.clone());
        }
        let waited = transaction.waiting.take();
        let snapshot = waited.or_else(|| transaction.frozen.clone()).unwrap_or(fresh);
        Self { world, who, rules, snapshot }
    }

    /// What the statement sees, to keep while it waits.
    pub(crate) fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// The number of the transaction, if it has one.
    pub(crate) fn own(&self) -> Option<Xid> {
        self.world.transactions.of(self.who).and_then(|transaction| transaction.xid)
    }

    /// The number of the transaction, drawn now if it has none.
    pub(crate) fn xid(&mut self) -> Xid {
        self.world.transactions.xid(self.who)
    }

    /// Whether all statements of the transaction see the same.
    pub(crate) fn is_frozen(&self) -> bool {
        self.world.transactions.of(self.who).is_some_and(|transaction| transaction.frozen.is_some())
    }

    /// The snapshot of this moment as a cursor may store it: `own_snapshot` in SQL.
    pub(crate) fn own_snapshot(&self) -> Snapshot {
        if self.rules.breaks(Mutant::OwnXidLooksFinished) {
            self.world.transactions.snapshot_without(self.own())
        } else {
            self.world.transactions.snapshot(self.own())
        }
    }

    /// The rows of a table that the statement sees.
    pub(crate) fn seen<'a, R: Row>(&'a self, table: &'a Table<R>) -> impl Iterator<Item = &'a R> {
        table.seen(&self.snapshot, self.own())
    }

    /// Inserts a row.
    pub(crate) fn insert<R: Row>(&mut self, table: impl FnOnce(&mut Tables) -> &mut Table<R>, row: R) {
        let xid = self.xid();
        table(&mut self.world.tables).insert(row, xid);
    }

    /// Deletes the rows that are meant; how many.
    pub(crate) fn remove<R: Row>(
        &mut self,
        table: impl FnOnce(&mut Tables) -> &mut Table<R>,
        is_meant: impl Fn(&R) -> bool,
    ) -> usize {
        let xid = self.xid();
        table(&mut self.world.tables).remove(xid, is_meant)
    }

    /// What a unique index says to a row that is about to be inserted: an equal one of an open transaction makes it
    /// wait, a committed one refuses it. True: it may be inserted.
    pub(crate) fn is_unique<R: Row>(&self, table: &Table<R>, equals: impl Fn(&R) -> bool) -> Result<bool, Halt> {
        let own = self.own();
        let is_running = |xid: Xid| Some(xid) != own && self.world.transactions.running().any(|running| running == xid);
        let mut equal = table.versions().iter().filter(|version: &&Version<R>| equals(&version.row));
        if equal.clone().any(|version| is_running(version.made_by)) {
            return Err(Halt::Wait);
        }
        Ok(equal.next().is_none())
    }

    /// Takes a lock on a table, waiting for whoever is in the way.
    pub(crate) fn lock(&mut self, child: Child, mode: Mode) -> Result<(), Halt> {
        if self.try_lock(child, mode) { Ok(()) } else { Err(Halt::Wait) }
    }

    /// Takes a lock on a table, or not: NOWAIT.
    pub(crate) fn try_lock(&mut self, child: Child, mode: Mode) -> bool {
        self.world.locks.try_table(self.who, child, mode)
    }

    /// Takes a row or a key, waiting for whoever has it.
    pub(crate) fn hold(&mut self, sole: Sole) -> Result<(), Halt> {
        if self.try_hold(sole) { Ok(()) } else { Err(Halt::Wait) }
    }

    /// Takes a row or a key, or not: SKIP LOCKED, or a try-lock.
    pub(crate) fn try_hold(&mut self, sole: Sole) -> bool {
        self.world.locks.try_sole(self.who, sole)
    }

    /// What becomes true with the commit.
    pub(crate) fn effect(&mut self, effect: Effect) {
        self.world.transactions.begin(self.who, Isolation::ReadCommitted).effects.push(effect);
    }

    /// Counts something, with the commit.
    pub(crate) fn reach(&mut self, reach: Reach) {
        self.effect(Effect::Reached(reach));
    }

    /// A ring as the statement sees it.
    pub(crate) fn ring(&self, ring: RingKind) -> RingView {
        self.ring_at(ring, self.world.pointer(ring))
    }

    /// The same with a pointer that was read before.
    pub(crate) fn ring_at(&self, ring: RingKind, pointer: Pointer) -> RingView {
        let rows = self.seen(&self.world.tables.ring(ring).slots);
        view(&self.world.tables, ring, rows, pointer)
    }

    /// The row of a slot as the statement sees it.
    pub(crate) fn slot_row(&self, ring: RingKind, slot: Slot) -> SlotRow {
        let mut rows = self.seen(&self.world.tables.ring(ring).slots);
        rows.find(|row| row.slot == slot).expect("a slot has a row").clone()
    }

    /// The open slot as rotation sees it: as old as it must be.
    pub(crate) fn open_slot(&self, ring: RingKind, view: &RingView) -> OpenSlotFacts {
        let is_empty = !self.world.tables.has_pages(ring, view.ledger().slot);
        OpenSlotFacts { age: Duration::ZERO, bytes: 0, is_empty }
    }

    /// The leases that the statement sees, each with its slot; all children are locked first.
    pub(crate) fn leases(&mut self, mode: Mode) -> Result<Vec<(Slot, LeaseRow)>, Halt> {
        let slots = (0..self.world.tables.leases.len() as u8).map(Slot);
        for slot in slots.clone() {
            self.lock(Child::Leases(slot), mode)?;
        }
        let seen = |slot: Slot| self.seen(self.world.tables.of_lease(slot)).map(move |row| (slot, row.clone()));
        Ok(slots.flat_map(seen).collect())
    }

    /// Locks the row of a slot that the statement sees as meant, and gives its newest version when that is still meant:
    /// what UPDATE and SELECT FOR UPDATE do at READ COMMITTED.
    pub(crate) fn take_slot(
        &mut self,
        ring: RingKind,
        slot: Slot,
        waits: bool,
        is_meant: impl Fn(&SlotRow) -> bool,
    ) -> Result<Option<SlotRow>, Halt> {
        if !is_meant(&self.slot_row(ring, slot)) {
            return Ok(None);
        }
        let sole = Sole::SlotRow(ring, slot);
        if waits {
            self.hold(sole)?;
        } else if !self.try_hold(sole) {
            return Ok(None);
        }
        let newest = self.world.tables.ring(ring).slots.versions().iter();
        let newest = newest.filter(|version| version.removed_by.is_none()).map(|version| &version.row);
        Ok(newest.into_iter().find(|row| row.slot == slot && is_meant(row)).cloned())
    }

    /// Replaces the newest version of a slot's row, which the caller has taken.
    pub(crate) fn put_slot(&mut self, ring: RingKind, row: SlotRow) {
        let slot = row.slot;
        self.remove(|tables| &mut tables.ring_mut(ring).slots, |old| old.slot == slot);
        self.insert(|tables| &mut tables.ring_mut(ring).slots, row);
    }

    /// Moves the pointer of a ring for everybody, at once and whatever becomes of the transaction.
    pub(crate) fn set_pointer(&mut self, ring: RingKind, pointer: Pointer) {
        match ring {
            RingKind::Queue => self.world.queue_pointer = pointer,
            RingKind::Claim => self.world.claim_pointer = pointer,
            RingKind::Lease => self.world.lease_pointer = pointer,
        }
    }
}

/// A ring from the rows of its slots.
pub(crate) fn view<'a>(
    tables: &Tables,
    ring: RingKind,
    rows: impl Iterator<Item = &'a SlotRow>,
    pointer: Pointer,
) -> RingView {
    let mut rows: Vec<&SlotRow> = rows.collect();
    rows.sort_by_key(|row| row.slot);
    let slots = rows.iter().map(|row| SlotView {
        generation: row.generation,
        state: row.state,
        has_pages: tables.has_pages(ring, row.slot),
    });
    RingView::new(slots.collect(), pointer).expect("a ring never contradicts itself")
}
