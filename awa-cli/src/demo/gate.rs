//! Makes a worker stand still: its jobs begin and do not go on, so that it holds something when it is killed.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A gate before every job of one worker; open at first. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Goes through, when the gate is open; blocks the thread until then.
    pub(super) fn pass(&self) {
        let (is_closed, opened) = &*self.0;
        let is_closed = is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        drop(opened.wait_while(is_closed, |is_closed| *is_closed).unwrap_or_else(PoisonError::into_inner));
    }

    /// Holds whoever comes from now on.
    pub(super) fn close(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Lets everybody through.
    pub(super) fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_closed_gate_holds_until_it_is_opened() {
        let gate = Gate::default();
        gate.pass();
        gate.close();
        let (passed, has_passed) = mpsc::channel();
        let held = gate.clone();
        let thread = thread::spawn(move || {
            held.pass();
            passed.send(()).unwrap();
        });
        assert!(has_passed.try_recv().is_err());
        gate.open();
        thread.join().unwrap();
        assert!(has_passed.try_recv().is_ok());
    }
}
