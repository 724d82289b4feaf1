//! A real server agrees with the values that this crate encodes and decodes, and with the names that it quotes.
//!
//! There is no driver here: COPY in binary format sends and takes each value in the same form as the wire protocol.

#![cfg(feature = "cluster")]

use std::path::Path;
use std::{fs, io};

use awa_core::time::Timestamp;
use awa_pg::cluster::{TestDatabase, TestServer};
use awa_pg::value::{Columns, IsNull, Json, types};
use awa_pg::{Param, Row, SchemaName};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

fn database() -> TestDatabase {
    TestServer::shared().unwrap().empty_database().unwrap()
}

/// The file that COPY in binary format takes for one row.
fn file_of(params: &[Param<'_>]) -> Vec<u8> {
    let mut file = SIGNATURE.to_vec();
    file.extend(i16::try_from(params.len()).unwrap().to_be_bytes());
    for param in params {
        let mut bytes = Vec::new();
        let length = match param.encode(&mut bytes) {
            IsNull::Yes => -1,
            IsNull::No => i32::try_from(bytes.len()).unwrap(),
        };
        file.extend(length.to_be_bytes());
        file.extend(bytes);
    }
    file.extend((-1_i16).to_be_bytes());
    file
}

/// The one row of a file that COPY in binary format wrote.
fn row_in(path: &Path, columns: &[(&str, u32)]) -> io::Result<Row> {
    let file = fs::read(path)?;
    let mut rest = file.strip_prefix(SIGNATURE).unwrap();
    let mut take = |length: usize| {
        let (head, tail) = rest.split_at(length);
        rest = tail;
        head
    };
    let count = i16::from_be_bytes(take(2).try_into().unwrap());
    let cells: Vec<Option<&[u8]>> = (0..count)
        .map(|_| {
            let length = i32::from_be_bytes(take(4).try_into().unwrap());
            usize::try_from(length).ok().map(&mut take)
        })
        .collect();
    assert_eq!(rest, [0xff, 0xff], "one row and the trailer");
    Ok(Row::new(&Columns::new(columns.iter().map(|(name, oid)| ((*name).to_owned(), *oid))), cells))
}

/// Values with the SQL that the server writes them as.
fn samples() -> Vec<(Param<'static>, &'static str)> {
    let moment = Timestamp::from_micros(1_709_210_096_000_007);
    let before_epoch = Timestamp::from_micros(-62_135_596_800_000_000);
    vec![
        (Param::from(true), "true"),
        (Param::from(i16::MIN), "-32768"),
        (Param::from(-7_i32), "-7"),
        (Param::from(i64::MIN), "-9223372036854775808"),
        (Param::from(-0.1_f64), "-0.1"),
        (Param::from("größe 😀 'x'"), "'größe 😀 ''x'''"),
        (Param::from(&b"\x00\xff'"[..]), r"'\x00ff27'"),
        (Param::from(0xa0ee_bc99_9c0b_4ef8_bb6d_6bb9_bd38_0a11_u128), "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
        (Param::from(moment), "'2024-02-29 12:34:56.000007+00'"),
        (Param::from(before_epoch), "'0001-01-01 00:00:00+00'"),
        (Param::json(r#"{"a" : 1.0}"#), r#"'{"a" : 1.0}'"#),
        (Param::from(None::<i64>), "NULL"),
        (Param::from(vec![true, false]), "'{t,f}'"),
        (Param::from(vec![Some(false), None]), "'{f,NULL}'"),
        (Param::from(vec![1_i16, -2]), "'{1,-2}'"),
        (Param::from(vec![None, Some(3_i32)]), "'{NULL,3}'"),
        (Param::from(Vec::<i64>::new()), "'{}'"),
        (Param::from(vec![None, Some(4_i64)]), "'{NULL,4}'"),
        (Param::from(vec!["", "NULL", "a,b\"c\\"]), r#"'{"","NULL","a,b\"c\\"}'"#),
        (Param::from(vec![Some("x"), None]), "'{x,NULL}'"),
        (Param::from(vec![&b"\x01"[..], &b""[..]]), r"ARRAY['\x01','\x']"),
        (Param::from(vec![Some(1_u128), None]), "'{00000000-0000-0000-0000-000000000001,NULL}'"),
        (Param::from(vec![Some(moment), None]), "'{2024-02-29 12:34:56.000007+00,NULL}'"),
        (Param::jsons(vec!["{}", "[1]"]), r#"'{"{}","[1]"}'"#),
        (Param::opt_jsons(vec![None, Some("null")]), r#"'{NULL,"null"}'"#),
    ]
}

#[test]
fn the_server_reads_what_is_encoded() {
    let database = database();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sent");
    let samples = samples();
    let params: Vec<_> = samples.iter().map(|(param, _)| param.clone()).collect();
    fs::write(&path, file_of(&params)).unwrap();

    let columns: Vec<String> =
        samples.iter().enumerate().map(|(n, (param, _))| format!("c{n} {}", param.pg_type())).collect();
    let create = format!("CREATE TABLE sent ({});", columns.join(", "));
    database.psql(&format!("{create}\n\\copy sent FROM '{}' (FORMAT binary)", path.display())).unwrap();
    for (n, (param, literal)) in samples.iter().enumerate() {
        // As text, since json has no equality.
        let check =
            format!("SELECT c{n}::text IS NOT DISTINCT FROM ({literal})::{}::text, c{n} FROM sent;", param.pg_type());
        let seen = database.psql(&check).unwrap();
        assert!(seen.starts_with("t|"), "{param:?} arrived as {seen}, not as {literal}");
    }
}

#[test]
fn what_the_server_sends_is_decoded() {
    let database = database();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("received");
    let samples = samples();
    let values: Vec<String> =
        samples.iter().map(|(param, literal)| format!("({literal})::{}", param.pg_type())).collect();
    let script = format!("\\copy (SELECT {}) TO '{}' (FORMAT binary)", values.join(", "), path.display());
    database.psql(&script).unwrap();

    let columns: Vec<_> = samples.iter().map(|(param, _)| ("c", param.oid())).collect();
    let row = row_in(&path, &columns).unwrap();
    for (n, (param, _)) in samples.iter().enumerate() {
        assert_eq!(&decoded(&row, n, param), param);
    }
}

/// The cell read by the reader that fits the parameter.
fn decoded<'row>(row: &'row Row, n: usize, like: &Param<'_>) -> Param<'row> {
    match like {
        Param::Null(pg_type) => {
            assert_eq!(row.opt_i64(n).unwrap(), None);
            Param::Null(*pg_type)
        }
        Param::Bool(_) => Param::from(row.bool(n).unwrap()),
        Param::I16(_) => Param::from(row.i16(n).unwrap()),
        Param::I32(_) => Param::from(row.i32(n).unwrap()),
        Param::I64(_) => Param::from(row.i64(n).unwrap()),
        Param::F64(_) => Param::from(row.f64(n).unwrap()),
        Param::Text(_) => Param::from(row.text(n).unwrap()),
        Param::Bytea(_) => Param::from(row.bytea(n).unwrap()),
        Param::Uuid(_) => Param::from(row.uuid(n).unwrap()),
        Param::Timestamp(_) => Param::from(row.timestamp(n).unwrap()),
        Param::Json(_) => Param::from(Json(row.json_text(n).unwrap())),
        Param::Bools(_) => Param::from(row.bools(n).unwrap()),
        Param::OptBools(_) => Param::from(row.opt_bools(n).unwrap()),
        Param::I16s(_) => Param::from(row.i16s(n).unwrap()),
        Param::OptI32s(_) => Param::from(row.opt_i32s(n).unwrap()),
        Param::I64s(_) => Param::from(row.i64s(n).unwrap()),
        Param::OptI64s(_) => Param::from(row.opt_i64s(n).unwrap()),
        Param::Texts(_) => Param::from(row.get::<Vec<&str>>(n).unwrap()),
        Param::OptTexts(_) => Param::from(row.get::<Vec<Option<&str>>>(n).unwrap()),
        Param::Byteas(_) => Param::from(row.byteas(n).unwrap()),
        Param::OptUuids(_) => Param::from(row.opt_uuids(n).unwrap()),
        Param::OptTimestamps(_) => Param::from(row.opt_timestamps(n).unwrap()),
        Param::Jsons(_) => {
            let texts: Vec<Json<'_>> = row.get(n).unwrap();
            Param::jsons(texts.into_iter().map(|json| json.0).collect::<Vec<_>>())
        }
        Param::OptJsons(_) => {
            let texts: Vec<Option<Json<'_>>> = row.get(n).unwrap();
            Param::opt_jsons(texts.into_iter().map(|json| json.map(|json| json.0)).collect::<Vec<_>>())
        }
        other => panic!("{other:?} has no sample"),
    }
}

#[test]
fn the_object_ids_of_the_types_are_those_of_the_server() {
    let database = database();
    for known in types::ALL {
        let oid = database.psql(&format!("SELECT '{known}'::regtype::oid;")).unwrap();
        assert_eq!(oid, known.oid().to_string(), "{known}");
    }
}

#[test]
fn a_name_is_quoted_so_that_the_server_reads_the_same_name_everywhere() {
    let database = database();
    for name in ["awa", "Größe", "my jobs", "a--b", "a\"b", "a'b", "$$", "$f$", "a\\b", "*/ /*", "a\nb", "😀;\t%s"]
    {
        let schema = SchemaName::new(name).unwrap();
        let (identifier, literal) = (schema.quoted(), schema.quoted_text());
        let script = format!(
            "-- {identifier}\n\
             CREATE SCHEMA {identifier};\n\
             CREATE TABLE {identifier}.t AS SELECT 7 AS n;\n\
             CREATE FUNCTION {identifier}.f() RETURNS text LANGUAGE plpgsql AS $f$\n\
             DECLARE v_n integer; v_row {identifier}.t;\n\
             BEGIN\n\
                 SELECT n INTO v_n FROM {identifier}.t;\n\
                 SELECT * INTO v_row FROM {identifier}.t;\n\
                 EXECUTE 'SELECT n + 1 FROM {identifier}.t' INTO v_n;\n\
                 RETURN v_n::text || v_row.n::text || {literal};\n\
             END $f$;\n\
             SELECT {identifier}.f() = '87' || {literal}, nspname = {literal},\n\
                 encode(convert_to(nspname, 'UTF8'), 'hex')\n\
             FROM pg_namespace WHERE nspname = {literal};\n\
             DROP SCHEMA {identifier} CASCADE;\n"
        );
        let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        assert_eq!(database.psql(&script).unwrap(), format!("t|t|{hex}"), "{name:?}");
    }
}
