//! The command line: what is not understood is refused, and says what helps.

use crate::awa::{Awa, empty_database};

#[test]
fn an_unknown_flag_or_command_is_a_usage_error() {
    Awa::alone().run(["--nope"]).failed(2, &["--nope"]);
    Awa::alone().run(["nope"]).failed(2, &["nope"]);
    Awa::alone().run(["jobs", "list", "--stat", "ready"]).failed(2, &["--stat"]);
    Awa::alone().run([""; 0]).failed(2, &["Usage"]);
}

#[test]
fn help_shows_examples_and_never_the_value_of_the_variable() {
    let awa = Awa::on("postgres://me:secret@127.0.0.1:1/db");
    for command in ["demo", "migrate", "enqueue", "work", "jobs", "queues"] {
        let ended = awa.run([command, "--help"]).ok();
        assert!(ended.stdout.contains("Example") || command == "jobs", "{}", ended.stdout);
        assert!(!ended.stdout.contains("secret"));
    }
    assert!(awa.run(["jobs", "cancel", "--help"]).ok().stdout.contains("Examples"));
}

#[test]
fn without_a_database_the_error_says_how_to_give_one() {
    for command in
        [&["migrate"][..], &["queues"], &["jobs", "list"], &["enqueue", "--queue", "q", "--kind", "k", "--args", "1"]]
    {
        Awa::alone().run(command).failed(2, &["DATABASE_URL", "--database-url"]);
    }
}

#[test]
fn a_url_of_another_kind_is_refused_without_being_shown() {
    let ended = Awa::on("mysql://me:secret@host/db").run(["queues"]).failed(2, &["postgres://"]);
    assert!(!ended.stderr.contains("secret"));
}

#[test]
fn a_database_that_is_not_there_is_one_clear_sentence_without_the_password() {
    for scheme in ["postgres", "postgresql"] {
        let url = format!("{scheme}://me:secret@127.0.0.1:1/db");
        let ended = Awa::alone().run(["queues", "--database-url", &url]).failed(1, &["error: ", "DATABASE_URL"]);
        assert!(!ended.stderr.contains("secret") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_schema_that_is_missing_names_the_command_that_makes_it() {
    let database = empty_database();
    for command in [&["queues"][..], &["jobs", "list"], &["work", "--queue", "q", "--exec", "true"]] {
        Awa::on(database.url()).run(command).failed(1, &["awa migrate"]);
    }
}

#[test]
fn the_variables_of_postgresql_are_enough() {
    let database = empty_database();
    let url = database.url();
    let (host, name) = url.rsplit_once('@').unwrap().1.split_once('/').unwrap();
    let (host, port) = host.split_once(':').unwrap();
    let user = url.split_once("://").unwrap().1.split(['@', ':']).next().unwrap();
    let awa = Awa::alone().with("PGHOST", host).with("PGPORT", port).with("PGUSER", user).with("PGDATABASE", name);
    awa.run(["migrate"]).ok();
    assert_eq!(awa.json(&["queues"])["queues"].as_array().unwrap().len(), 0);
}

#[test]
fn migrating_twice_changes_nothing_and_another_schema_is_another_installation() {
    let database = empty_database();
    let awa = Awa::on(database.url());
    let first = awa.json(&["migrate"]);
    assert!(first["created"].as_bool().unwrap() && !first["migrations"].as_array().unwrap().is_empty(), "{first}");
    let second = awa.json(&["migrate"]);
    assert!(!second["created"].as_bool().unwrap() && second["migrations"].as_array().unwrap().is_empty(), "{second}");
    awa.run(["queues", "--schema", "other"]).failed(1, &["migrate"]);
    assert_eq!(awa.json(&["migrate", "--schema", "my \"other\" jobs"])["schema"], "my \"other\" jobs");
    awa.run(["queues", "--schema", "my \"other\" jobs"]).ok();
    awa.run(["queues", "--schema", "pg_other"]).failed(2, &["pg_"]);
}
