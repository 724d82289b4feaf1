use super::*;

#[test]
fn settings_of_the_caller_come_last_and_are_quoted() {
    let options = ClusterOptions {
        durability: Durability::Relaxed,
        settings: vec![("work_mem".to_owned(), "1MB".to_owned()), ("application_name".to_owned(), "it's".to_owned())],
    };
    let lines = settings(Path::new("/tmp/s"), &options);
    assert!(lines.contains("\nfsync = 'off'\nfull_page_writes = 'off'\n"), "{lines}");
    assert!(lines.contains("\nunix_socket_directories = '/tmp/s'\n"), "{lines}");
    assert!(lines.ends_with("\nwork_mem = '1MB'\napplication_name = 'it''s'\n"), "{lines}");
    assert!(!settings(Path::new("/tmp/s"), &ClusterOptions::default()).contains("fsync"));
}

#[test]
fn a_socket_path_that_is_too_long_leaves_only_tcp() {
    let long = format!("/{}", "x".repeat(MAX_SOCKET_PATH));
    assert!(settings(Path::new(&long), &ClusterOptions::default()).contains("unix_socket_directories = ''\n"));
}

#[test]
fn children_are_found_by_ps_and_by_proc() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = Pid::from_child(&child);
    assert!(children_of(std::process::id()).contains(&pid));
    if cfg!(target_os = "linux") {
        let line = format!("{} {}", child.id(), std::process::id());
        assert!(parents_from_proc().lines().any(|known| known == line));
    }
    assert!(is_running(pid));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!is_running(pid));
}
