//! Chaos as a program: `cargo xtask chaos` runs it. With `worker` it is one of the worker processes of a scene.

use std::process::ExitCode;

use awa_tests::chaos::arguments::{Arguments, USAGE};
use awa_tests::chaos::report::Line;
use awa_tests::chaos::{self, Failure, worker};

#[tokio::main]
async fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = if words.first().is_some_and(|word| word == "worker") {
        work(words.pop().as_deref()).await.map(|()| true)
    } else if words.iter().any(|word| word == "--help") {
        println!("{USAGE}");
        Ok(true)
    } else {
        run(words).await
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("chaos: {failure}");
            ExitCode::from(2)
        }
    }
}

async fn work(orders: Option<&str>) -> Result<(), Failure> {
    worker::work(&serde_json::from_str(orders.unwrap_or_default())?).await
}

/// Plays the scenes; gives whether all were clean.
async fn run(words: Vec<String>) -> Result<bool, Failure> {
    let arguments = Arguments::parse(words)?;
    println!("{}", Line::titles());
    let lines = chaos::run(&arguments, |line| println!("{line}")).await?;
    let played = lines.iter().filter(|line| !line.is_skipped()).count();
    let clean = lines.iter().filter(|line| line.is_clean()).count();
    println!("{clean} of {played} scenes clean, {} skipped", lines.len() - played);
    Ok(clean == played)
}
