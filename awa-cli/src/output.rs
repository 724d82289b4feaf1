//! What a command prints: text for people or one JSON object for programs, on standard output.

use std::io::{self, ErrorKind, Write};
use std::process;

use awa_core::store::Accuracy;
use serde::Serialize;

use crate::failure::Failure;

/// How to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object on one line.
    Json,
}

impl Format {
    /// Prints an answer: `value` as JSON, or what `text` makes of it.
    pub(crate) fn answer<T: Serialize>(self, value: &T, text: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        let line = match self {
            Self::Text => text(value),
            Self::Json => {
                serde_json::to_string(value).map_err(|error| Failure::of("the answer does not serialize", &error))?
            }
        };
        say(&line)
    }
}

/// A table of counts, with a word about what they are worth.
pub(crate) fn with_accuracy(table: &str, accuracy: Accuracy) -> String {
    match accuracy {
        Accuracy::Exact => table.to_owned(),
        _ => format!("{table}\nestimated; --exact counts one by one"),
    }
}

/// Prints a line to standard output. A reader that has gone away has seen enough: the program ends well.
fn say(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(0),
        outcome => outcome.map_err(|error| Failure::of("standard output", &error)),
    }
}

/// Prints a line to standard error. When that is impossible there is nobody to be told.
pub(crate) fn complain(line: &str) {
    // One write per line, so that lines of several processes do not mix.
    let _ = io::stderr().lock().write_all(format!("{}\n", printable(line)).as_bytes());
}

/// `text` with every control character but line ends and tabs spelled out, so that what a job holds cannot steer the
/// terminal that shows it.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// `text` on one line, at most `width` characters wide, with a mark where it was cut.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let flat: String = text.chars().take(width + 1).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let shown = printable(&flat);
    if shown.chars().count() <= width {
        return shown;
    }
    let kept: String = shown.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\nc");
    }

    #[test]
    fn a_long_text_is_cut_visibly() {
        assert_eq!(one_line("short", 5), "short");
        assert_eq!(one_line("a\nb", 5), "a b");
        assert_eq!(one_line("longer text", 6), "longe…");
    }
}
