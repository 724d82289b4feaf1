//! Places at which sessions stand still: a line put into a function of the schema, in the test's own database.
//!
//! A call that stands between two of its own statements is what races are made of, and from outside it can be stopped only
//! where it happens to wait for a lock. A halt stops it anywhere, with all that it has read and locked so far.

use std::any::Any;
use std::sync::atomic::{AtomicI64, Ordering};

use sqlx::PgConnection;

use crate::stage::{Stage, run, texts};

/// How often it is looked whether somebody has come to a halt; each look is a round trip.
const LOOKS: usize = 20_000;
/// Those who draw a larger number from the sequence of a halt pass.
const LAST: usize = 1_000;

/// A place in functions of the schema at which the first sessions that come stand still.
#[derive(Debug)]
pub struct Halt {
    gate: PgConnection,
    number: i64,
    place: String,
}

impl Halt {
    /// Puts a halt in front of the first `text` in each of the functions whose names match. It lets everybody pass until
    /// it is armed.
    ///
    /// # Panics
    /// When no function matches, or one does not have the text.
    pub async fn before(stage: &Stage, functions: &str, text: &str) -> Self {
        static NUMBERS: AtomicI64 = AtomicI64::new(0x4A17);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mut gate = stage.connect().await;
        // The sequence is unlogged, because drawing from a logged one gives the transaction a number, which claims refuse. The
        // wait is none of the function's own, so that its limit does not count.
        let function = format!(
            "CREATE UNLOGGED SEQUENCE public.arrivals_{number} MINVALUE 1 START {};
             CREATE FUNCTION public.halt_{number}() RETURNS void LANGUAGE plpgsql SET lock_timeout = 0 AS $$
             BEGIN
                 IF nextval('public.arrivals_{number}') <= {LAST} THEN
                     PERFORM pg_advisory_lock_shared({number});
                     PERFORM pg_advisory_unlock_shared({number});
                 END IF;
             END $$",
            LAST + 1
        );
        run(&mut gate, &function).await;
        let halt = Self { gate, number, place: format!("{functions}, {text:?}") };
        halt.also_before(stage, functions, text).await;
        halt
    }

    /// Puts the same halt in other functions as well.
    ///
    /// # Panics
    /// When no function matches, or one does not have the text.
    pub async fn also_before(&self, stage: &Stage, functions: &str, text: &str) {
        replace_in(stage, functions, text, &format!("PERFORM public.halt_{}(); {text}", self.number)).await;
    }

    /// The next `sessions` sessions that come here stand still.
    pub async fn arm(&mut self, sessions: usize) {
        let Self { gate, number, .. } = self;
        let first = LAST + 1 - sessions;
        let sql = format!("SELECT pg_advisory_lock({number}), setval('public.arrivals_{number}', {first}, false)");
        run(gate, &sql).await;
    }

    /// Returns when so many sessions stand here.
    ///
    /// # Panics
    /// When nobody comes.
    pub async fn until_reached(&mut self, sessions: usize) {
        let standing = format!(
            "SELECT count(*)::text FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
             WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()
               AND l.classid = 0 AND l.objid = {} AND l.objsubid = 1",
            self.number
        );
        for _ in 0..LOOKS {
            if texts(&mut self.gate, &standing).await == [Some(sessions.to_string())] {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{sessions} sessions did not come to {}", self.place);
    }

    /// Lets all who stand here go on, and everybody else pass.
    pub async fn release(&mut self) {
        let Self { gate, number, .. } = self;
        let sql = format!("SELECT setval('public.arrivals_{number}', {}), pg_advisory_unlock({number})", LAST + 1);
        run(gate, &sql).await;
    }
}

/// Puts `to` in the place of the first `from` in all functions whose names match.
///
/// # Panics
/// When no function matches, or one does not have the text.
pub async fn replace_in(stage: &Stage, functions: &str, from: &str, to: &str) {
    let mut connection = stage.connect().await;
    let sql = format!(
        "SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p
         WHERE p.pronamespace = 'awa'::regnamespace AND p.proname ~ '^({functions})$'"
    );
    let found = texts(&mut connection, &sql).await;
    assert!(!found.is_empty(), "no function is called {functions}");
    for text in found.into_iter().flatten() {
        assert!(text.contains(from), "{from:?} is not in {text}");
        run(&mut connection, &text.replacen(from, to, 1)).await;
    }
}

/// What a task panicked with, to tell that a check fails by the law it names and not for want of something else.
///
/// # Panics
/// When it did not panic.
pub fn complaint(ended: Result<(), tokio::task::JoinError>) -> String {
    let panic: Box<dyn Any + Send> = ended.expect_err("the mutant is not noticed").into_panic();
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other.downcast::<&str>().map_or_else(|_| String::new(), |text| (*text).to_owned()),
    }
}
