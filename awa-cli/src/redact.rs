//! No password leaves this program in a message.
//!
//! Stores keep passwords out of their errors themselves; this is the second lock on the same door, for whatever else
//! is printed.

/// `text` with the password of every URL in it replaced by stars.
///
/// A password that was not percent-encoded may hold any character but a blank, so the last `@` of the word ends it.
pub(crate) fn without_password(text: &str) -> String {
    const AFTER_SCHEME: &str = "://";
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(AFTER_SCHEME) {
        let (head, tail) = rest.split_at(at + AFTER_SCHEME.len());
        clean.push_str(head);
        let word = &tail[..tail.find(char::is_whitespace).unwrap_or(tail.len())];
        let host = word.rfind('@').unwrap_or(0);
        match word[..host].find(':') {
            Some(colon) => {
                clean.push_str(&word[..=colon]);
                clean.push_str("***");
            }
            None => clean.push_str(&word[..host]),
        }
        rest = &tail[host..];
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_url_becomes_stars() {
        for (text, clean) in [
            ("nothing to hide", "nothing to hide"),
            ("at postgres://me:secret@host:5432/db now", "at postgres://me:***@host:5432/db now"),
            ("postgres://me:p@ss:w@host", "postgres://me:***@host"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            ("postgres:///db and x://a:b@c", "postgres:///db and x://a:***@c"),
        ] {
            assert_eq!(without_password(text), clean);
        }
    }
}
