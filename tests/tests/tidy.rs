//! Rules of the house that a machine can check. What each crate must not know is said in `docs/architecture.md`; here it
//! is enforced.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest file of Rust, in lines.
const MAX_FILE_LINES: usize = 700;
/// The longest function, in lines from its signature to its closing brace.
const MAX_FUNCTION_LINES: usize = 80;

/// What each crate may depend on among the crates of this workspace, besides itself. A missing line is a failure, so that
/// a new crate is placed on the map on purpose.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("awa-core", &[]),
    ("awa-macros", &["awa-core"]),
    ("awa-store-mem", &["awa-core"]),
    ("awa-pg", &["awa-core"]),
    ("awa-store-sqlx", &["awa-core", "awa-pg"]),
    ("awa-store-diesel", &["awa-core", "awa-pg"]),
    ("awa-conformance", &["awa-core"]),
    ("awa-runtime", &["awa-core", "awa-macros"]),
    ("awa-cli", &["awa-core", "awa-pg", "awa-runtime", "awa-store-mem", "awa-store-sqlx", "awa-store-diesel"]),
    (
        "tests",
        &[
            "awa-core",
            "awa-pg",
            "awa-store-sqlx",
            "awa-store-diesel",
            "awa-store-mem",
            "awa-runtime",
            "awa-conformance",
        ],
    ),
    ("sqlite-store", &["awa-core"]),
    ("testing-jobs", &["awa-core", "awa-runtime"]),
    ("xtask", &[]),
    ("bench", &["awa-core", "awa-pg", "awa-runtime", "awa-store-sqlx"]),
];

/// Words that must not stand in the sources of a crate, with the reason.
const MUST_NOT_NAME: &[(&str, &[&str], &str)] = &[
    (
        "awa-core",
        &[
            "SystemTime::now",
            "Instant::now",
            "rand::",
            "thread_rng",
            "getrandom",
            "tokio",
            "sqlx",
            "std::fs",
            "std::net",
        ],
        "core neither reads a clock, draws a random number nor does I/O",
    ),
    ("awa-pg", &["sqlx::", "diesel", "tokio_postgres"], "awa-pg names no driver"),
    ("awa-runtime", &["SqlxStore", "MemStore", "sqlstate", "SQLSTATE", "awa_pg"], "the runtime knows traits only"),
    ("awa-conformance", &["tokio::", "sqlx", "awa_pg"], "the suite opens no connection and needs no runtime"),
    ("awa-store-sqlx", &["StoreErrorKind::Contended", "sqlstate"], "an adapter decides nothing"),
    ("awa-store-diesel", &["StoreErrorKind::Contended", "sqlstate"], "an adapter decides nothing"),
];

/// Beginnings of SQL statements. In Rust sources outside the tests they may not stand in a string.
const SQL_VERBS: &[&str] =
    &["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "TRUNCATE ", "LOCK TABLE", "CREATE TABLE"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the workspace").to_owned()
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.map(|entry| entry.expect("a folder can be listed").path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn crates() -> Vec<PathBuf> {
    let mut crates: Vec<_> = [root(), root().join("examples")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("the workspace can be listed"))
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .collect();
    crates.sort();
    crates
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn must_be_empty(what: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{what}:\n  {}", faults.join("\n  "));
}

/// Lines of code before the tests of the file, numbered from one, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let until = text.find("\n#[cfg(test)]").unwrap_or(text.len());
    text[..until]
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn crates_depend_only_on_what_the_map_allows() {
    let allowed: BTreeMap<_, _> = MAY_DEPEND_ON.iter().copied().collect();
    let mut faults = Vec::new();
    for folder in crates() {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("crate names are text").to_owned();
        let Some(allowed) = allowed.get(name.as_str()) else {
            faults.push(format!("{name} is not on the map"));
            continue;
        };
        let manifest = read(&folder.join("Cargo.toml"));
        let mut section = "";
        for line in manifest.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line;
            }
            // Tests of a crate may use others.
            let own = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if section == "[dependencies]" && own.starts_with("awa-") && !allowed.contains(&own) {
                faults.push(format!("{name} depends on {own}"));
            }
        }
    }
    must_be_empty("crates that depend on what they must not know", &faults);
}

#[test]
fn crates_do_not_name_what_they_must_not_know() {
    let mut faults = Vec::new();
    for (name, words, reason) in MUST_NOT_NAME {
        for path in files(&root().join(name).join("src"), ".rs") {
            for (number, line) in code_lines(&read(&path)) {
                let found = words.iter().filter(|word| line.contains(**word));
                faults.extend(found.map(|word| format!("{}:{number} names {word}: {reason}", shown(&path))));
            }
        }
    }
    must_be_empty("words in the wrong crate", &faults);
}

#[test]
fn sql_stands_only_in_sql_files() {
    let mut faults = Vec::new();
    // A store of somebody else's has SQL of its own, and so have other queues.
    let own = ["tests", "sqlite-store", "bench"];
    for folder in crates().into_iter().filter(|folder| !own.iter().any(|name| folder.ends_with(name))) {
        for path in files(&folder.join("src"), ".rs") {
            if shown(&path).starts_with("awa-pg/src/cluster")
                || ["tests.rs", "tidy.rs"].iter().any(|end| shown(&path).ends_with(end))
            {
                continue; // what a throw-away server needs to be set up, and the loader's own examples
            }
            for (number, line) in code_lines(&read(&path)) {
                let quoted = SQL_VERBS.iter().any(|verb| line.contains(&format!("\"{verb}")));
                // The one statement that ends a transaction has no schema and no parameters.
                if quoted && !line.contains("SELECT 1; COMMIT") {
                    faults.push(format!("{}:{number}: {}", shown(&path), line.trim()));
                }
            }
        }
    }
    must_be_empty("SQL outside awa-pg/sql", &faults);
}

#[test]
fn drivers_are_named_in_one_file_of_the_command() {
    let names = ["SqlxStore", "DieselStore", "sqlx::", "diesel", "awa_store_sqlx", "awa_store_diesel"];
    let mut faults = Vec::new();
    for path in files(&root().join("awa-cli/src"), ".rs") {
        if shown(&path).ends_with("src/driver.rs") {
            continue;
        }
        for (number, line) in code_lines(&read(&path)) {
            let found = names.iter().filter(|name| line.contains(**name));
            faults.extend(found.map(|name| format!("{}:{number} names {name}", shown(&path))));
        }
    }
    must_be_empty("drivers outside awa-cli/src/driver.rs", &faults);
}

/// Diesel hides the SQLSTATE of an error and shows the constraint that it names.
#[test]
fn errors_of_the_schema_name_their_code_as_a_constraint_too() {
    let mut faults = Vec::new();
    for path in files(&root().join("awa-pg/sql"), ".sql") {
        for (number, line) in read(&path).lines().enumerate() {
            for (at, _) in line.match_indices("ERRCODE = 'AW") {
                let code = &line[at + "ERRCODE = '".len()..][..5];
                if !line.contains(&format!("CONSTRAINT = '{code}'")) {
                    faults.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
                }
            }
        }
    }
    must_be_empty("errors that diesel cannot tell; write USING ERRCODE = 'AWnnn', CONSTRAINT = 'AWnnn'", &faults);
}

#[test]
fn every_statement_file_is_used() {
    let sources: String = files(&root().join("awa-pg/src"), ".rs").iter().map(|path| read(path)).collect();
    let folder = root().join("awa-pg/sql/statements");
    let unused: Vec<_> = files(&folder, ".sql")
        .iter()
        .map(|path| path.strip_prefix(&folder).expect("it is below").with_extension("").display().to_string())
        .filter(|name| !sources.contains(&format!("\"{name}\"")))
        .collect();
    must_be_empty("statements that nobody sends", &unused);
}

#[test]
fn every_function_of_the_schema_is_called() {
    let folder = root().join("awa-pg/sql");
    let all: Vec<_> = files(&folder, ".sql").iter().map(|path| (path.clone(), read(path))).collect();
    let mut unused = Vec::new();
    for (path, _) in all.iter().filter(|(path, _)| path.starts_with(folder.join("objects"))) {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("file names are text");
        let stem = format!("awa.{name}");
        let is_called = all.iter().any(|(other, text)| {
            other != path
                && text.lines().filter(|line| !line.starts_with("--")).any(|line| {
                    line.match_indices(&stem)
                        .any(|(at, _)| !line[at + stem.len()..].starts_with(|c: char| c == '_' || c.is_alphanumeric()))
                })
        });
        // Read by people.
        if !is_called && name != "terminal_jobs" {
            unused.push(shown(path));
        }
    }
    must_be_empty("functions and views that nobody uses", &unused);
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut faults = Vec::new();
    for path in crates().iter().flat_map(|folder| files(folder, ".rs")) {
        let lines = read(&path).lines().count();
        if lines > MAX_FILE_LINES {
            faults.push(format!("{}: {lines} lines, at most {MAX_FILE_LINES}", shown(&path)));
        }
    }
    must_be_empty("files that are too long", &faults);
}

#[test]
fn no_function_is_too_long_to_read() {
    let mut faults = Vec::new();
    for path in crates().iter().flat_map(|folder| files(folder, ".rs")) {
        let text = read(&path);
        let lines: Vec<_> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let code = line.trim_start();
            let is_function = ["fn ", "pub fn ", "async fn ", "pub async fn ", "const fn ", "pub const fn "]
                .iter()
                .any(|keyword| code.starts_with(keyword))
                || code.starts_with("pub(") && code.contains(" fn ");
            if !is_function || code.ends_with(';') {
                continue;
            }
            let end = format!("{}}}", " ".repeat(indent));
            let length = lines[start..].iter().take_while(|line| ***line != end).count() + 1;
            let is_one_line = line.trim_end().ends_with('}');
            if !is_one_line && length > MAX_FUNCTION_LINES {
                faults.push(format!("{}:{}: {length} lines, at most {MAX_FUNCTION_LINES}", shown(&path), start + 1));
            }
        }
    }
    must_be_empty("functions that are too long", &faults);
}

#[test]
fn nothing_is_left_unfinished_or_named_after_a_ticket() {
    let marks =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("#[ig", "nore"), concat!("/wo", "rk/")];
    let mut faults = Vec::new();
    for ending in [".rs", ".sql", ".md", ".toml", ".sh"] {
        for path in files(&root(), ending) {
            for (number, line) in read(&path).lines().enumerate() {
                let found = marks.iter().filter(|mark| line.contains(**mark));
                faults.extend(found.map(|mark| format!("{}:{}: {mark}", shown(&path), number + 1)));
            }
        }
    }
    must_be_empty("unfinished places", &faults);
}
