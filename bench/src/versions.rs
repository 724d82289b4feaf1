//! Which versions were built.

/// The lock file that this program was built from.
const LOCK: &str = include_str!("../Cargo.lock");

/// The version of a package from the registry.
pub fn locked(package: &str) -> String {
    LOCK.split("[[package]]")
        .filter(|entry| entry.contains(&format!("\nname = \"{package}\"\n")) && entry.contains("\nsource = "))
        .filter_map(|entry| entry.split("\nversion = \"").nth(1)?.split('"').next())
        .next()
        .map_or_else(|| "unknown".to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_registry_are_found_also_beside_a_folder_of_the_same_name() {
        assert!(locked("tokio").starts_with("1."));
        assert!(locked("awa-macros").starts_with("0.6."), "{}", locked("awa-macros"));
        assert_eq!(locked("no-such-package"), "unknown");
    }
}
