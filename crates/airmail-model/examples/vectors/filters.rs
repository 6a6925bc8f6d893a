//! Filters: what each is shown as and which records it matches, and texts that are none.
//!
//! All answers are written here by hand. Nothing of the implementation is asked.

use airmail_model::batch::AttributeValue;
use serde_json::{Map, Value, json};

/// Name of a record, and its attributes.
type Record = (&'static str, Vec<(&'static str, AttributeValue)>);

/// The document.
pub(crate) fn document() -> Value {
    let records: Map<String, Value> = records()
        .into_iter()
        .map(|(name, attributes)| (name.to_owned(), described(&attributes)))
        .collect();
    let filters: Vec<Value> = FILTERS
        .iter()
        .map(|(filter, shown, matches)| {
            let shown = if shown.is_empty() { filter } else { shown };
            json!({ "filter": filter, "shown": shown, "matches": matches })
        })
        .collect();
    json!({
        "about": "Filters. `matches` names those of `records` that a filter matches; it matches no other. \
                  `shown` is its one form, which parses to the same filter. Texts in `invalid` are refused: \
                  by the place of the fault (line, and column in characters, both from 1), what was found \
                  there and what was expected. Those in `too_complex` exceed a bound, and `found` is the \
                  number found, or the one at which counting ended. Integers of 64 bits are strings.",
        "records": records,
        "filters": filters,
        "invalid": invalid(),
        "too_complex": too_complex(),
    })
}

fn described(attributes: &[(&str, AttributeValue)]) -> Value {
    let described = attributes.iter().map(|(name, value)| {
        let value = match value {
            AttributeValue::String(text) => json!({ "string": text }),
            AttributeValue::Integer(number) => json!({ "integer": number.to_string() }),
            AttributeValue::Float(number) => json!({ "float": number }),
            AttributeValue::Bool(bit) => json!({ "bool": bit }),
        };
        ((*name).to_owned(), value)
    });
    Value::Object(described.collect())
}

fn records() -> Vec<Record> {
    vec![
        ("empty", vec![]),
        (
            "eu",
            vec![
                ("kind", "order".into()),
                ("price", 12_i64.into()),
                ("region", "eu".into()),
                ("urgent", true.into()),
            ],
        ),
        (
            "us",
            vec![
                ("price", 19.5_f64.into()),
                ("region", "us".into()),
                ("urgent", false.into()),
            ],
        ),
        (
            "texts",
            vec![
                ("name", "it's".into()),
                ("price", "12".into()),
                ("region", "europe".into()),
            ],
        ),
        (
            "edges",
            vec![
                ("big", i64::MAX.into()),
                ("exact", 9_007_199_254_740_993_i64.into()),
                ("float", 9_007_199_254_740_992.0_f64.into()),
                ("least", i64::MIN.into()),
                ("zero", (-0.0_f64).into()),
            ],
        ),
        (
            "odd-names",
            vec![
                ("a b", 2_i64.into()),
                ("grün", 5_i64.into()),
                ("in", 1_i64.into()),
                ("quo\"te", 3_i64.into()),
                ("x-y.z_1", 4_i64.into()),
            ],
        ),
    ]
}

/// Text, the form in which it is shown (empty: the text itself), and the records that it matches.
const FILTERS: &[(&str, &str, &[&str])] = &[
    // Relations.
    ("price = 12", "", &["eu"]),
    ("price=12.0", "price = 12.0", &["eu"]),
    ("price = '12'", "", &["texts"]),
    ("price != 12", "", &["us"]),
    (
        "not price = 12",
        "",
        &["empty", "us", "texts", "edges", "odd-names"],
    ),
    ("price < 19.5", "", &["eu"]),
    ("price <= 19.5", "", &["eu", "us"]),
    ("price > 12", "", &["us"]),
    ("price >= 12", "", &["eu", "us"]),
    ("price < '2'", "", &["texts"]),
    ("urgent = true", "", &["eu"]),
    ("urgent != TRUE", "urgent != true", &["us"]),
    ("region > 'eu'", "", &["us", "texts"]),
    ("region >= 'eu'", "", &["eu", "us", "texts"]),
    // Sets, intervals, prefixes, presence.
    ("region in ('eu', 'us')", "", &["eu", "us"]),
    ("region not in ('eu', 'asia')", "", &["us", "texts"]),
    (
        "not region in ('eu', 'asia')",
        "",
        &["empty", "us", "texts", "edges", "odd-names"],
    ),
    ("price in (12.0, 7)", "", &["eu"]),
    ("price not in (12)", "", &["us"]),
    ("price between 12 and 19", "", &["eu"]),
    ("price between 12 and 19.5", "", &["eu", "us"]),
    ("price between 19 and 12", "", &[]),
    ("price between '1' and '2'", "", &["texts"]),
    ("region starts with 'eu'", "", &["eu", "texts"]),
    ("region starts with ''", "", &["eu", "us", "texts"]),
    ("price starts with '1'", "", &["texts"]),
    ("has urgent", "", &["eu", "us"]),
    ("not has price", "", &["empty", "edges", "odd-names"]),
    // And, or, not.
    ("price > 1 and region = 'eu'", "", &["eu"]),
    ("region = 'eu' or region = 'us'", "", &["eu", "us"]),
    ("has kind or has urgent and price > 12", "", &["eu", "us"]),
    ("(has kind or has urgent) and price > 12", "", &["us"]),
    ("not has kind and has urgent", "", &["us"]),
    (
        "not (has kind and has urgent)",
        "",
        &["empty", "us", "texts", "edges", "odd-names"],
    ),
    ("not not has kind", "", &["eu"]),
    (
        "not urgent not in (true)",
        "",
        &["empty", "eu", "texts", "edges", "odd-names"],
    ),
    ("(((has kind)))", "has kind", &["eu"]),
    (
        "has kind and (has region and has price)",
        "has kind and has region and has price",
        &["eu"],
    ),
    (
        "price between 1 and 13 and region in ('eu') and not (urgent = false or has name)",
        "",
        &["eu"],
    ),
    // Words and blanks.
    (
        "PRICE = 12 OR Price = 12 oR price = 12",
        "PRICE = 12 or Price = 12 or price = 12",
        &["eu"],
    ),
    ("\t\nregion\r\n=\n'eu'", "region = 'eu'", &["eu"]),
    (
        "region='eu'and(price<13)",
        "region = 'eu' and price < 13",
        &["eu"],
    ),
    ("name = 'it''s'", "", &["texts"]),
    ("name = ''", "", &[]),
    // Names.
    ("\"in\" = 1", "", &["odd-names"]),
    ("\"a b\" = 2", "", &["odd-names"]),
    ("\"quo\"\"te\" = 3", "", &["odd-names"]),
    ("x-y.z_1 = 4", "", &["odd-names"]),
    ("\"x-y.z_1\" = 4", "x-y.z_1 = 4", &["odd-names"]),
    ("\"grün\" = 5", "", &["odd-names"]),
    ("\"true\" = 1", "", &[]),
    // Numbers.
    ("big = 9223372036854775807", "", &["edges"]),
    (
        "big < 9223372036854775808.0",
        "big < 9.223372036854776e18",
        &["edges"],
    ),
    (
        "big = 9223372036854775808.0",
        "big = 9.223372036854776e18",
        &[],
    ),
    ("least = -9223372036854775808", "", &["edges"]),
    (
        "least = -9223372036854775808.0",
        "least = -9.223372036854776e18",
        &["edges"],
    ),
    ("exact > 9007199254740992.0", "", &["edges"]),
    ("exact = 9007199254740992.0", "", &[]),
    ("float = 9007199254740992", "", &["edges"]),
    ("float = 9007199254740993", "", &[]),
    ("zero = 0", "", &["edges"]),
    ("zero = -0.0", "", &["edges"]),
    ("zero < 1e-300", "", &["edges"]),
    ("exact < 1E+300", "exact < 1e300", &["edges"]),
    ("least < -2.5e3", "least < -2500.0", &["edges"]),
];

/// Text, line, column, what was found, what was expected.
type Invalid = (&'static str, u32, u32, &'static str, &'static str);

const NAME: &str = "a name, `has`, `not` or `(`";
const OPERATOR: &str =
    "`=`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `between` or `starts with`";
const ANY: &str = "a value: a text in single quotes, a number, `true` or `false`";
const NUMBER: &str = "a number, as -7, 2.5 or 1e9, and a blank behind it";

const INVALID: &[Invalid] = &[
    ("", 1, 1, "the end", NAME),
    ("and", 1, 1, "`and`", NAME),
    ("true = 1", 1, 1, "`true`", NAME),
    ("5 = a", 1, 1, "`5`", NAME),
    ("a", 1, 2, "the end", OPERATOR),
    ("a == 1", 1, 4, "`=`", ANY),
    ("a ! 1", 1, 3, "`!`", "`!=`"),
    (
        "a & b",
        1,
        3,
        "`&`",
        "a name, a value, or a sign of the language",
    ),
    ("a = ", 1, 5, "the end", ANY),
    ("a = b", 1, 5, "`b`", ANY),
    ("a = 1 b = 2", 1, 7, "`b`", "`and`, `or` or the end"),
    ("a = 1 and\n  or b = 2", 2, 3, "`or`", NAME),
    ("'ä' = 1", 1, 1, "`'ä'`", NAME),
    ("a = 'ä' b", 1, 9, "`b`", "`and`, `or` or the end"),
    ("(a = 1", 1, 7, "the end", "`and`, `or` or `)`"),
    ("a = 1)", 1, 6, "`)`", "`and`, `or` or the end"),
    ("not", 1, 4, "the end", NAME),
    ("a = 'x", 1, 5, "`'x`", "the text's end, '"),
    ("\"a = 1", 1, 1, "`\"a = 1`", "the name's end, \""),
    (
        "\"\" = 1",
        1,
        1,
        "a name of 0 bytes",
        "a name of 1 to 255 bytes",
    ),
    ("a < true", 1, 5, "`true`", "a number or a text"),
    (
        "a between false and true",
        1,
        11,
        "`false`",
        "a number or a text",
    ),
    (
        "a between 1 and 'x'",
        1,
        17,
        "`'x'`",
        "a number, as the first value",
    ),
    (
        "a between 'x' and 1",
        1,
        19,
        "`1`",
        "a text, as the first value",
    ),
    ("a between 1 or 2", 1, 13, "`or`", "`and`"),
    ("a in 1", 1, 6, "`1`", "`(`"),
    ("a in ()", 1, 7, "`)`", ANY),
    (
        "a in (1, 'x')",
        1,
        10,
        "`'x'`",
        "a number, as the first value",
    ),
    (
        "a in (true, 1)",
        1,
        13,
        "`1`",
        "`true` or `false`, as the first value",
    ),
    ("a in (1 2)", 1, 9, "`2`", "`,` or `)`"),
    ("a not = 1", 1, 7, "`=`", "`in`"),
    ("a starts 'x'", 1, 10, "`'x'`", "`with`"),
    ("a starts with 1", 1, 15, "`1`", "a text in single quotes"),
    (
        "has has",
        1,
        5,
        "`has`",
        "a name, in double quotes if it is a word of the language",
    ),
    (
        "has 'a'",
        1,
        5,
        "`'a'`",
        "a name, in double quotes if it is a word of the language",
    ),
    ("a = 1.", 1, 5, "`1.`", NUMBER),
    (
        "a = .5",
        1,
        5,
        "`.`",
        "a name, a value, or a sign of the language",
    ),
    ("a = 1e", 1, 5, "`1e`", NUMBER),
    ("a = -", 1, 5, "`-`", NUMBER),
    ("a = 1and b = 2", 1, 5, "`1and`", NUMBER),
    (
        "a = 9223372036854775808",
        1,
        5,
        "`9223372036854775808`",
        "an integer of 64 bits, or a float that is finite",
    ),
    (
        "a = 1e999",
        1,
        5,
        "`1e999`",
        "an integer of 64 bits, or a float that is finite",
    ),
    (
        "a = 'a text of more than forty characters is shortened' 'b'",
        1,
        57,
        "`'b'`",
        "`and`, `or` or the end",
    ),
    (
        "'a text of more than forty characters is shortened' = 1",
        1,
        1,
        "`'a text of more than forty characters is…`",
        NAME,
    ),
];

fn invalid() -> Vec<Value> {
    let fixed = INVALID
        .iter()
        .map(|(filter, line, column, found, expected)| {
            json!({
                "filter": filter, "error": "FILTER_INVALID", "line": line, "column": column,
                "found": found, "expected": expected,
            })
        });
    let long_name = json!({
        "filter": format!("{} = 1", "n".repeat(256)), "error": "FILTER_INVALID", "line": 1, "column": 1,
        "found": "a name of 256 bytes", "expected": "a name of 1 to 255 bytes",
    });
    fixed.chain([long_name]).collect()
}

fn too_complex() -> Vec<Value> {
    let two = |n: usize| format!("(a{n} = 1 or b{n} = 1)");
    let all = |count: usize, between: &str, part: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = (0..count).map(part).collect();
        parts.join(between)
    };
    let case = |filter: String, bound: &str, found: usize| {
        json!({
            "filter": filter, "error": "FILTER_TOO_COMPLEX", "bound": bound, "found": found,
        })
    };
    vec![
        case(format!("a = '{}'", "x".repeat(4091)), "bytes", 4097),
        // 4,095 bytes as it is written.
        case(
            format!(
                "b='{}'and {}",
                "x".repeat(3867),
                all(25, " and ", &|_| "a=12".to_owned())
            ),
            "bytes",
            4148,
        ),
        case(all(257, " and ", &|_| "a = 1".to_owned()), "tests", 257),
        case(
            format!("a in ({})", all(257, ",", &|n| n.to_string())),
            "tests",
            257,
        ),
        case(
            format!("{}a = 1{}", "(".repeat(33), ")".repeat(33)),
            "depth",
            33,
        ),
        case(format!("{}a = 1", "not ".repeat(33)), "depth", 33),
        case(all(65, " or ", &|n| format!("a = {n}")), "conjunctions", 65),
        case(all(12, " and ", &two), "conjunctions", 128),
        case(
            format!("not ({})", all(65, " and ", &|n| format!("a = {n}"))),
            "conjunctions",
            65,
        ),
    ]
}
