//! The job of the demo: the SHA-256 of a file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use awa_runtime::{HandlerResult, Job, JobContext, Outcome};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Computes the SHA-256 of a file.
#[derive(Serialize, Deserialize, Job, Debug)]
#[job(kind = "awa_demo.hash_file", max_attempts = 10)]
pub(super) struct HashFile {
    /// The absolute path.
    pub(super) path: String,
}

/// The result of the job.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone, Debug)]
pub(super) struct FileHash {
    /// In hexadecimal; none when the file was no longer there.
    pub(super) sha256: Option<String>,
    /// The bytes that were read.
    pub(super) bytes: u64,
}

impl FileHash {
    /// Reads the file at `path`, piece by piece.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        const PIECE: usize = 64 << 10;
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self { sha256: None, bytes: 0 }),
            file => file?,
        };
        let (mut hash, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
        loop {
            match file.read(&mut piece)? {
                0 => break,
                length => {
                    hash.update(&piece[..length]);
                    bytes += length as u64;
                }
            }
        }
        Ok(Self { sha256: Some(hexadecimal(&hash.finalize())), bytes })
    }
}

/// Runs one attempt; blocks its thread.
#[expect(clippy::needless_pass_by_value, reason = "the shape of a handler")]
pub(super) fn handle(job: HashFile, cx: JobContext) -> HandlerResult {
    if cx.attempt() == 1 && fails_first(&job.path) {
        return Err("this demo lets one file in fifty fail on its first try".into());
    }
    Ok(Outcome::done_with(&FileHash::of(Path::new(&job.path))?))
}

/// Whether the first try at this file fails; decided by the path, so that it is the same in every process.
fn fails_first(path: &str) -> bool {
    const ONE_IN: u16 = 50;
    let hash = Sha256::digest(path.as_bytes());
    u16::from_be_bytes([hash[0], hash[1]]).is_multiple_of(ONE_IN)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_hash_is_the_one_that_the_standard_gives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        fs::write(&path, "abc").unwrap();
        let hash = FileHash::of(&path).unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hash.sha256.as_deref(), hash.bytes), (Some(expected), 3));
        fs::write(&path, vec![b'a'; 1_000_000]).unwrap();
        let million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(FileHash::of(&path).unwrap().sha256.as_deref(), Some(million));
    }

    #[test]
    fn a_file_that_is_gone_has_no_hash_and_one_that_cannot_be_read_is_an_error() {
        assert_eq!(FileHash::of(Path::new("/nonexistent/file")).unwrap().sha256, None);
        assert!(FileHash::of(Path::new("/")).is_err());
    }

    #[test]
    fn about_one_file_in_fifty_fails_first() {
        let failing = (0..10_000).filter(|n| fails_first(&format!("/some/file-{n}"))).count();
        assert!((120..280).contains(&failing), "{failing}");
    }
}
