use awa_core::time::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

/// A row with one column as a server would send it back after it was bound as `param`.
fn echoed(param: &Param<'_>) -> Row {
    let mut bytes = Vec::new();
    let cell = (param.encode(&mut bytes) == IsNull::No).then_some(bytes.as_slice());
    Row::new(&Columns::new([("value".to_owned(), param.oid())]), [cell])
}

fn cell(pg_type: PgType, bytes: &[u8]) -> Row {
    Row::new(&Columns::new([("value".to_owned(), pg_type.oid())]), [Some(bytes)])
}

fn problem<T: std::fmt::Debug>(read: Result<T, DecodeError>) -> DecodeProblem {
    read.unwrap_err().problem
}

fn moment() -> impl Strategy<Value = Timestamp> {
    // The range of the server's timestamps that also fits into microseconds since 1970.
    (-200_000_000_000_000_000_i64..=9_000_000_000_000_000_000).prop_map(Timestamp::from_micros)
}

macro_rules! round_trips {
    ($($name:ident: $strategy:expr, $one:ident $opt_one:ident $many:ident $opt_many:ident;)*) => {
        proptest! {$(
            #[test]
            fn $name(values in vec($strategy, 0..9), sparse in vec(option::of($strategy), 0..9), one in $strategy) {
                prop_assert_eq!(echoed(&Param::from(one)).$one(0).unwrap(), one);
                prop_assert_eq!(echoed(&Param::from(Some(one))).$opt_one(0).unwrap(), Some(one));
                prop_assert_eq!(echoed(&Param::from(&values)).$many(0).unwrap(), values.clone());
                prop_assert_eq!(echoed(&Param::from(&sparse)).$opt_many(0).unwrap(), sparse.clone());
                let read = echoed(&Param::from(&sparse)).$many(0);
                match sparse.iter().copied().collect::<Option<Vec<_>>>() {
                    Some(full) => prop_assert_eq!(read.unwrap(), full),
                    None => prop_assert_eq!(problem(read), DecodeProblem::Null),
                }
            }
        )*}
    };
}

round_trips! {
    bools_come_back_as_they_were_sent: any::<bool>(), bool opt_bool bools opt_bools;
    int2_come_back_as_they_were_sent: any::<i16>(), i16 opt_i16 i16s opt_i16s;
    int4_come_back_as_they_were_sent: any::<i32>(), i32 opt_i32 i32s opt_i32s;
    int8_come_back_as_they_were_sent: any::<i64>(), i64 opt_i64 i64s opt_i64s;
    uuids_come_back_as_they_were_sent: any::<u128>(), uuid opt_uuid uuids opt_uuids;
    timestamps_come_back_as_they_were_sent: moment(), timestamp opt_timestamp timestamps opt_timestamps;
}

proptest! {
    #[test]
    fn texts_come_back_as_they_were_sent(
        owned in vec(any::<String>(), 0..9),
        sparse in vec(option::of(any::<String>()), 0..9),
    ) {
        let texts: Vec<&str> = owned.iter().map(String::as_str).collect();
        let row = echoed(&Param::from(&texts));
        prop_assert_eq!(row.texts(0).unwrap(), owned.clone());
        let row = echoed(&Param::from(&texts));
        prop_assert_eq!(row.get::<Vec<&str>>(0).unwrap(), texts.clone());
        let row = echoed(&Param::jsons(&texts));
        prop_assert_eq!(row.json_texts(0).unwrap(), owned.clone());
        let optional: Vec<Option<&str>> = sparse.iter().map(Option::as_deref).collect();
        let row = echoed(&Param::from(&optional));
        prop_assert_eq!(row.opt_texts(0).unwrap(), sparse.clone());
        let row = echoed(&Param::opt_jsons(&optional));
        prop_assert_eq!(row.opt_json_texts(0).unwrap(), sparse.clone());
        for text in texts {
            let row = echoed(&Param::from(text));
            prop_assert_eq!(row.text(0).unwrap(), text);
            let row = echoed(&Param::from(text.to_owned()));
            prop_assert_eq!(row.opt_text(0).unwrap(), Some(text));
            let row = echoed(&Param::json(text));
            prop_assert_eq!(row.json_text(0).unwrap(), text);
            let row = echoed(&Param::from(Json(text)));
            prop_assert_eq!(row.opt_json_text(0).unwrap(), Some(text));
        }
    }

    #[test]
    fn byte_strings_come_back_as_they_were_sent(owned in vec(option::of(vec(any::<u8>(), 0..9)), 0..9)) {
        let sparse: Vec<Option<&[u8]>> = owned.iter().map(Option::as_deref).collect();
        let row = echoed(&Param::from(&sparse));
        prop_assert_eq!(row.opt_byteas(0).unwrap(), sparse.clone());
        let full: Vec<&[u8]> = sparse.iter().copied().flatten().collect();
        let row = echoed(&Param::from(&full));
        prop_assert_eq!(row.byteas(0).unwrap(), full.clone());
        for bytes in full {
            let row = echoed(&Param::from(bytes));
            prop_assert_eq!(row.bytea(0).unwrap(), bytes);
        }
    }

    #[test]
    fn floats_come_back_bit_by_bit(value in any::<f64>()) {
        prop_assert_eq!(echoed(&Param::from(value)).f64(0).unwrap().to_bits(), value.to_bits());
    }

    #[test]
    fn any_bytes_of_any_type_are_read_or_refused_without_a_panic(
        pg_type in proptest::sample::select(types::ALL),
        bytes in prop_oneof![vec(any::<u8>(), 0..40), array_like()],
    ) {
        read_every_way(&cell(pg_type, &bytes));
    }

    #[test]
    fn a_shortened_array_is_refused(
        values in vec(option::of(any::<i64>()), 1..9),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        Param::from(&values).encode(&mut bytes);
        bytes.truncate(cut.index(bytes.len()));
        let read = cell(types::INT8_ARRAY, &bytes).opt_i64s(0);
        prop_assert!(matches!(problem(read), DecodeProblem::Malformed(_)));
    }
}

/// Bytes that begin like the head of an array, so that the readers get past it.
fn array_like() -> impl Strategy<Value = Vec<u8>> {
    let element = proptest::sample::select(types::ALL).prop_map(PgType::oid);
    let small = || prop_oneof![0..4_i32, -2..0_i32, any::<i32>()];
    (0..3_i32, 0..3_i32, element, small(), vec(prop_oneof![small().prop_map(i32::to_be_bytes), any::<[u8; 4]>()], 0..9))
        .prop_map(|(dimensions, flag, element, length, rest)| {
            let head = [dimensions, flag, element.cast_signed(), length, 1].map(i32::to_be_bytes);
            head.into_iter().chain(rest).flatten().collect()
        })
}

fn read_every_way(row: &Row) {
    macro_rules! ignore {
        ($($reader:ident)*) => {$( drop(row.$reader(0)); )*};
    }
    ignore!(bool i16 i32 i64 f64 text bytea uuid timestamp json_text);
    ignore!(opt_bool opt_i16 opt_i32 opt_i64 opt_f64 opt_text opt_bytea opt_uuid opt_timestamp opt_json_text);
    ignore!(bools i16s i32s i64s texts byteas uuids timestamps json_texts);
    ignore!(opt_bools opt_i16s opt_i32s opt_i64s opt_texts opt_byteas opt_uuids opt_timestamps opt_json_texts);
}

#[test]
fn values_have_the_bytes_that_the_protocol_documents() {
    let bytes = |param: Param<'_>| {
        let mut out = Vec::new();
        assert_eq!(param.encode(&mut out), IsNull::No);
        out
    };
    assert_eq!(bytes(Param::from(-2_i16)), [0xff, 0xfe]);
    assert_eq!(bytes(Param::from(true)), [1]);
    assert_eq!(bytes(Param::from(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10_u128))[..3], [1, 2, 3]);
    assert_eq!(bytes(Param::from(Timestamp::from_micros(946_684_800_000_001))), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(bytes(Param::from(Vec::<i64>::new())), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20]);
    let mut array = [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 21], [0, 0, 0, 2], [0, 0, 0, 1]].concat();
    array.extend([0, 0, 0, 2, 0, 7, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(bytes(Param::from(vec![Some(7_i16), None])), array);
}

#[test]
fn null_is_a_value_of_its_type_and_writes_nothing() {
    let mut out = vec![9];
    for (null, oid) in [
        (Param::from(None::<i64>), 20),
        (Param::from(None::<&str>), 25),
        (Param::from(None::<Timestamp>), 1184),
        (Param::from(None::<Vec<&str>>), 1009),
        (Param::opt_json(None::<&str>), 114),
    ] {
        assert_eq!((null.encode(&mut out), null.oid()), (IsNull::Yes, oid));
    }
    assert_eq!(out, [9]);
    assert_eq!(problem(echoed(&Param::Null(types::INT8)).i64(0)), DecodeProblem::Null);
    assert_eq!(problem(echoed(&Param::Null(types::INT8_ARRAY)).i64s(0)), DecodeProblem::Null);
    assert_eq!(echoed(&Param::Null(types::INT8_ARRAY)).get::<Option<Vec<i64>>>(0), Ok(None));
    assert_eq!(echoed(&Param::Null(types::INT8_ARRAY)).get::<Option<Vec<Option<i64>>>>(0), Ok(None));
    assert_eq!(echoed(&Param::from(vec![1_i64])).get::<Option<Vec<i64>>>(0), Ok(Some(vec![1])));
}

#[test]
fn a_cell_of_another_type_is_refused_with_both_types() {
    let row = echoed(&Param::from(7_i32));
    assert_eq!(row.i64(0).unwrap_err().to_string(), "column 0 (value) cannot be read as int8: it is of type int4");
    assert_eq!(problem(row.opt_i64(0)), DecodeProblem::OtherType(23));
    assert_eq!(problem(row.i32s(0)), DecodeProblem::OtherType(23));
    let json = echoed(&Param::json("{}"));
    assert_eq!(json.text(0).unwrap_err().to_string(), "column 0 (value) cannot be read as text: it is of type json");
    let unknown = Row::new(&Columns::new([("s".to_owned(), 5038)]), [None]);
    assert_eq!(
        unknown.opt_text(0).unwrap_err().to_string(),
        "column 0 (s) cannot be read as text: it is of the type with object id 5038"
    );
    let mislabelled = {
        let mut bytes = Vec::new();
        Param::from(vec![1_i32]).encode(&mut bytes);
        cell(types::INT8_ARRAY, &bytes)
    };
    assert_eq!(problem(mislabelled.i64s(0)), DecodeProblem::OtherType(23));
}

#[test]
fn a_column_that_is_not_there_is_refused() {
    let row = echoed(&Param::from(7_i32));
    assert_eq!(row.i32(1).unwrap_err().to_string(), "column 1 () cannot be read as int4: the row has fewer columns");
    let short = Row::new(&Columns::new([("a".to_owned(), 20), ("b".to_owned(), 20)]), [None]);
    assert_eq!(problem(short.opt_i64(1)), DecodeProblem::NoSuchColumn);
}

#[test]
fn a_null_is_read_without_its_type_when_the_driver_does_not_tell_it() {
    let untold = Row::new(&Columns::new([("a".to_owned(), types::UNTOLD)]), [None]);
    assert_eq!(untold.opt_i64(0).unwrap(), None);
    assert_eq!(untold.get::<Option<Vec<bool>>>(0).unwrap(), None);
    assert_eq!(problem(untold.i64(0)), DecodeProblem::Null);
    let told = Row::new(&Columns::new([("a".to_owned(), types::UNTOLD)]), [Some(&[0; 8][..])]);
    assert_eq!(problem(told.opt_i64(0)), DecodeProblem::OtherType(types::UNTOLD));
}

#[test]
fn malformed_cells_are_refused_with_the_reason() {
    let malformed = |pg_type, bytes: &[u8], read: fn(&Row) -> DecodeProblem| match read(&cell(pg_type, bytes)) {
        DecodeProblem::Malformed(why) => why,
        other => panic!("{pg_type}: {other:?}"),
    };
    assert!(malformed(types::BOOL, &[2], |row| problem(row.bool(0))).contains("0 or 1"));
    assert!(malformed(types::INT8, &[0; 7], |row| problem(row.i64(0))).contains("length"));
    assert!(malformed(types::UUID, &[0; 17], |row| problem(row.uuid(0))).contains("length"));
    assert!(malformed(types::TEXT, &[0xff], |row| problem(row.text(0))).contains("UTF-8"));
    for infinity in [i64::MIN, i64::MAX] {
        let bytes = infinity.to_be_bytes();
        assert!(malformed(types::TIMESTAMPTZ, &bytes, |row| problem(row.timestamp(0))).contains("infinite"));
    }
    let late = (i64::MAX - 1).to_be_bytes();
    assert!(malformed(types::TIMESTAMPTZ, &late, |row| problem(row.timestamp(0))).contains("later"));
    let array = |words: &[i32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    for (words, reason) in [
        (vec![2, 0, 23, 1, 1, 1, 1], "one dimension"),
        (vec![1, 7, 23, 0, 1], "NULL flag"),
        (vec![1, 0, 23, -1, 1], "negative length"),
        (vec![1, 0, 23, i32::MAX, 1], "longer than its bytes"),
        (vec![1, 0, 23, 1, 1, -2], "negative length"),
        (vec![1, 0, 23, 1, 1, 5, 0], "longer than the array"),
        (vec![1, 0, 23, 1, 1, 4, 0, 0], "bytes follow"),
        (vec![0, 0, 23, 0], "bytes follow"),
    ] {
        let why = malformed(types::INT4_ARRAY, &array(&words), |row| problem(row.i32s(0)));
        assert!(why.contains(reason), "{words:?}: {why}");
    }
}

#[test]
fn a_moment_that_no_server_can_store_is_never_sent_as_infinity() {
    for extreme in [i64::MIN, i64::MAX] {
        let mut bytes = Vec::new();
        Param::from(Timestamp::from_micros(extreme)).encode(&mut bytes);
        let sent = i64::from_be_bytes(bytes.try_into().unwrap());
        assert!(sent != i64::MIN && sent != i64::MAX);
    }
}

#[test]
fn a_decode_error_becomes_a_store_error_that_says_what_to_check() {
    let error = echoed(&Param::from(7_i32)).i64(0).unwrap_err().into_store_error("claim");
    assert_eq!(error.kind(), awa_core::error::StoreErrorKind::Internal);
    assert_eq!(
        error.to_string(),
        "claim failed: column 0 (value) cannot be read as int8: it is of type int4; \
         check that this program and the schema are of the same version of Awa"
    );
}
