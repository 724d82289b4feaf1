//! What the runtime logs, on standard error.

use tracing_subscriber::EnvFilter;

/// Shows what the variable `RUST_LOG` asks for, else what `unless_told` does. At most once per process.
pub(crate) fn to_stderr(unless_told: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(unless_told));
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(is_terminal).init();
}
