//! The pages under `docs/` are true: their Rust is taken from examples that are compiled and run.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a folder of the workspace")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// Every block of Rust on the page stands in the example as it is shown.
#[track_caller]
fn is_taken_from(page: &str, example: &str) {
    let text = fs::read_to_string(root().join("docs").join(page)).expect("the page is there");
    let sources: Vec<String> = rust_files(&root().join("examples").join(example))
        .iter()
        .map(|path| fs::read_to_string(path).expect("a source can be read"))
        .collect();
    let blocks: Vec<&str> =
        text.split("```rust\n").skip(1).map(|rest| rest.split_once("```").expect("a block ends").0).collect();
    assert!(blocks.len() >= 5, "{page} shows only {} blocks", blocks.len());
    for block in blocks {
        assert!(sources.iter().any(|source| source.contains(block)), "{page} shows what is not in {example}:\n{block}");
    }
}

#[test]
fn the_page_on_testing_shows_the_example_that_is_run() {
    is_taken_from("testing-your-jobs.md", "testing-jobs");
}

#[test]
fn the_page_on_stores_shows_the_example_that_is_run() {
    is_taken_from("custom-store.md", "sqlite-store");
}

/// A test that was renamed would leave a table that proves nothing.
#[test]
fn the_tests_that_the_tables_name_are_there() {
    let crates = ["awa-cli", "awa-conformance", "awa-core", "awa-pg", "awa-runtime", "awa-store-mem", "tests"];
    let sources: String = crates
        .iter()
        .flat_map(|name| rust_files(&root().join(name)))
        .map(|path| fs::read_to_string(path).expect("a source can be read"))
        .collect();
    for page in ["bug-classes.md", "correctness.md", "findings.md"] {
        let text = fs::read_to_string(root().join("docs").join(page)).expect("the page is there");
        let rows = text.lines().filter(|line| line.starts_with("| "));
        let names = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        // The names of tests are sentences.
        let is_test = |name: &&str| name.matches('_').count() >= 3 && !name.contains(['(', ' ', '.']);
        let tests: Vec<&str> = names.filter(is_test).collect();
        assert!(tests.len() >= 30, "{page} names only {} tests", tests.len());
        for test in tests {
            assert!(sources.contains(&format!("fn {test}(")), "{page} names {test}, which is not there");
        }
    }
}
