//! What each call costs, counted on fixed work and compared with the listing that is checked in.
//!
//! A server of its own on which nothing else happens, a clock that stands still, and every call made often enough before it is
//! counted that plans and caches have settled: the counts are then the same in every run. `budgets.rs` says how much a call may
//! cost; this shows every change.

mod counting;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use awa_core::attempt::ErrorText;
use awa_core::ring::{RingKind, RotationPolicy};
use awa_core::store::{Consumer, Maintainer, Operator, Producer, RetentionPolicy};
use awa_core::{AttemptEnd, Closure};
use counting::{Counter, Locks};

/// So many lives before the one that is counted.
const WARM: usize = 8;
const SIZES: [usize; 3] = [500, 8, 1];
/// Write the listing anew.
const REFRESH: &str = "AWA_REFRESH_LISTINGS";

/// The ends of attempts that are counted.
fn ends() -> [(&'static str, AttemptEnd); 4] {
    let (error, delay) = (ErrorText::new("so it ended"), Duration::from_mins(1));
    [
        ("complete", AttemptEnd::Complete),
        ("fail", AttemptEnd::Fail { error: error.clone() }),
        ("retry later", AttemptEnd::Retry { delay, error }),
        ("snooze", AttemptEnd::Snooze { delay }),
    ]
}

/// Everything that is done with so many jobs.
async fn life(counter: &mut Counter, size: usize, listing: &mut Option<String>) {
    let reason = ErrorText::new("no longer");
    let store = counter.store.clone();
    for (name, end) in ends() {
        let jobs = counter.jobs(size);
        let first = name == "complete";
        let mut to = if first { listing.take() } else { None };
        counter.count(&mut to, &format!("enqueue {size}"), Locks::Seen, || store.enqueue(&jobs)).await;
        let request = counter.request(size);
        counter.count(&mut to, &format!("claim {size}"), Locks::Seen, || store.claim(&request)).await;
        if first {
            *listing = to;
        }
        let receipts = counter.open().await;
        assert_eq!(receipts.len(), size);
        let closures: Vec<_> = receipts.iter().map(|receipt| Closure { receipt: *receipt, end: end.clone() }).collect();
        counter.count(listing, &format!("{name} {size}"), Locks::Seen, || store.close(&closures)).await;
    }
    counter.advance(Duration::from_mins(2));
    counter.count(listing, &format!("promote {}", 2 * size), Locks::Seen, || store.promote(2 * size)).await;
    let ids = counter.ready().await;
    assert_eq!(ids.len(), 2 * size);
    counter.count(listing, &format!("cancel {size}"), Locks::Seen, || store.cancel(&ids[..size], &reason)).await;
    store.cancel(&ids[size..], &reason).await.expect("cancel");
    let request = counter.request(size);
    counter.count(&mut None, "pass what was cancelled", Locks::Seen, || store.claim(&request)).await;
    counter.count(listing, &format!("empty poll of {size}"), Locks::Seen, || store.claim(&request)).await;
}

/// Takes all rings on once, so that what was written is reclaimed.
async fn turn(counter: &mut Counter, listing: &mut Option<String>) {
    let store = counter.store.clone();
    let at_once = RotationPolicy { min_age: Duration::ZERO, max_bytes: 0 };
    let nothing = RetentionPolicy::NONE;
    for ring in [RingKind::Queue, RingKind::Claim] {
        counter.count(listing, &format!("rotate the {ring} ring"), Locks::Own, || store.rotate(ring, &at_once)).await;
    }
    counter.count(listing, "drain", Locks::Own, || store.drain()).await;
    for ring in [RingKind::Queue, RingKind::Claim] {
        counter.count(listing, &format!("prune the {ring} ring"), Locks::Own, || store.prune(ring, &nothing)).await;
    }
}

fn path(major: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("listings/counts-{major}.txt"))
}

#[tokio::test]
async fn every_call_costs_what_the_listing_says() {
    let mut counter = Counter::new().await;
    let major = counter.major();
    let mut listing = Some(format!(
        "What each call costs on PostgreSQL {major}. A change is refreshed by\n  \
         {REFRESH}=1 cargo nextest run -p awa-tests --test counts\nand belongs into the commit that makes it.\n"
    ));
    for size in SIZES {
        for _ in 0..WARM {
            life(&mut counter, size, &mut None).await;
        }
        life(&mut counter, size, &mut listing).await;
        for _ in 0..WARM {
            turn(&mut counter, &mut None).await;
        }
    }
    life(&mut counter, 8, &mut None).await;
    turn(&mut counter, &mut listing).await;
    let (counted, path) = (listing.expect("it is written"), path(major));
    if std::env::var_os(REFRESH).is_some() {
        std::fs::write(&path, &counted).expect("the listing can be written");
        return;
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let mut changed = String::new();
    for line in counted.lines().filter(|line| !listed.lines().any(|other| other == *line)) {
        writeln!(changed, "  {line}").expect("a text takes everything");
    }
    assert!(
        listed == counted,
        "costs have changed; if that is meant, refresh the listing by\n  {REFRESH}=1 cargo nextest run -p awa-tests \
         --test counts\nand see the difference of {}. Now:\n{changed}",
        path.display()
    );
}
