//! What a program writes, kept within bounds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use awa_core::JsonText;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Which part of an output is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keep {
    /// The first bytes, one more than these to tell that there were more.
    First(usize),
    /// The last bytes.
    Last(usize),
}

/// Reads an output to its end and keeps a part of it.
#[derive(Debug)]
pub(super) struct Capture {
    kept: Arc<Mutex<Vec<u8>>>,
    keep: Keep,
    reader: JoinHandle<()>,
}

impl Capture {
    /// Reads `output` from now on.
    pub(super) fn of(output: Option<impl AsyncRead + Unpin + Send + 'static>, keep: Keep) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&kept);
        let reader = tokio::spawn(async move {
            const CHUNK: usize = 16 << 10;
            let Some(mut output) = output else { return };
            let mut chunk = vec![0; CHUNK];
            // Bounded by the program's life, see `finish`; an error ends the output like its end.
            while let Ok(length @ 1..) = output.read(&mut chunk).await {
                keep.add(&mut shared.lock().unwrap_or_else(PoisonError::into_inner), &chunk[..length]);
            }
        });
        Self { kept, keep, reader }
    }

    /// What was kept, at the end of the output or after `linger`.
    pub(super) async fn finish(mut self, linger: Duration) -> Vec<u8> {
        if timeout(linger, &mut self.reader).await.is_err() {
            self.reader.abort();
        }
        let mut kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        if let Keep::Last(bytes) = self.keep {
            kept.drain(..kept.len().saturating_sub(bytes));
        }
        kept
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Keep {
    fn add(self, kept: &mut Vec<u8>, chunk: &[u8]) {
        match self {
            Self::First(bytes) => {
                let room = (bytes + 1).saturating_sub(kept.len());
                kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
            }
            Self::Last(bytes) => {
                kept.extend_from_slice(chunk);
                // Cutting at twice the size moves each byte about once.
                if kept.len() > 2 * bytes {
                    kept.drain(..kept.len() - bytes);
                }
            }
        }
    }
}

/// The result that an output stands for: itself when it is JSON that a store can keep, else its text as a JSON string,
/// cut visibly where it would not fit `max_bytes`; nothing when it is blank.
pub(super) fn result_text(output: &[u8], max_bytes: usize) -> Option<JsonText> {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    if let Ok(json) = JsonText::with_limit("result", text, max_bytes) {
        return Some(json);
    }
    let string = string_within(text, max_bytes);
    Some(JsonText::with_limit("result", string, max_bytes).expect("a JSON string without U+0000 that fits is accepted"))
}

/// `text` as a JSON string of at most `max_bytes` bytes, quotes included.
fn string_within(text: &str, max_bytes: usize) -> String {
    const CUT_MARK: &str = " [cut]";
    let room = max_bytes.saturating_sub(CUT_MARK.len() + 2);
    let clean = text.replace('\0', "\u{fffd}");
    let mut length = 0;
    let mut end = clean.len();
    for (at, c) in clean.char_indices() {
        length += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if c < ' ' => 6,
            c => c.len_utf8(),
        };
        if length > room {
            end = at;
            break;
        }
    }
    let kept = if end == clean.len() { clean } else { format!("{}{CUT_MARK}", &clean[..end]) };
    serde_json::Value::String(kept).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(output: &[u8]) -> Option<String> {
        result_text(output, 1_000).map(|text| text.as_str().to_owned())
    }

    #[test]
    fn json_is_the_result_and_other_text_becomes_a_string() {
        for (output, expected) in [
            (&b""[..], None),
            (b" \n", None),
            (b"{\"b\":1, \"a\":1e400}\n", Some("{\"b\":1, \"a\":1e400}")),
            (b"true\n", Some("true")),
            (b"5 apples\n", Some("\"5 apples\"")),
            (b"two\nlines", Some("\"two\\nlines\"")),
            (b"{\"a\":1}\n{\"a\":2}\n", Some("\"{\\\"a\\\":1}\\n{\\\"a\\\":2}\"")),
            (b"a\0b", Some("\"a\u{fffd}b\"")),
            (b"\"\\u0000\"", Some("\"\\\"\\\\u0000\\\"\"")),
            (b"\xff", Some("\"\u{fffd}\"")),
        ] {
            assert_eq!(result(output).as_deref(), expected, "{output:?}");
        }
    }

    #[test]
    fn an_output_that_does_not_fit_is_cut_visibly() {
        for output in ["x".repeat(5_000), "\u{1}".repeat(5_000), "\"".repeat(5_000), format!("[{}]", "1,".repeat(900))]
        {
            let kept = result(output.as_bytes()).unwrap();
            assert!(kept.len() <= 1_000 && kept.ends_with(" [cut]\""), "{} bytes", kept.len());
        }
    }

    #[test]
    fn the_first_or_the_last_bytes_are_kept() {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for chunk in [&b"abc"[..], b"defgh", b"ij", b"k"] {
            Keep::First(4).add(&mut first, chunk);
            Keep::Last(4).add(&mut last, chunk);
        }
        assert_eq!(first, b"abcde");
        assert!(last.ends_with(b"hijk") && last.len() <= 8, "{last:?}");
    }

    #[tokio::test]
    async fn an_output_that_stays_open_is_waited_for_only_so_long() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let capture = Capture::of(Some(reader), Keep::Last(3));
        tokio::io::AsyncWriteExt::write_all(&mut writer, b"abcdef").await.unwrap();
        tokio::io::AsyncWriteExt::flush(&mut writer).await.unwrap();
        let kept = capture.finish(Duration::from_millis(200)).await;
        assert_eq!(kept, b"def");
        drop(writer);
    }
}
