//! The order in which objects are created.

use std::collections::BTreeMap;

use super::SqlFile;
use super::template::{TemplateError, header_value};

/// The object files, each after the files its header depends on, else by path.
pub(super) fn by_dependency(files: &[SqlFile]) -> Result<Vec<SqlFile>, TemplateError> {
    let mut waiting = BTreeMap::new();
    for &(path, text) in files {
        let names = header_value(text, "depends on").unwrap_or_default().split(',').map(str::trim);
        let needs: Vec<String> = names.filter(|name| !name.is_empty()).map(|name| format!("objects/{name}")).collect();
        if let Some(unknown) = needs.iter().find(|need| !files.iter().any(|(path, _)| path == need)) {
            return Err(TemplateError::new(path, None, format!("it depends on sql/{unknown}.sql, which is not there")));
        }
        waiting.insert(path, (text, needs));
    }

    let mut ordered: Vec<SqlFile> = Vec::with_capacity(files.len());
    while let Some((&first, _)) = waiting.first_key_value() {
        let next = waiting.iter().find(|(_, (_, needs))| !needs.iter().any(|need| waiting.contains_key(need.as_str())));
        let Some((&path, &(text, _))) = next else {
            return Err(TemplateError::new(first, None, "it depends on itself, directly or through others"));
        };
        waiting.remove(path);
        ordered.push((path, text));
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(files: &[SqlFile]) -> Vec<&'static str> {
        by_dependency(files).unwrap().into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn objects_come_after_what_they_depend_on_and_else_by_name() {
        let files = [
            ("objects/a", "-- Purpose: x\n-- depends on: c, d\nSELECT 1;"),
            ("objects/b", "SELECT 1;"),
            ("objects/c", "-- depends on: d\n"),
            ("objects/d", "-- depends on:\n"),
        ];
        assert_eq!(ordered(&files), ["objects/b", "objects/d", "objects/c", "objects/a"]);
    }

    #[test]
    fn a_cycle_and_an_unknown_name_are_refused() {
        let cycle = [("objects/a", "-- depends on: b\n"), ("objects/b", "-- depends on: a\n")];
        assert!(by_dependency(&cycle).unwrap_err().problem.contains("depends on itself"));
        let unknown = [("objects/a", "-- depends on: z\n")];
        assert!(by_dependency(&unknown).unwrap_err().to_string().contains("sql/objects/z.sql, which is not there"));
    }

    #[test]
    fn a_dependency_named_outside_the_header_does_not_count() {
        let files = [("objects/a", "SELECT 1;\n-- depends on: b\n"), ("objects/b", "SELECT 1;")];
        assert_eq!(ordered(&files), ["objects/a", "objects/b"]);
    }
}
