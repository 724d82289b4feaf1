//! The first program of the README: run it with `DATABASE_URL` set, end it with Ctrl-C.

use std::sync::Arc;

use awa_runtime::{IntoNewJob, Job, JobContext, Outcome, QueueConfig, Worker};
use awa_store_sqlx::SqlxStore;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "send_email", queue = "email", max_attempts = 5)]
struct SendEmail {
    to: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = SqlxStore::connect(&std::env::var("DATABASE_URL")?).await?;
    store.prepare_schema().await?;

    let mut tx = store.pool().begin().await?; // your transaction, with your own rows in it
    store.enqueue_in(&mut tx, &[SendEmail { to: "ada@example.org".into() }.into_new_job()?]).await?;
    tx.commit().await?; // the job exists from here on; after a rollback it never did

    let worker = Worker::builder(Arc::new(store))
        .queue("email", QueueConfig::default().concurrency(64))
        .handler(|job: SendEmail, _cx: JobContext| async move {
            println!("mail to {}", job.to);
            Ok(Outcome::Done) // an error is retried, with a growing delay
        })
        .build()?;
    worker.run_until(async { drop(tokio::signal::ctrl_c().await) }).await?;
    Ok(())
}
