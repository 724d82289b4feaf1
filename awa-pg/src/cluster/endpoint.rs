//! A server that can be reached, ours or somebody else's.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use super::binaries::{self, Binaries};
use super::error::ClusterError;

/// How to reach the databases of a server, by URL and by `psql`.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// The URL up to the database, with the slash before it.
    before_database: String,
    /// The URL after the database: empty, or from the question mark on.
    after_database: String,
    psql: PathBuf,
}

impl Endpoint {
    /// A throw-away server on this machine.
    pub(super) fn local(port: u16, binaries: &Binaries) -> Result<Self, ClusterError> {
        Ok(Self {
            before_database: format!("postgres://postgres@127.0.0.1:{port}/"),
            after_database: String::new(),
            psql: binaries.tool("psql")?,
        })
    }

    /// The server of a URL, and the database that the URL names.
    pub(super) fn of_url(url: &str) -> Result<Self, ClusterError> {
        let scheme = url.find("://").ok_or(ClusterError::BadUrl)? + "://".len();
        let slash = scheme + url[scheme..].find('/').ok_or(ClusterError::BadUrl)?;
        let (before, path) = url.split_at(slash + 1);
        let query = path.find('?').unwrap_or(path.len());
        if query == 0 || !before.starts_with("postgres") {
            return Err(ClusterError::BadUrl);
        }
        Ok(Self {
            before_database: before.to_owned(),
            after_database: path[query..].to_owned(),
            psql: binaries::client()?,
        })
    }

    pub(super) fn url(&self, database: &str) -> String {
        let mut url = self.before_database.clone();
        for byte in database.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => url.push(char::from(byte)),
                _ => write!(url, "%{byte:02X}").expect("a string takes any text"),
            }
        }
        url + &self.after_database
    }

    pub(super) fn psql(&self, database: &str, sql: &str) -> Result<String, ClusterError> {
        let not_run = |source| ClusterError::NotRun { program: self.psql.display().to_string(), source };
        let mut child = binaries::command(&self.psql)
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database), "-f", "-"])
            .env("PGCONNECT_TIMEOUT", "10")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(not_run)?;
        let mut input = child.stdin.take();
        // The script is sent beside the reading of the output, since either pipe may fill up.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || input.take().map(|mut input| input.write_all(sql.as_bytes())));
            child.wait_with_output()
        });
        let output = output.map_err(not_run)?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(ClusterError::Failed { program: "psql".to_owned(), output });
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.ends_with('\n') {
            text.pop();
        }
        Ok(text)
    }

    pub(super) fn create_database(&self, name: &str, template: Option<&str>) -> Result<(), ClusterError> {
        let template = template.map(|template| format!(" TEMPLATE {}", quoted(template))).unwrap_or_default();
        self.psql(MAINTENANCE_DATABASE, &format!("CREATE DATABASE {}{template};", quoted(name))).map(drop)
    }

    pub(super) fn drop_database(&self, name: &str) -> Result<(), ClusterError> {
        let script = format!("DROP DATABASE IF EXISTS {} WITH (FORCE);", quoted(name));
        self.psql(MAINTENANCE_DATABASE, &script).map(drop)
    }

    pub(super) fn has_database(&self, name: &str) -> Result<bool, ClusterError> {
        let script = format!("SELECT 1 FROM pg_database WHERE datname = '{}';", name.replace('\'', "''"));
        self.psql(MAINTENANCE_DATABASE, &script).map(|found| found == "1")
    }

    pub(super) fn rename_database(&self, from: &str, to: &str) -> Result<(), ClusterError> {
        let script = format!("ALTER DATABASE {} RENAME TO {};", quoted(from), quoted(to));
        self.psql(MAINTENANCE_DATABASE, &script).map(drop)
    }
}

/// The database that every server has for work on the others.
pub(super) const MAINTENANCE_DATABASE: &str = "postgres";

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced_and_the_rest_is_kept() {
        let url = |base: &str| Endpoint::of_url(base).unwrap().url("my db/1");
        assert_eq!(url("postgres://me:pw@host:5432/old"), "postgres://me:pw@host:5432/my%20db%2F1");
        assert_eq!(url("postgresql://host/old?sslmode=require"), "postgresql://host/my%20db%2F1?sslmode=require");
    }

    #[test]
    fn what_is_no_url_of_a_database_is_refused() {
        for url in ["", "host", "postgres://host", "postgres://host/", "postgres://host/?x=y", "mysql://host/db"] {
            assert!(matches!(Endpoint::of_url(url), Err(ClusterError::BadUrl)), "{url}");
        }
    }
}
