//! The command line of `awa`.

use clap::{Parser, Subcommand};

use crate::bench::BenchArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::enqueue::EnqueueArgs;
use crate::commands::jobs::JobsCommand;
use crate::commands::queues::QueuesArgs;
use crate::commands::rings::RingsCommand;
use crate::commands::work::WorkArgs;
use crate::connect::ConnectionArgs;
use crate::demo::DemoArgs;
use crate::demo::process::DemoWorkerArgs;
use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  awa demo                                    show everything on real files, in a throw-away PostgreSQL
  export DATABASE_URL=postgres://me@localhost/app
  awa migrate                                 set up the schema
  awa enqueue --queue mail --kind send --args '{\"to\":\"ada@example.org\"}'
  awa work --queue mail --exec ./send-mail    run its jobs, in any language
  awa jobs list --queue mail --state dead     look at what failed

Exit codes: 0 done, 1 not done, 2 the command line was not understood.
Every command takes --json and then prints one JSON object; ids in it are JSON numbers up to 2^63 - 1.
Without --database-url and DATABASE_URL, the variables PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE are used.";

/// A background job queue inside PostgreSQL.
#[derive(Parser, Debug)]
#[command(name = "awa", version, about, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Print one JSON object instead of text.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// How to answer.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run thousands of real jobs, kill a worker on the way, and check every result.
    Demo(DemoArgs),

    /// Measure speed, latency and cost, in a throw-away PostgreSQL with full durability or a database of yours.
    Bench(BenchArgs),

    /// Set up the schema in the database, or bring it to this version. Safe to repeat.
    #[command(after_help = "Examples:\n  awa migrate\n  awa migrate --schema jobs --json")]
    Migrate,

    /// Look at everything that can go wrong, and say what to do about it.
    Doctor(DoctorArgs),

    /// Make a schema usable that was carried here from another PostgreSQL cluster. Safe to repeat.
    #[command(after_help = "Examples:\n  awa repair\n  awa repair --json")]
    Repair,

    /// Give a ring more slots.
    #[command(subcommand)]
    Rings(RingsCommand),

    /// Say why there is no way back to the receipt tables of before the rings.
    #[command(hide = true)]
    Downgrade,

    /// Enqueue one job, or a file of them.
    Enqueue(EnqueueArgs),

    /// Run the jobs of queues by a program: the job as JSON on its standard input, its exit code decides.
    Work(WorkArgs),

    /// Look at jobs, cancel them, try them again.
    #[command(subcommand)]
    Jobs(JobsCommand),

    /// Look at queues, hold them back, let them go on.
    Queues(QueuesArgs),

    /// A worker process of the demo; started by `awa demo`.
    #[command(hide = true)]
    DemoWorker(DemoWorkerArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_put_together_without_contradictions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            &["awa", "--nope"][..],
            &["awa", "nope"],
            &["awa", "demo", "--worker", "3"],
            &["awa", "jobs", "get", "x"],
            &["awa", "jobs", "cancel"],
            &["awa", "jobs", "move", "7"],
            &["awa", "jobs", "move", "7", "--priority", "5"],
            &["awa", "jobs", "list", "--state", "odd"],
            &["awa", "jobs", "list", "--limit", "0"],
            &["awa", "enqueue", "--queue", "q", "--kind", "k"],
            &["awa", "enqueue", "--queue", "q", "--args", "1"],
            &["awa", "enqueue", "--queue", "q", "--kind", "k", "--args", "1", "--file", "f"],
            &["awa", "enqueue", "--file", "f", "--delay", "1s", "--run-at", "2026-01-01T00:00:00Z"],
            &["awa", "rings", "grow", "queue"],
            &["awa", "rings", "grow", "odd", "--slots", "20"],
            &["awa", "rings", "grow", "queue", "--slots", "65"],
            &["awa", "work", "--queue", "q"],
            &["awa", "queues", "set", "q", "--shards", "0"],
            &["awa", "queues", "set", "q", "--dead-letter", "maybe"],
            &["awa", "work", "--exec", "true"],
            &["awa", "demo", "--workers", "1"],
        ] {
            let refusal = Cli::try_parse_from(line).expect_err(&line.join(" "));
            assert_eq!(refusal.exit_code(), 2, "{line:?}");
        }
    }

    #[test]
    fn everything_after_exec_belongs_to_the_program() {
        let line = ["awa", "work", "--queue", "q", "--concurrency", "3", "--exec", "sh", "-c", "exit 1", "--json"];
        let cli = Cli::try_parse_from(line).unwrap();
        assert_eq!(cli.format(), Format::Text);
        let Command::Work(work) = cli.command else { panic!("not work") };
        assert_eq!(work.program(), ["sh", "-c", "exit 1", "--json"]);
    }

    #[test]
    fn flags_for_all_commands_may_stand_anywhere() {
        let cli = Cli::try_parse_from(["awa", "jobs", "list", "--json", "--schema", "other"]).unwrap();
        assert_eq!(cli.format(), Format::Json);
        assert_eq!(cli.connection.schema_or("awa").unwrap().as_str(), "other");
    }

    #[test]
    fn a_password_is_not_in_the_debug_output() {
        let cli = Cli::try_parse_from(["awa", "migrate", "--database-url", "postgres://me:secret@h/d"]).unwrap();
        assert!(!format!("{cli:?}").contains("secret"));
    }
}
