//! What the server's words tell where a driver hides the SQLSTATE.

/// The beginnings and parts of PostgreSQL's English messages, with the SQLSTATE that stands for them. A server that speaks
/// another language is not understood, and its errors count as unexpected, which is safe: nothing depends on more.
const KNOWN: &[(&[&str], &str)] = &[
    (&["deadlock detected"], "40P01"),
    (&["could not serialize access"], "40001"),
    (&["could not obtain lock on", "canceling statement due to lock timeout"], "55P03"),
    (&["canceling statement due to"], "57014"),
    (&["current transaction is aborted"], "25P02"),
    (&["terminating connection due to idle-in-transaction timeout"], "25P03"),
    (&["terminating connection due to transaction timeout"], "25P04"),
    (&["terminating connection due to", "terminating background worker"], "57P01"),
    (&["the database system is"], "57P03"),
    (&["sorry, too many clients", "remaining connection slots", "too many connections for"], "53300"),
    (&["permission denied", "must be owner of", "must be superuser", "must have admin option"], "42501"),
    (&["password authentication failed", "no pg_hba.conf entry"], "28P01"),
    (&["unsupported Unicode escape sequence"], "22P05"),
    (&["invalid input syntax for", "malformed array literal"], "22P02"),
    (&["invalid byte sequence for encoding", "character with byte sequence"], "22021"),
    (&["value too long for type"], "22001"),
    (&["value out of range", "timestamp out of range", "interval out of range"], "22003"),
    (&["could not extend file", "could not write to file"], "53100"),
    (&["out of memory", "out of shared memory", "could not resize shared memory"], "53200"),
    (&["invalid page in block", "missing chunk number", "could not read block"], "XX001"),
    (&["invalid memory alloc request size"], "54000"),
    (&["stack depth limit exceeded"], "54001"),
];

/// Things whose absence is told as `relation "awa.jobs" does not exist`, with the SQLSTATE of it.
const ABSENT: &[(&str, &str)] = &[
    ("relation", "42P01"),
    ("table", "42P01"),
    ("view", "42P01"),
    ("function", "42883"),
    ("operator", "42883"),
    ("column", "42703"),
    ("schema", "3F000"),
    ("database", "3D000"),
    ("role", "28000"),
];

/// The SQLSTATE of an error by the server's message, or by the constraint that it names, which Awa's own functions use to
/// tell theirs. `None` when it is not known.
pub(super) fn sqlstate(message: &str, constraint: Option<&str>) -> Option<&'static str> {
    if let Some(own) = ["AW001", "AW002", "AW003"].into_iter().find(|own| constraint == Some(own)) {
        return Some(own);
    }
    let known = KNOWN.iter().find(|(words, _)| words.iter().any(|words| message.starts_with(words)));
    let absent = || {
        let begins = |thing: &str| message.strip_prefix(thing).is_some_and(|rest| rest.starts_with(' '));
        let is_absence = message.contains(" does not exist");
        ABSENT.iter().find(|(thing, _)| is_absence && begins(thing)).map(|(_, code)| *code)
    };
    let taken = || (message.starts_with("relation ") && message.ends_with(" already exists")).then_some("42P07");
    known.map(|(_, code)| *code).or_else(absent).or_else(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_server_are_known_by_their_words() {
        for (message, code) in [
            ("deadlock detected", "40P01"),
            ("could not serialize access due to concurrent update", "40001"),
            ("could not obtain lock on relation \"x\"", "55P03"),
            ("canceling statement due to lock timeout", "55P03"),
            ("canceling statement due to statement timeout", "57014"),
            ("terminating connection due to idle-in-transaction timeout", "25P03"),
            ("terminating connection due to administrator command", "57P01"),
            ("relation \"awa.jobs\" does not exist", "42P01"),
            ("relation \"jobs\" already exists", "42P07"),
            ("function awa.claim_jobs(text, unknown) does not exist", "42883"),
            ("column j.odd does not exist", "42703"),
            ("schema \"awa\" does not exist", "3F000"),
            ("permission denied for schema awa", "42501"),
        ] {
            assert_eq!(sqlstate(message, None), Some(code), "{message}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for message in
            ["", "Verklemmung entdeckt", "it does not exist", "relationship does not exist", "division by zero"]
        {
            assert_eq!(sqlstate(message, Some("jobs_pkey")), None, "{message}");
        }
    }

    #[test]
    fn errors_of_functions_of_awa_are_known_by_the_constraint_that_they_name() {
        assert_eq!(sqlstate("schema \"x\" does not exist", Some("AW001")), Some("AW001"));
        assert_eq!(sqlstate("eine Meldung", Some("AW003")), Some("AW003"));
    }
}
