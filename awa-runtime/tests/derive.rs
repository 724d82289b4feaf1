//! What the derive macro accepts and what it says otherwise.

use awa_runtime::{IntoNewJob, Job};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "everything:v2", queue = "mail/bulk", priority = 4)]
#[job(max_attempts = 1_000)]
struct Everything {
    text: String,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "choice")]
enum Choice {
    One,
    Two { n: u8 },
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "nothing", crate = ::awa_runtime)]
struct Nothing;

#[test]
fn attributes_reach_the_job() {
    let job = Everything { text: "x".into() }.into_new_job().unwrap();
    assert_eq!((job.queue().as_str(), job.kind().as_str()), ("mail/bulk", "everything:v2"));
    assert_eq!((job.priority().get(), job.max_attempts().get()), (4, 1_000));
}

#[test]
fn enums_and_unit_structs_are_jobs_too() {
    assert_eq!(Choice::Two { n: 3 }.into_new_job().unwrap().args().as_str(), r#"{"Two":{"n":3}}"#);
    assert_eq!(Choice::One.into_new_job().unwrap().args().as_str(), r#""One""#);
    let job = Nothing.into_new_job().unwrap();
    assert_eq!((job.args().as_str(), job.queue().as_str(), job.max_attempts().get()), ("null", "default", 25));
}

#[test]
fn mistakes_are_compile_errors_at_their_place() {
    trybuild::TestCases::new().compile_fail("tests/derive/*.rs");
}
