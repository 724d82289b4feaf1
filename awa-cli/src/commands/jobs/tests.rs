use std::cell::RefCell;

use awa_core::job::MaxAttempts;
use awa_core::store::DeferredReason;
use awa_core::{JsonText, Priority, RunLease, Timestamp};

use super::*;

fn view(id: i64) -> JobView {
    JobView {
        id: JobId(id),
        state: JobState::Deferred,
        queue: QueueName::new("q").unwrap(),
        kind: JobKind::new("k").unwrap(),
        priority: Priority::default(),
        attempt: 1,
        max_attempts: MaxAttempts::default(),
        run_lease: RunLease(1),
        args: JsonText::new("args", "\"\u{1b}[2J\"").unwrap_or_else(|_| JsonText::trusted("\"\u{1b}[2J\"")),
        metadata: None,
        created_at: Timestamp::EPOCH,
        run_at: Some(Timestamp::EPOCH),
        deferred: Some(DeferredReason::Retry),
        claimed_at: None,
        finalized_at: None,
        result: None,
        error: Some(ErrorText::new("boom\nand more\u{7}")),
    }
}

#[tokio::test(start_paused = true)]
async fn contended_ids_are_asked_for_again_and_doubles_act_once() {
    let asked = RefCell::new(Vec::new());
    let acted = act_until_settled(&[JobId(3), JobId(1), JobId(3)], async |ids| {
        asked.borrow_mut().push(ids.clone());
        let first = asked.borrow().len() == 1;
        let answer = |id: &JobId| match id.get() {
            3 if first => Acted::Refused(Refusal::Contended),
            3 => Acted::Done { from: JobState::Ready },
            _ => Acted::Refused(Refusal::NotFound),
        };
        Ok(ids.iter().map(answer).collect())
    });
    let acted = acted.await.unwrap();
    assert_eq!(asked.into_inner(), [vec![JobId(1), JobId(3)], vec![JobId(3)]]);
    assert_eq!(acted[&JobId(1)], Acted::Refused(Refusal::NotFound));
    assert_eq!(acted[&JobId(3)], Acted::Done { from: JobState::Ready });
}

#[tokio::test(start_paused = true)]
async fn an_id_that_stays_contended_is_given_up_at_last() {
    let always = async |ids: Vec<JobId>| Ok(vec![Acted::Refused(Refusal::Contended); ids.len()]);
    let acted = act_until_settled(&[JobId(1)], always).await.unwrap();
    assert_eq!(acted[&JobId(1)], Acted::Refused(Refusal::Contended));
}

#[test]
fn what_a_job_holds_cannot_steer_the_terminal() {
    let shown = details(&view(1)) + &table_of(&[view(1)], Some(JobId(1)));
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{shown:?}");
    assert!(shown.contains("retry until 1970-01-01T00:00:00.000000Z: boom and more"), "{shown}");
    assert!(shown.ends_with("more: --before 1"));
}

#[test]
fn a_job_prints_as_a_stable_shape() {
    let text = serde_json::to_string(&JobShape::from(JobView { args: JsonText::trusted("[1]"), ..view(9) })).unwrap();
    let expected = concat!(
        r#"{"id":9,"state":"deferred","queue":"q","kind":"k","priority":2,"attempt":1,"max_attempts":25,"run_lease":1,"#,
        r#""args":[1],"metadata":null,"created_at":"1970-01-01T00:00:00.000000Z","#,
        r#""run_at":"1970-01-01T00:00:00.000000Z","deferred":"retry","claimed_at":null,"finalized_at":null,"#,
        r#""result":null,"error":"boom\nand more\u0007"}"#
    );
    assert_eq!(text, expected);
}

#[test]
fn ids_are_whole_numbers_from_one_to_the_largest() {
    assert_eq!(parse_id("9223372036854775807"), Ok(JobId(i64::MAX)));
    for text in ["0", "-1", "1.5", "9223372036854775808", "x", ""] {
        assert!(parse_id(text).is_err(), "{text}");
    }
}
