//! Texts without passwords, for whatever a driver may put into its messages.

/// The text with every password of a URL or of a `password=` setting replaced by stars.
pub fn without_passwords(text: &str) -> String {
    hide_settings(&hide_urls(text))
}

/// Hides what stands between the first colon and the last `@` of a URL.
fn hide_urls(text: &str) -> String {
    const AFTER_SCHEME: &str = "://";
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme) = rest.find(AFTER_SCHEME) {
        let (head, tail) = rest.split_at(scheme + AFTER_SCHEME.len());
        clean.push_str(head);
        // A password that was not percent-encoded may hold any character but a blank, also slashes and quotes, so
        // the last `@` of the whole word ends it.
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
    clean.push_str(rest);
    clean
}

/// Hides the value after `password=`, as in a connection string of keys and values or in the query of a URL.
fn hide_settings(text: &str) -> String {
    const SETTING: &str = "password=";
    let mut clean = String::with_capacity(text.len());
    // Every byte keeps its place.
    let lower = text.to_ascii_lowercase();
    let mut done = 0;
    while let Some(start) = lower[done..].find(SETTING) {
        let after = done + start + SETTING.len();
        clean.push_str(&text[done..after]);
        clean.push_str("***");
        let is_quoted = text[after..].starts_with('\'');
        let value = &text[after + usize::from(is_quoted)..];
        let ends_value = |c: char| {
            let ends_bare = c.is_whitespace() || matches!(c, '&' | '"' | '\'' | ')');
            if is_quoted { c == '\'' } else { ends_bare }
        };
        let end = value.find(ends_value).map_or(value.len(), |end| end + usize::from(is_quoted));
        done = after + usize::from(is_quoted) + end;
    }
    clean.push_str(&text[done..]);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_and_the_rest_is_kept() {
        for (text, clean) in [
            ("no url here", "no url here"),
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            ("at postgres://me:secret@host:5432/db: refused", "at postgres://me:***@host:5432/db: refused"),
            ("postgres://me:se:cr/e@t@host/db", "postgres://me:***@host/db"),
            ("postgres://:secret@host", "postgres://:***@host"),
            ("(\"postgres://me:sec\"ret@host/db\")", "(\"postgres://me:***@host/db\")"),
            ("a://b:secret@c and d://e:secret@f", "a://b:***@c and d://e:***@f"),
            ("host=h password=secret user=u", "host=h password=*** user=u"),
            ("host=h PASSWORD='secret word' user=u", "host=h PASSWORD=*** user=u"),
            ("postgres://h/db?user=u&password=secret&x=y", "postgres://h/db?user=u&password=***&x=y"),
            ("password='secret", "password=***"),
        ] {
            assert_eq!(without_passwords(text), clean, "{text}");
        }
    }
}
