use awa_runtime::Job;

const KIND: &str = "a";

#[derive(serde::Serialize, serde::Deserialize, Job)]
struct NoAttribute;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(queue = "email")]
struct NoKind;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "a", kind = "b")]
struct Twice;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "a", retries = 3)]
struct Unknown;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = KIND)]
struct ByName;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "a", priority = "high")]
struct Text;

fn main() {}
