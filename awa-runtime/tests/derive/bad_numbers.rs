use awa_runtime::Job;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "a", priority = 5)]
struct Priority;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "b", max_attempts = 0)]
struct NoAttempt;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "c", max_attempts = 99999999999999999999999)]
struct ManyAttempts;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "d", priority = -1)]
struct Negative;

fn main() {}
