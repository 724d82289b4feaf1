use awa_runtime::Job;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "send email")]
struct Space;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "")]
struct Empty;

#[derive(serde::Serialize, serde::Deserialize, Job)]
#[job(kind = "ok", queue = "'; drop table jobs; --")]
struct Hostile;

fn main() {}
