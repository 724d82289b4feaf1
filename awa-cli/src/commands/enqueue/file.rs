//! Enqueues a file of jobs as a stream: first checked as a whole, then written in batches.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::path::Path;

use awa_core::NewJob;

use super::Answer;
use crate::connect::ConnectionArgs;
use crate::failure::Failure;
use crate::job_lines::{BadLine, Defaults, JobLines, NumberedJob};
use crate::output::{Format, complain};

/// The largest number of jobs of one transaction.
const BATCH_JOBS: usize = 1_000;
/// The size of arguments and metadata together from which on a transaction is full.
const BATCH_BYTES: usize = 4 << 20;
/// How many bad lines an answer spells out.
const MAX_REPORTED: usize = 1_000;
/// How many bad lines are spelled out on standard error.
const MAX_COMPLAINTS: u64 = 20;

/// Enqueues the jobs of the file at `path`.
pub(super) async fn enqueue(
    connection: &ConnectionArgs,
    defaults: &Defaults,
    path: &Path,
    skip_bad: bool,
    format: Format,
) -> Result<(), Failure> {
    let mut report = Report::default();
    let mut input = Input::open(path)?;
    if !skip_bad {
        input = input.checked(defaults, &mut report)?;
        if report.answer.refused_lines > 0 {
            report.summarize("nothing was enqueued; correct the file, or pass --skip-bad to enqueue the other lines");
            format.answer(&report.answer, Answer::describe)?;
            return Err(Failure::said());
        }
    }
    let store = connection.connect_ready(1).await?;
    let mut lines = JobLines::new(input.reader(), defaults);
    loop {
        let batch = Batch::read(&mut lines, &mut report)?;
        if batch.jobs.is_empty() {
            break;
        }
        if !skip_bad && report.answer.refused_lines > 0 {
            let problem = format!("the file changed while it was read; {}", report.reached(&batch));
            return Err(Failure::new(problem));
        }
        let enqueued = store.enqueue(&batch.jobs).await;
        let enqueued = enqueued.map_err(|error| Failure::from(error).with(&report.reached(&batch)))?;
        report.answer.count(enqueued);
        report.last_line = batch.last_line;
    }
    if report.answer.refused_lines > 0 {
        report.summarize("they were skipped");
    }
    format.answer(&report.answer, Answer::describe)
}

/// What has been done so far.
#[derive(Default)]
struct Report {
    answer: Answer,
    /// The last line whose job is enqueued.
    last_line: u64,
}

impl Report {
    fn bad(&mut self, bad: BadLine) {
        self.answer.refused_lines += 1;
        if self.answer.refused_lines <= MAX_COMPLAINTS {
            complain(&format!("line {}: {} refused: {}", bad.line, bad.field, bad.problem));
        }
        if self.answer.refused.len() < MAX_REPORTED {
            self.answer.refused.push(bad);
        }
    }

    fn summarize(&self, consequence: &str) {
        let more = match self.answer.refused_lines.saturating_sub(MAX_COMPLAINTS) {
            0 => String::new(),
            more => format!(" ({more} of them not shown)"),
        };
        complain(&format!("{} bad lines{more}: {consequence}", self.answer.refused_lines));
    }

    /// How far the file has been enqueued, when `batch` could not be.
    fn reached(&self, batch: &Batch) -> String {
        let (first, last) = (batch.first_line, batch.last_line);
        let before = match self.answer.enqueued {
            0 => "no job was enqueued before".to_owned(),
            jobs => format!("{jobs} jobs up to line {} are enqueued", self.last_line),
        };
        format!(
            "{before}, lines {first} to {last} failed together; go on with: tail -n +{first} FILE | awa enqueue --file -"
        )
    }
}

/// Jobs that are enqueued in one transaction.
#[derive(Default)]
struct Batch {
    jobs: Vec<NewJob>,
    first_line: u64,
    last_line: u64,
}

impl Batch {
    fn read(lines: &mut JobLines<'_, impl BufRead>, report: &mut Report) -> Result<Self, Failure> {
        let (mut batch, mut bytes) = (Self::default(), 0);
        while batch.jobs.len() < BATCH_JOBS && bytes < BATCH_BYTES {
            match lines.next() {
                None => break,
                Some(Err(error)) => return Err(Failure::of("reading the file", &error)),
                Some(Ok(Err(bad))) => report.bad(bad),
                Some(Ok(Ok(NumberedJob { line, job }))) => {
                    bytes += job.args().as_str().len() + job.metadata().map_or(0, |metadata| metadata.as_str().len());
                    batch.first_line = if batch.jobs.is_empty() { line } else { batch.first_line };
                    batch.last_line = line;
                    batch.jobs.push(job);
                }
            }
        }
        Ok(batch)
    }
}

/// Where lines come from.
enum Input {
    /// A file that can be read twice.
    File(File),
    /// What can be read only once: standard input, a pipe.
    Stream(Box<dyn io::Read>),
}

impl Input {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stream(Box::new(io::stdin())));
        }
        let what = format!("opening {}", path.display());
        let file = File::open(path).map_err(|error| Failure::of(&what, &error))?;
        let metadata = file.metadata().map_err(|error| Failure::of(&what, &error))?;
        match () {
            () if metadata.is_dir() => {
                Err(Failure::new(format!("{what}: it is a folder; name a file with a job per line")))
            }
            () if metadata.is_file() => Ok(Self::File(file)),
            () => Ok(Self::Stream(Box::new(file))),
        }
    }

    fn reader(self) -> Box<dyn BufRead> {
        match self {
            Self::File(file) => Box::new(BufReader::new(file)),
            Self::Stream(stream) => Box::new(BufReader::new(stream)),
        }
    }

    /// Reads everything once and reports bad lines; gives the same again, from its beginning. A stream is kept in an
    /// unnamed temporary file meanwhile.
    fn checked(self, defaults: &Defaults, report: &mut Report) -> Result<Self, Failure> {
        let reading = |error: io::Error| Failure::of("reading the file", &error);
        let mut file = match self {
            Self::File(file) => file,
            Self::Stream(mut stream) => {
                let keeping = |error: io::Error| Failure::of("keeping standard input in a temporary file", &error);
                let mut copy = tempfile::tempfile().map_err(keeping)?;
                io::copy(&mut stream, &mut copy)
                    .and_then(|_| copy.flush())
                    .and_then(|()| copy.rewind())
                    .map_err(keeping)?;
                copy
            }
        };
        for line in JobLines::new(BufReader::new(&mut file), defaults) {
            if let Err(bad) = line.map_err(reading)? {
                report.bad(bad);
            }
        }
        file.rewind().map_err(reading)?;
        Ok(Self::File(file))
    }
}
