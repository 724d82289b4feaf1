//! Lists the files under `sql/` in a table of (path, text), so that adding a file needs no list to be kept.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("sql");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();

    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&root).expect("found below it").with_extension("");
        let name = name.to_str().expect("names of SQL files are UTF-8").replace('\\', "/");
        let path = file.to_str().expect("the path of the checkout is UTF-8");
        writeln!(table, "    ({name:?}, include_str!({path:?})),").expect("a string takes any text");
    }
    table.push_str("]\n");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("sql_files.rs");
    fs::write(&out, table).expect("the build folder can be written");
}

/// Collects the SQL files below a folder; cargo looks at the folder again when something in it changes.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{} cannot be read: {error}", folder.display())) {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "sql") {
            files.push(path);
        }
    }
}
