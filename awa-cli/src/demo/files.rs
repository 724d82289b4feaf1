//! The files that the demo works on.

use std::env;
use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use walkdir::WalkDir;

use crate::failure::Failure;

/// How many entries of folders are looked at.
const MAX_ENTRIES: usize = 5_000_000;

/// The files that were found.
#[derive(Debug)]
pub(super) struct Found {
    /// Where they were looked for.
    pub(super) dir: PathBuf,
    /// Regular files that can be read, in the order of their paths.
    pub(super) files: Vec<FoundFile>,
    /// Files and folders that could not be read, or whose name is not UTF-8.
    pub(super) skipped: usize,
    /// There were more, and they were left out.
    pub(super) capped: bool,
}

/// A regular file, and what tells whether it has changed since.
#[derive(Clone, Debug)]
pub(super) struct FoundFile {
    pub(super) path: String,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FoundFile {
    fn new(path: String, metadata: &Metadata) -> Self {
        Self { path, bytes: metadata.len(), modified: metadata.modified().ok() }
    }

    /// Whether the file is not as it was when it was found.
    pub(super) fn has_changed(&self) -> bool {
        let Ok(metadata) = fs::metadata(&self.path) else { return true };
        metadata.len() != self.bytes || metadata.modified().ok() != self.modified
    }
}

impl Found {
    /// What was found, in a sentence.
    pub(super) fn describe(&self) -> String {
        let (files, dir) = (self.files.len(), self.dir.display());
        let capped = if self.capped { "; there are more, see --max-files" } else { "" };
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!("; {skipped} entries that cannot be read are left out"),
        };
        format!("{files} files under {dir}{capped}{skipped}")
    }
}

/// The sources in cargo's registry, else `/usr/share`.
pub(super) fn default_dir() -> Result<PathBuf, Failure> {
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let candidates = [cargo.map(|cargo| cargo.join("registry/src")), Some(PathBuf::from("/usr/share"))];
    let holds_something = |dir: &PathBuf| fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    let found = candidates.into_iter().flatten().find(holds_something);
    found.ok_or_else(|| Failure::new("found no folder to work on; name one: awa demo DIR"))
}

/// The regular files under `dir` that can be read, at most `max_files`.
pub(super) fn find(dir: &Path, max_files: usize) -> Result<Found, Failure> {
    let what = format!("looking into {}", dir.display());
    let dir = dir.canonicalize().map_err(|error| Failure::of(&what, &error))?;
    fs::metadata(&dir).map_err(|error| Failure::of(&what, &error)).and_then(|metadata| {
        let is_dir = metadata.is_dir();
        is_dir.then_some(()).ok_or_else(|| Failure::new(format!("{what}: it is no folder; name a folder of files")))
    })?;
    let mut found = Found { dir: dir.clone(), files: Vec::new(), skipped: 0, capped: false };
    for (looked_at, entry) in WalkDir::new(&dir).sort_by_file_name().into_iter().enumerate() {
        // An entry that vanished or cannot be read is none of the demo's business.
        let Ok(entry) = entry else {
            found.skipped += 1;
            continue;
        };
        if !entry.file_type().is_file() {
            continue;
        }
        if found.files.len() == max_files || looked_at >= MAX_ENTRIES {
            found.capped = true;
            break;
        }
        match readable(entry.path()) {
            Some(file) => found.files.push(file),
            None => found.skipped += 1,
        }
    }
    if found.files.is_empty() {
        return Err(Failure::new(format!("there are no files that can be read under {}; name another", dir.display())));
    }
    Ok(found)
}

fn readable(path: &Path) -> Option<FoundFile> {
    let metadata = File::open(path).ok()?.metadata().ok()?;
    Some(FoundFile::new(path.to_str()?.to_owned(), &metadata))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn regular_files_are_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["b", "a", "sub/c"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        symlink(dir.path().join("a"), dir.path().join("link")).unwrap();
        let found = find(dir.path(), 10).unwrap();
        let names: Vec<_> = found.files.iter().map(|file| file.path.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(!found.capped && found.skipped == 0);
        let capped = find(dir.path(), 2).unwrap();
        assert!(capped.capped && capped.files.len() == 2);
        assert!(capped.describe().contains("--max-files"), "{}", capped.describe());
    }

    #[test]
    fn a_folder_without_files_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(find(dir.path(), 10).unwrap_err().message().contains("no files"));
        assert!(find(&dir.path().join("missing"), 10).is_err());
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(find(&dir.path().join("file"), 10).unwrap_err().message().contains("no folder"));
    }

    #[test]
    fn a_change_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "one").unwrap();
        let file = find(dir.path(), 1).unwrap().files.remove(0);
        assert!(!file.has_changed());
        fs::write(&path, "three").unwrap();
        assert!(file.has_changed());
        fs::remove_file(&path).unwrap();
        assert!(file.has_changed());
    }
}
