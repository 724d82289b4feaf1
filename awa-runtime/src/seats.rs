//! The permits of one queue, and the claimed jobs that wait for one.
//!
//! A seat is a permit. A runner that sits on one runs attempt after attempt, so that a permit is held exactly as long as
//! a handler runs, and no path (a panic, a dropped task) can lose one: dropping the seat gives it back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ahead::Ahead;
use crate::attempt::Attempt;

/// See the module.
#[derive(Debug)]
pub(crate) struct Seats {
    table: Mutex<Table>,
    room: Notify,
    idle: Notify,
}

#[derive(Debug)]
struct Table {
    waiting: VecDeque<Arc<Attempt>>,
    /// What runs on each seat.
    sitting: Vec<Option<Arc<Attempt>>>,
    /// How many of them are taken.
    sat: usize,
    /// Seats without a runner.
    free: Vec<usize>,
    ahead: Ahead,
    closed: bool,
    /// The dispatcher sleeps until there is room.
    dispatcher_waits: bool,
}

/// A permit, held by one runner.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    number: usize,
    left: bool,
}

impl Seats {
    /// `seats` permits, and room `ahead` for jobs beyond them.
    pub(crate) fn new(seats: usize, ahead: Ahead) -> Self {
        Self {
            table: Mutex::new(Table {
                waiting: VecDeque::new(),
                sitting: vec![None; seats],
                sat: 0,
                free: (0..seats).rev().collect(),
                ahead,
                closed: false,
                dispatcher_waits: false,
            }),
            room: Notify::new(),
            idle: Notify::new(),
        }
    }

    #[cfg(test)]
    fn room(&self) -> usize {
        self.lock().room()
    }

    /// Waits until there is room worth a claim, and gives it in jobs.
    ///
    /// When a seat is idle, that is enough. Else half of the room for waiting jobs must be free, so that a stream of short
    /// jobs is claimed in batches.
    pub(crate) async fn wait_for_room(&self) -> usize {
        loop {
            let room = {
                let mut table = self.lock();
                table.ahead.adapt(Instant::now());
                let room = table.room();
                table.dispatcher_waits = room == 0;
                room
            };
            if room > 0 {
                return room;
            }
            self.room.notified().await;
        }
    }

    /// Takes in claimed jobs, and gives the seats on which runners are to be started. After [`Self::close`], the jobs
    /// come back.
    pub(crate) fn fill(self: &Arc<Self>, jobs: Vec<Arc<Attempt>>) -> Result<Vec<Seat>, Vec<Arc<Attempt>>> {
        let mut table = self.lock();
        if table.closed {
            return Err(jobs);
        }
        table.waiting.extend(jobs);
        let starts = table.free.len().min(table.waiting.len());
        let rest = table.free.len() - starts;
        let numbers = table.free.split_off(rest);
        drop(table);
        Ok(numbers.into_iter().map(|number| Seat { seats: Arc::clone(self), number, left: false }).collect())
    }

    /// Gives back the youngest of the jobs that wait, as many as would wait too long at the pace of the moment.
    pub(crate) fn give_up_surplus(&self) -> Vec<Arc<Attempt>> {
        let mut table = self.lock();
        table.ahead.adapt(Instant::now());
        let unoccupied = table.sitting.len() - table.sat;
        let kept = table.waiting.len().min(unoccupied + table.ahead.may_wait());
        table.waiting.split_off(kept).into()
    }

    /// Takes no more jobs, and gives back those that have not been started.
    pub(crate) fn close(&self) -> Vec<Arc<Attempt>> {
        let mut table = self.lock();
        table.closed = true;
        table.waiting.drain(..).collect()
    }

    /// The attempts that run or wait now.
    pub(crate) fn held(&self) -> Vec<Arc<Attempt>> {
        let table = self.lock();
        table.sitting.iter().flatten().chain(&table.waiting).cloned().collect()
    }

    /// The attempts that run now.
    pub(crate) fn running(&self) -> Vec<Arc<Attempt>> {
        self.lock().sitting.iter().flatten().cloned().collect()
    }

    /// Waits until no attempt runs.
    pub(crate) async fn wait_until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Takes a seat back, unless its runner has `left` it before.
    fn take_back(&self, table: &mut Table, number: usize, left: &mut bool) {
        if !std::mem::replace(left, true) {
            table.free.push(number);
            if table.is_idle() {
                self.idle.notify_waiters();
            }
        }
    }

    /// Wakes the dispatcher when it waits and there is room worth a claim.
    fn announce_room(&self, mut table: MutexGuard<'_, Table>) {
        if table.dispatcher_waits && table.room() > 0 {
            table.dispatcher_waits = false;
            drop(table);
            self.room.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn room(&self) -> usize {
        let prefetch = self.ahead.room();
        let unoccupied = self.sitting.len() - self.sat;
        let idle = unoccupied.saturating_sub(self.waiting.len());
        let surplus = self.waiting.len().saturating_sub(unoccupied);
        let room = idle + prefetch.saturating_sub(surplus);
        let worth_a_claim = idle > 0 || room * 2 >= prefetch;
        if worth_a_claim && !self.closed { room } else { 0 }
    }

    fn is_idle(&self) -> bool {
        self.free.len() == self.sitting.len()
    }

    /// Takes what runs on seat `number` off it.
    fn rise(&mut self, number: usize) -> Option<Arc<Attempt>> {
        let attempt = self.sitting[number].take();
        self.sat -= usize::from(attempt.is_some());
        attempt
    }
}

impl Seat {
    /// The next attempt to run. `None` gives the seat back.
    pub(crate) fn next(&mut self) -> Option<Arc<Attempt>> {
        let mut table = self.seats.lock();
        table.rise(self.number);
        let next = table.waiting.pop_front();
        match &next {
            Some(attempt) => {
                table.sitting[self.number] = Some(Arc::clone(attempt));
                table.sat += 1;
                table.ahead.note_start();
            }
            None => self.seats.take_back(&mut table, self.number, &mut self.left),
        }
        self.seats.announce_room(table);
        next
    }

    /// Gives the seat back, and the attempt that ran on it.
    pub(crate) fn vacate(&mut self) -> Option<Arc<Attempt>> {
        let mut table = self.seats.lock();
        let attempt = table.rise(self.number);
        self.seats.take_back(&mut table, self.number, &mut self.left);
        self.seats.announce_room(table);
        attempt
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.left {
            self.vacate();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::testing::attempts;

    #[test]
    fn a_claim_fills_free_seats_and_the_prefetch_and_no_more() {
        let seats = Arc::new(Seats::new(4, Ahead::fixed(2)));
        assert_eq!(seats.room(), 6);
        assert_eq!(seats.fill(attempts(6)).unwrap().len(), 4);
        assert_eq!(seats.room(), 0);
    }

    #[test]
    fn short_jobs_are_claimed_in_batches() {
        let seats = Arc::new(Seats::new(1, Ahead::fixed(8)));
        let mut seat = seats.fill(attempts(9)).unwrap().remove(0);
        let rooms: Vec<usize> = std::iter::from_fn(|| seat.next().map(|_| seats.room())).collect();
        assert_eq!(rooms, [0, 0, 0, 0, 4, 5, 6, 7, 8], "no claim for less than half of the prefetch");
        assert_eq!(seats.room(), 9);
    }

    #[test]
    fn without_prefetch_a_freed_seat_is_claimed_for_at_once() {
        let seats = Arc::new(Seats::new(2, Ahead::fixed(0)));
        let mut held = seats.fill(attempts(2)).unwrap();
        assert!(held.iter_mut().all(|seat| seat.next().is_some()));
        assert_eq!(seats.room(), 0);
        drop(held.pop());
        assert_eq!(seats.room(), 1);
    }

    #[test]
    fn a_dropped_seat_is_free_again_and_gives_back_what_ran() {
        let seats = Arc::new(Seats::new(1, Ahead::fixed(0)));
        let mut seat = seats.fill(attempts(1)).unwrap().remove(0);
        let attempt = seat.next().unwrap();
        assert!(seats.wait_until_idle().now_or_never().is_none());
        assert!(Arc::ptr_eq(&seat.vacate().unwrap(), &attempt));
        drop(seat);
        assert_eq!(seats.room(), 1);
        assert!(seats.wait_until_idle().now_or_never().is_some());
    }

    #[test]
    fn closed_seats_take_nothing_and_give_back_what_waits() {
        let seats = Arc::new(Seats::new(1, Ahead::fixed(3)));
        let mut seat = seats.fill(attempts(3)).unwrap().remove(0);
        assert!(seat.next().is_some());
        assert_eq!(seats.close().len(), 2);
        assert_eq!(seats.fill(attempts(2)).unwrap_err().len(), 2);
        assert_eq!((seats.room(), seats.running().len()), (0, 1));
        assert!(seat.next().is_none());
    }

    #[tokio::test]
    async fn the_dispatcher_is_woken_when_there_is_room_again() {
        let seats = Arc::new(Seats::new(1, Ahead::fixed(0)));
        let mut seat = seats.fill(attempts(1)).unwrap().remove(0);
        assert!(seat.next().is_some());
        let mut wait = Box::pin(seats.wait_for_room());
        assert!(wait.as_mut().now_or_never().is_none());
        assert!(seat.next().is_none());
        assert_eq!(wait.now_or_never(), Some(1));
    }
}
