//! The house rules for the files under `sql/`, checked over all of them.

use super::*;

/// What the header of an object or a statement must say.
const HEADER: [&str; 5] = ["Purpose", "Parameters", "Returns", "Locks", "Caller"];

/// A name whose every character is dangerous somewhere in an SQL text.
const HOSTILE: &str = "a\"'; $$ $f$ \\ */ /* -- \n%s %";

/// What is wrong with a file, one sentence each.
fn faults(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if path.starts_with("migrations/") {
        if !matches!(text.lines().next(), Some("-- additive" | "-- breaking")) {
            faults.push(format!("{path}: the first line is \"-- additive\" or \"-- breaking\""));
        }
    } else {
        let missing = HEADER.iter().filter(|key| template::header_value(text, key).is_none());
        faults.extend(missing.map(|key| format!("{path}: the header has no line \"-- {key}: ...\"")));
    }
    if !text.ends_with('\n') {
        faults.push(format!("{path}: the last line does not end"));
    }
    for (line, number) in text.lines().zip(1..) {
        let code = line.split("--").next().unwrap_or_default();
        // In quotes `awa.` begins the name of a setting, unless the literal is read as the name of an object.
        let reads_names = code.contains("::reg") || code.contains("val(");
        let is_unmarked = |before: &str| match before.chars().next_back() {
            Some('\'') => reads_names,
            Some(last) => !before.ends_with("/*schema*/") && !last.is_alphanumeric() && last != '_',
            None => true,
        };
        if code.match_indices("awa.").any(|(start, _)| is_unmarked(&code[..start])) {
            faults.push(format!("{path} line {number}: a name in the schema has no mark"));
        }
        // PL/pgSQL reads the name before it by itself, and does not know names with escapes.
        if ["%rowtype", "%type"].iter().any(|reference| code.to_ascii_lowercase().contains(reference)) {
            faults.push(format!("{path} line {number}: a variable is declared with the name of its type"));
        }
        if code.contains(".*") || code.to_ascii_uppercase().contains("SELECT *") {
            faults.push(format!("{path} line {number}: columns are named one by one"));
        }
        // Functions close the path, so that nothing in it can stand in for what PostgreSQL brings along.
        let open_path = code.to_ascii_lowercase().replace("set search_path = pg_catalog, pg_temp", "");
        if open_path.contains("search_path") {
            faults.push(format!("{path} line {number}: the search path decides nothing, names are qualified"));
        }
    }
    faults
}

#[test]
fn every_sql_file_has_its_header_and_marks() {
    let faults: Vec<String> = FILES.iter().flat_map(|(path, text)| faults(path, text)).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    assert!(FILES.iter().any(|(path, _)| path.starts_with("migrations/")), "the files were found");
}

/// What a header names as callers, apart from phrases for people.
fn named_callers(text: &str) -> Vec<String> {
    let header =
        text.lines().map_while(|line| line.strip_prefix("--")).skip_while(|line| !line.starts_with(" Caller:"));
    let more = header.clone().skip(1).take_while(|line| line.starts_with("   "));
    let all: String = header.take(1).chain(more).map(|line| line.trim().trim_start_matches("Caller:")).collect();
    let words = all.split([',', ';']).map(|word| word.trim().trim_end_matches('.'));
    let name = |word: &str| word.rsplit("::").next().unwrap_or(word).to_owned();
    let is_name = |word: &String| word.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit());
    words.filter(|word| !word.is_empty()).map(name).filter(is_name).collect()
}

#[test]
fn every_caller_that_a_header_names_is_there() {
    let files = FILES.iter().filter_map(|(path, _)| path.rsplit('/').next());
    let mut known: std::collections::HashSet<String> = files.map(str::to_owned).collect();
    let store = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let mut folders = vec![store];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            let names = text.match_indices("fn ").map(|(at, _)| {
                text[at + 3..].chars().take_while(|c| *c == '_' || c.is_ascii_alphanumeric()).collect::<String>()
            });
            known.extend(names);
        }
    }
    known.insert("dashboards".to_owned());
    let missing: Vec<_> = FILES
        .iter()
        .flat_map(|(path, text)| named_callers(text).into_iter().map(move |caller| (path, caller)))
        .filter(|(_, caller)| !known.contains(caller))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert_eq!(named_callers("-- Caller: a, Consumer::b,\n--   the view c, d_0.\nx"), ["a", "b", "d_0"]);
}

#[test]
fn every_sql_file_renders_for_a_hostile_schema_without_a_mark_left() {
    for schema in ["awa", HOSTILE] {
        let schema = SchemaName::new(schema).unwrap();
        let sql = Sql::new(&schema, RingSizes::default());
        let statements = sql.statements().map(|statement| statement.text.to_string());
        let objects = sql.objects.iter().map(|object| object.text.clone());
        let migrations = sql.migrations.iter().map(|migration| migration.text.clone());
        for text in statements.chain(objects).chain(migrations) {
            assert!(!text.contains("/*") && !text.contains("*/"), "{text}");
            assert!(!text.contains("-- each ") && !text.contains("-- end each"), "{text}");
            if schema.as_str() == HOSTILE {
                assert!(!text.contains(HOSTILE), "{text}");
            }
        }
    }
}

#[test]
fn a_program_sends_the_same_statements_whatever_the_sizes_of_the_rings() {
    let of = |rings| Sql::new(&SchemaName::default(), rings);
    let (small, large) =
        (of(RingSizes { queue: 4, claim: 4, lease: 4 }), of(RingSizes { queue: 9, claim: 9, lease: 9 }));
    // A ring may grow under a program that runs.
    // Of a statement for each slot there are only more.
    let slices = |name: &str| (small.statements[name].as_slice(), large.statements[name].as_slice());
    let differ = |name: &&str| {
        let (few, many) = slices(name);
        !many.starts_with(few)
    };
    assert_eq!(small.statement_names().into_iter().filter(differ).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_function_that_meets_a_slot_it_has_no_branch_for_says_so() {
    let mut silent = Vec::new();
    for (path, text) in FILES.iter().filter(|(path, _)| path.starts_with("objects/")) {
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for at in (1..lines.len() - 1).filter(|at| lines[*at] == "-- end each") {
            let refuses = lines[at..].iter().skip(1).take(2).any(|line| line.contains("awa.refuse_unknown_slot("));
            let is_branch =
                lines[..at].iter().rev().find(|line| line.starts_with("-- each ") || line.starts_with("WHEN 0/*"));
            if is_branch.is_some_and(|line| line.starts_with("WHEN")) && !refuses {
                silent.push(format!("{path} line {}", at + 1));
            }
        }
    }
    assert!(silent.is_empty(), "a CASE over slots without ELSE PERFORM refuse_unknown_slot:\n{}", silent.join("\n"));
}

#[test]
fn the_checks_find_what_they_look_for() {
    let header = "-- Purpose: a\n-- Parameters: none\n-- Returns: b\n-- Locks: none\n-- Caller: c\n";
    let of = |path: &str, text: &str| faults(path, text).len();
    assert_eq!(of("objects/x", &format!("{header}SELECT /*schema*/awa.f(), my_awa.x; -- awa.t is meant\n")), 0);
    assert_eq!(of("objects/x", "SELECT 1;\n"), HEADER.len());
    assert_eq!(of("objects/x", &format!("SELECT 1;\n{header}")), HEADER.len());
    assert_eq!(of("objects/x", &format!("{header}SELECT awa.f();\n")), 1);
    assert_eq!(of("objects/x", &format!("{header}SELECT '/*schema*/awa', 'awa.f'::regproc;\n")), 1);
    assert_eq!(of("objects/x", &format!("{header}SELECT set_config('awa.slot', '1', true);\n")), 0);
    assert_eq!(of("objects/x", &format!("{header}awa.f();\n")), 1);
    assert_eq!(of("objects/x", &format!("{header}SELECT nextval('awa.ids');\n")), 1);
    assert_eq!(of("objects/x", &format!("{header}v_row /*schema*/awa.t%ROWTYPE;\n")), 1);
    assert_eq!(of("objects/x", &format!("{header}SET search_path = x;\n")), 1);
    assert_eq!(of("objects/x", &format!("{header}SET jit = off SET search_path = pg_catalog, pg_temp\n")), 0);
    assert_eq!(of("objects/x", &format!("{header}SELECT t.*, 3 * 4 FROM /*schema*/awa.t;\n")), 1);
    assert_eq!(of("statements/x", &format!("{header}SELECT 1;")), 1);
    assert_eq!(of("migrations/0001_x", "CREATE TABLE /*schema*/awa.t ();\n"), 1);
    assert_eq!(of("migrations/0001_x", "-- additive\nCREATE TABLE /*schema*/awa.t ();\n"), 0);
}
