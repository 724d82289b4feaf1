//! What running attempts note down: how far they have come, and that they live.

use std::time::Duration;

use awa_core::attempt::{ErrorText, Receipt};
use awa_core::id::{Nonce, Slot};
use awa_core::store::{AttemptNote, NoteAnswer};
use awa_core::{AttemptEnd, ClaimedJob, ClosureAnswer, JobState, JsonText};

use super::close::state_after;
use crate::Subject;
use crate::scene::{ME, OTHER, RESCUER, STALENESS, Scene, done, job, json, retry_after};

/// A note was stored, for an attempt without a token.
const NOTED: NoteAnswer = NoteAnswer::Noted { callback: None };

impl Scene<'_> {
    /// Writes one note, asking again while somebody is in the way.
    pub(crate) async fn note(&self, note: AttemptNote) -> NoteAnswer {
        for _ in 0..64 {
            let answers = self.store().note(std::slice::from_ref(&note)).await.expect("note");
            assert_eq!(answers.len(), 1, "one answer per note");
            if answers[0] != NoteAnswer::Contended {
                return answers[0];
            }
        }
        panic!("a note was contended 64 times");
    }

    /// Notes the progress `text` of an attempt.
    pub(crate) async fn checkpoint(&self, attempt: &ClaimedJob, text: &str) -> NoteAnswer {
        self.note(AttemptNote::checkpoint(attempt.receipt, json(text))).await
    }

    /// What an attempt recalls as its progress; it must be running.
    pub(crate) async fn progress(&self, attempt: &ClaimedJob) -> Option<JsonText> {
        let mut memories = self.store().recall(&[attempt.receipt]).await.expect("recall");
        assert_eq!(memories.len(), 1, "one answer per receipt");
        memories.remove(0).expect("the attempt is running").progress
    }

    /// A new job of queue `name` that is being tried for the first time.
    pub(crate) async fn new_attempt(&self, name: &str) -> ClaimedJob {
        self.enqueue(&[job(name, "a")]).await;
        self.claim_one(name).await
    }
}

/// C1, C3: an attempt reads what it noted last, to the byte; before, there is nothing.
pub async fn a_checkpoint_is_kept_to_the_byte_and_replaced(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.new_attempt("email").await;
    assert_eq!(scene.progress(&attempt).await, None);
    for text in ["{\"b\":1, \"a\":1e400}", "null", "[ 1,2 ]"] {
        assert_eq!(scene.checkpoint(&attempt, text).await, NOTED);
        assert_eq!(scene.progress(&attempt).await, Some(json(text)));
    }
    assert_eq!(scene.note(AttemptNote::heartbeat(attempt.receipt)).await, NOTED);
    assert_eq!(scene.progress(&attempt).await, Some(json("[ 1,2 ]")), "a heartbeat changes no progress");
    scene.expect(&[(attempt.receipt.job, JobState::Running)]).await;
    scene.complete(&[attempt]).await;
    scene.expect_all_reclaimed().await;
}

/// C2: progress goes on to the next attempt, after every end that has one: a retry, a snooze, a release, a rescue, and an
/// operator's retry of a dead job.
pub async fn progress_outlives_the_attempt(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let ends = [
        Some(retry_after(Duration::ZERO)),
        Some(AttemptEnd::Snooze { delay: Duration::ZERO }),
        Some(AttemptEnd::Release { delay: Duration::ZERO }),
        Some(AttemptEnd::Release { delay: Duration::from_secs(1) }),
        Some(AttemptEnd::Fail { error: ErrorText::new("fatal") }),
        None,
    ];
    for end in ends {
        let first = scene.new_attempt("email").await;
        assert_eq!(scene.checkpoint(&first, "41").await, NOTED);
        match &end {
            Some(end) => assert_eq!(scene.close_one(&first, end.clone()).await, ClosureAnswer::Closed),
            None => assert_eq!(scene.rescue_after_silence(&[OTHER]).await.attempts.len(), 1),
        }
        if matches!(end, Some(AttemptEnd::Fail { .. })) {
            assert_eq!(scene.retry(&[first.receipt.job]).await, [done(JobState::Dead)]);
        }
        scene.pass(Duration::from_secs(2)).await;
        scene.promote().await;
        let second = scene.claim_one("email").await;
        assert_eq!(second.receipt.job, first.receipt.job);
        assert_eq!(scene.progress(&second).await, Some(json("41")), "{end:?}");
        assert_eq!(scene.checkpoint(&first, "99").await, NoteAnswer::Stale, "{end:?}");
        assert_eq!(scene.checkpoint(&second, "42").await, NOTED);
        assert_eq!(scene.progress(&second).await, Some(json("42")), "{end:?}");
        scene.complete(&[second]).await;
    }
}

/// C2: a job that has ended recalls nothing, whoever asks, and another job never sees its progress.
pub async fn progress_is_gone_when_the_job_has_ended(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.new_attempt("email").await;
    scene.checkpoint(&attempt, "1").await;
    let other = scene.new_attempt("email").await;
    assert_eq!(scene.progress(&other).await, None);
    scene.complete(std::slice::from_ref(&attempt)).await;
    let recalled = scene.store().recall(&[attempt.receipt, other.receipt]).await.expect("recall");
    assert_eq!(recalled.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
    scene.complete(&[other]).await;
}

/// C3: an attempt that was ended, by whomever, notes nothing, before and after the next one has noted something (bug class
/// 1).
pub async fn a_stale_attempt_notes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let id = scene.enqueue(&[job("email", "a")]).await[0];
    let stale = scene.claim_one("email").await;
    assert_eq!(scene.rescue_after_silence(&[OTHER]).await.attempts.len(), 1);
    assert_eq!(scene.checkpoint(&stale, "1").await, NoteAnswer::Stale);
    scene.pass(Duration::from_secs(2)).await;
    scene.promote().await;
    let fresh = scene.claim_as(OTHER, "email", 1).await.remove(0);
    assert_eq!(scene.progress(&fresh).await, None, "the stale note left something");
    scene.checkpoint(&fresh, "2").await;
    assert_eq!(scene.checkpoint(&stale, "3").await, NoteAnswer::Stale);
    assert_eq!(scene.note(AttemptNote::heartbeat(stale.receipt)).await, NoteAnswer::Stale);
    assert_eq!(scene.progress(&fresh).await, Some(json("2")));
    assert_eq!(scene.cancel(&[id]).await, [done(JobState::Running)]);
    assert_eq!(scene.checkpoint(&fresh, "4").await, NoteAnswer::Stale);
    scene.expect(&[(id, JobState::Cancelled)]).await;
}

/// C8: of many notes in one call each is answered for itself; two of one attempt count in their order.
pub async fn notes_are_answered_one_by_one(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let gone = scene.new_attempt("email").await;
    scene.complete(std::slice::from_ref(&gone)).await;
    scene.enqueue_each("email", &["b", "c"]).await;
    let attempts = scene.claim("email", 2).await;
    let notes = [
        AttemptNote::checkpoint(attempts[0].receipt, json("1")),
        AttemptNote::checkpoint(gone.receipt, json("2")),
        AttemptNote::heartbeat(attempts[1].receipt),
        AttemptNote::checkpoint(attempts[0].receipt, json("3")),
    ];
    assert_eq!(scene.store().note(&notes).await.expect("note"), [NOTED, NoteAnswer::Stale, NOTED, NOTED]);
    assert_eq!(scene.progress(&attempts[0]).await, Some(json("3")));
    assert_eq!(scene.progress(&attempts[1]).await, None);
    assert_eq!(scene.store().note(&[]).await.expect("note"), []);
    assert_eq!(scene.store().recall(&[]).await.expect("recall"), []);
    scene.complete(&attempts).await;
}

/// C3, C4, C11: an attempt that has noted something ends in every way like any other, once, and keeps no slot.
pub async fn an_attempt_that_has_noted_something_ends_in_every_way(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for end in scene.every_end() {
        let attempt = scene.new_attempt("email").await;
        let id = attempt.receipt.job;
        let before = scene.view(id).await;
        assert_eq!(scene.checkpoint(&attempt, "1").await, NOTED);
        assert_eq!(scene.view(id).await, before);
        assert_eq!(scene.store().open_attempts(ME, 10).await.expect("open_attempts"), [attempt.receipt]);
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Closed, "{end:?}");
        assert_eq!(scene.close_one(&attempt, end.clone()).await, ClosureAnswer::Stale, "{end:?}");
        assert_eq!(scene.checkpoint(&attempt, "2").await, NoteAnswer::Stale, "{end:?}");
        scene.expect(&[(id, state_after(&end))]).await;
        scene.expect_all_reclaimed().await;
    }
}

/// C12: an attempt whose process is silent lives as long as it shows life itself, and no longer; its neighbour that does
/// not is rescued.
pub async fn an_attempt_may_show_life_itself(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let silent = scene.new_attempt("email").await;
    let attempt = scene.new_attempt("email").await;
    for _ in 0..8 {
        scene.beat(RESCUER).await;
        assert_eq!(scene.note(AttemptNote::heartbeat(attempt.receipt)).await, NOTED);
        scene.pass(STALENESS / 4).await;
    }
    scene.beat(RESCUER).await;
    let rescued = scene.rescue().await;
    assert_eq!(rescued.attempts.iter().map(|one| one.job).collect::<Vec<_>>(), [silent.receipt.job]);
    scene.expect(&[(attempt.receipt.job, JobState::Running)]).await;
    let rescued = scene.rescue_after_silence(&[]).await;
    assert_eq!(rescued.attempts.iter().map(|one| one.job).collect::<Vec<_>>(), [attempt.receipt.job]);
    assert_eq!(scene.note(AttemptNote::heartbeat(attempt.receipt)).await, NoteAnswer::Stale);
}

/// C3, C4: a heartbeat that meets the end of its attempt neither undoes it nor is undone by it: the attempt ends once, and
/// nothing that was noted outlives the job (bug class 32).
pub async fn a_heartbeat_and_an_end_at_once_leave_nothing_behind(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    for _ in 0..16 {
        let attempt = scene.new_attempt("email").await;
        let (answer, note) =
            futures::join!(scene.close_patiently(&attempt, AttemptEnd::Complete), scene.checkpoint(&attempt, "1"));
        assert_eq!(answer, ClosureAnswer::Closed);
        assert!(matches!(note, NOTED | NoteAnswer::Stale), "{note:?}");
        assert_eq!(scene.checkpoint(&attempt, "2").await, NoteAnswer::Stale);
        assert_eq!(scene.state(attempt.receipt.job).await, Some(JobState::Completed));
    }
    scene.agree().await;
    scene.expect_all_reclaimed().await;
}

/// C3: a receipt that is wrong in its number, its nonce or its slot notes nothing, before and after its attempt has become a
/// lease.
pub async fn a_note_of_a_wrong_receipt_changes_nothing(subject: &dyn Subject) {
    let scene = Scene::open(subject, &["email"]).await;
    let attempt = scene.new_attempt("email").await;
    let good = attempt.receipt;
    let other = awa_core::ReceiptId::from_raw(good.id.get() + 1).expect("the next member");
    for _ in 0..2 {
        for receipt in [
            Receipt { id: other, ..good },
            Receipt { nonce: Nonce(good.nonce.0 + 1), ..good },
            Receipt { claim_slot: Slot(good.claim_slot.0 + 1), ..good },
            Receipt { claim_slot: Slot::LEASED, ..good },
        ] {
            let note = AttemptNote::checkpoint(receipt, json("1"));
            assert_eq!(scene.note(note).await, NoteAnswer::Stale, "{receipt:?}");
            assert_eq!(scene.store().recall(&[receipt]).await.expect("recall"), [None], "{receipt:?}");
        }
        assert_eq!(scene.note(AttemptNote::heartbeat(good)).await, NOTED);
        assert_eq!(scene.progress(&attempt).await, None);
    }
    scene.complete(&[attempt]).await;
}
