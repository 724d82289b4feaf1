use super::*;

const SMALL: RingSizes = RingSizes { queue: 3, claim: 2, lease: 1 };

fn render_for(schema: &str, path: &'static str, text: &'static str) -> Result<Vec<String>, TemplateError> {
    let template = Template::new(&SchemaName::new(schema).unwrap(), SMALL);
    Ok(template.render(path, text)?.into_vec())
}

fn rendered(text: &'static str) -> String {
    let instances = render_for("s", "objects/x", text).unwrap();
    assert_eq!(instances.len(), 1);
    instances.into_iter().next().unwrap()
}

fn refused(text: &'static str) -> TemplateError {
    render_for("s", "objects/x", text).unwrap_err()
}

#[test]
fn the_schema_is_filled_in_as_identifier_and_as_literal() {
    assert_eq!(rendered("CREATE SCHEMA /*schema*/awa;\n"), "CREATE SCHEMA \"s\";\n");
    assert_eq!(rendered("SELECT /*schema*/awa.f(), '/*schema*/awa';"), "SELECT \"s\".f(), 's';\n");
    assert_eq!(rendered("f(/*schema*/awa.a,/*schema*/awa.b)"), "f(\"s\".a,\"s\".b)\n");
    assert_eq!(rendered("nextval('/*schema*/awa.ids')"), "nextval('\"s\".ids')\n");
    assert_eq!(rendered("EXECUTE 'DROP TABLE /*schema*/awa.t'"), "EXECUTE 'DROP TABLE \"s\".t'\n");
    let hostile = render_for("a'\"$$", "objects/x", "'/*schema*/awa' /*schema*/awa.t").unwrap();
    let member = render_for("a'\"", "objects/x", "'/*schema*/awa.t'::regclass").unwrap();
    assert_eq!(member, ["E'\\u0022a\\u0027\\u0022\\u0022\\u0022.t'::regclass\n"]);
    assert_eq!(hostile, ["E'a\\u0027\\u0022\\u0024\\u0024' U&\"a\\0027\\0022\\0024\\0024\".t\n"]);
}

#[test]
fn a_schema_mark_in_the_wrong_place_is_refused() {
    for text in
        ["/*schema*/ awa.t", "/*schema*/other.t", "/*schema*/awaiting.t", "'/*schema*/awa in'", "\"/*schema*/awa\".t"]
    {
        assert!(refused(text).problem.contains("/*schema*/"), "{text}");
    }
}

#[test]
fn an_unknown_or_open_mark_is_refused_with_file_and_line() {
    assert_eq!(
        refused("SELECT 1;\n/*shema*/awa.t").to_string(),
        "sql/objects/x.sql line 2: /*shema*/ is no mark; write comments with two dashes"
    );
    assert!(refused("/* open\nend */").problem.contains("end on its line"));
    assert!(refused("0/*sleep slot*/").problem.contains("names no ring"));
    assert!(refused("9/*sleep slots*/").problem.contains("names no ring"));
}

#[test]
fn the_number_of_slots_is_filled_in() {
    assert_eq!(rendered("x % 16/*queue slots*/ + 8/*claim slots*/ - 4/*lease slots*/"), "x % 3 + 2 - 1\n");
    for text in ["/*queue slots*/", "a16/*queue slots*/", "_16/*queue slots*/", "16/*queue slots*/0"] {
        assert!(render_for("s", "objects/x", text).is_err(), "{text}");
    }
}

#[test]
fn a_template_per_slot_has_an_instance_for_every_slot() {
    let text =
        "-- Purpose: test\n-- per slot of: claim ring\nINSERT INTO /*schema*/awa.t_0/*slot*/ (slot) VALUES (0/*slot*/)";
    let instances = render_for("s", "objects/x", text).unwrap();
    assert_eq!(instances.len(), 2);
    for (slot, instance) in instances.iter().enumerate() {
        let sql = format!("INSERT INTO \"s\".t_{slot} (slot) VALUES ({slot})\n");
        assert!(instance.ends_with(&sql), "{instance}");
        assert!(instance.starts_with("-- Purpose: test\n"));
    }
    assert!(refused("-- per slot of: sleep ring\n").problem.contains("names no ring"));
    assert_eq!(rendered("SELECT 1;\n-- per slot of: claim ring\n").lines().count(), 2);
}

#[test]
fn a_block_is_repeated_for_every_slot_and_its_markers_vanish() {
    let text = "CASE slot\n  -- each queue slot:\n  WHEN 0/*slot*/ THEN t_0/*slot*/;\n  -- end each\nEND CASE\n";
    assert_eq!(rendered(text), "CASE slot\n  WHEN 0 THEN t_0;\n  WHEN 1 THEN t_1;\n  WHEN 2 THEN t_2;\nEND CASE\n");
}

#[test]
fn blocks_of_different_rings_nest_and_name_their_slots() {
    let text = "-- each claim slot:\n-- each queue slot:\nc0/*claim slot*/ q0/*queue slot*/ 0/*slot*/\n-- end each\n\
                0/*slot*/\n-- end each\n";
    assert_eq!(rendered(text), "c0 q0 0\nc0 q1 1\nc0 q2 2\n0\nc1 q0 0\nc1 q1 1\nc1 q2 2\n1\n");
    let template = "-- per slot of: claim ring\n-- each queue slot:\n0/*claim slot*/.0/*slot*/\n-- end each\n";
    let second = render_for("s", "objects/x", template).unwrap().remove(1);
    assert!(second.ends_with("\n1.0\n1.1\n1.2\n"), "{second}");
}

#[test]
fn a_block_that_is_not_closed_and_a_slot_that_is_not_in_scope_are_refused() {
    for (text, problem) in [
        ("-- each queue slot:\nx\n", "the block has no end"),
        ("x\n-- end each\n", "there is no block to end"),
        ("-- each sleep slot:\n-- end each\n", "there is no sleep ring"),
        ("-- each queue slot:\n-- each queue slot:\n-- end each\n-- end each\n", "in scope already"),
        ("t_0/*slot*/", "no slot is in scope"),
        ("t_0/*lease slot*/", "no lease slot is in scope"),
        ("-- each queue slot:\nt_10/*slot*/\n-- end each\n", "after the number 0"),
        ("-- each queue slot:\nt_1/*slot*/\n-- end each\n", "after the number 0"),
        ("-- each queue slot:\nt_0/*slot*/_x\n-- end each\n", "ends the name"),
    ] {
        let error = refused(text);
        assert!(error.problem.contains(problem), "{text}: {error}");
    }
}

fn migration(name: &'static str, text: &str) -> Result<Migration, TemplateError> {
    Migration::read(name, text, &Template::new(&SchemaName::default(), SMALL))
}

#[test]
fn a_migration_says_whether_it_is_additive() {
    let additive = migration("0001_first_tables", "-- additive\nCREATE SCHEMA /*schema*/awa;\n").unwrap();
    assert_eq!((additive.version, additive.title, additive.kind), (1, "first_tables", MigrationKind::Additive));
    assert_eq!(additive.text, "-- additive\nCREATE SCHEMA \"awa\";\n");
    assert_eq!(migration("0002_x", "-- breaking\n").unwrap().kind, MigrationKind::Breaking);
    for (name, text) in [
        ("0001_x", "-- Additive\n"),
        ("0001_x", "\n-- additive\n"),
        ("1_x", "-- additive\n"),
        ("0001_", "-- additive\n"),
        ("000x_x", "-- additive\n"),
        ("0001_x", "-- additive\n-- per slot of: lease ring\n"),
    ] {
        assert!(migration(name, text).is_err(), "{name}: {text}");
    }
}

#[test]
fn the_hash_of_a_migration_does_not_depend_on_the_schema() {
    let text = "-- additive\nCREATE SCHEMA /*schema*/awa;\n";
    let of = |schema: &str| {
        Migration::read("0001_x", text, &Template::new(&SchemaName::new(schema).unwrap(), SMALL)).unwrap().hash
    };
    assert_eq!(of("a"), of("b"));
    assert_eq!(of("a"), ContentHash::of(text));
    assert_eq!(ContentHash::of("abc").to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

const TREE: &[SqlFile] = &[
    ("migrations/0001_a", "-- additive\n"),
    ("migrations/0002_b", "-- breaking\n"),
    ("objects/claim", "-- depends on: passed\nCREATE FUNCTION /*schema*/awa.claim();\n"),
    ("objects/insert", "-- per slot of: claim ring\n-- depends on: claim\nf_0/*slot*/\n"),
    ("objects/passed", "SELECT 16/*queue slots*/;\n"),
    ("statements/jobs/enqueue", "SELECT /*schema*/awa.enqueue($1)\n"),
    ("statements/jobs/put", "-- per slot of: claim ring\nINSERT 0/*slot*/\n"),
];

fn tree() -> Sql {
    Sql::render(TREE, &SchemaName::default(), SMALL).unwrap()
}

#[test]
fn a_tree_of_files_is_rendered_and_found_by_name() {
    let sql = tree();
    assert_eq!(sql.migrations().iter().map(|migration| migration.version).collect::<Vec<_>>(), [1, 2]);
    let order: Vec<_> = sql.objects().iter().map(|object| (object.name, object.slot)).collect();
    assert_eq!(order, [("passed", None), ("claim", None), ("insert", Some(0)), ("insert", Some(1))]);
    assert_eq!(sql.object("insert").len(), 2);
    assert_eq!(sql.object("insert")[1].text.lines().last(), Some("f_1"));
    assert_eq!(sql.object("claim")[0].hash, ContentHash::of(&sql.object("claim")[0].text));
    let enqueue = sql.statement("jobs/enqueue");
    assert_eq!((enqueue.name, &*enqueue.text), ("jobs/enqueue", "SELECT \"awa\".enqueue($1)\n"));
    assert_eq!(sql.statement_names(), ["jobs/enqueue", "jobs/put"]);
    let put = |slot| sql.statement_for_slot("jobs/put", slot).and_then(|statement| statement.text.lines().last());
    assert_eq!([put(0), put(1), put(2)], [Some("INSERT 0"), Some("INSERT 1"), None]);
    assert_eq!(sql.statements().count(), 3);
    assert_eq!((sql.schema().as_str(), sql.rings()), ("awa", SMALL));
}

#[test]
#[should_panic(expected = "there is no file sql/statements/jobs/enqueu.sql")]
fn a_statement_that_is_not_there_is_a_fault_of_the_program() {
    tree().statement("jobs/enqueu");
}

#[test]
fn a_tree_with_a_gap_or_a_stray_file_is_refused() {
    let render = |files: &[SqlFile]| Sql::render(files, &SchemaName::default(), SMALL).unwrap_err().to_string();
    assert!(render(&[("migrations/0002_b", "-- additive\n")]).contains("the next migration has the number 0001"));
    assert!(render(&[("stray", "SELECT 1;")]).contains("it is not under"));
}
