use prewarm_api::path::FieldPath;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The values of all documents; a broken one is an error here.
fn values(text: &str) -> Vec<Value> {
    documents(text).map(|document| document.unwrap().value).collect()
}

/// The problems of all documents as `line:column path: message`.
fn problems(text: &str) -> Vec<String> {
    let of_document = |document: Result<Document, Problem>| match document {
        Ok(document) => document.problems,
        Err(problem) => vec![problem],
    };
    documents(text)
        .flat_map(of_document)
        .map(|problem| {
            format!("{}:{} {}: {}", problem.at.line, problem.at.column, problem.path, problem.message)
        })
        .collect()
}

fn place(text: &str, path: &FieldPath) -> (u32, u32) {
    let document = documents(text).next().unwrap().unwrap();
    let at = document.marks.locate(path);
    (at.line, at.column)
}

#[test]
fn documents_come_one_by_one_and_empty_ones_are_left_out() {
    let text = "---\na: 1\n---\n# nothing\n---\n---\nb: [x, {c: ~}]\n...\n";
    assert_eq!(values(text), [json!({"a": 1}), json!({"b": ["x", {"c": null}]})]);
    assert_eq!(values(""), Vec::<Value>::new());
    assert_eq!(values("# only words\n\n"), Vec::<Value>::new());
}

#[test]
fn a_broken_document_does_not_hide_the_next() {
    let read: Vec<bool> =
        documents("a: [1\n---\nb: 1\n---\nc: {\n").map(|document| document.is_ok()).collect();
    assert_eq!(read, [false, true, false]);
}

#[test]
fn a_field_has_the_position_of_its_key_and_an_item_that_of_its_start() {
    let text = "spec:\n  images:\n    - a\n    - name: b\n  selector: {names: [x, yy]}\n";
    let spec = FieldPath::root().field("spec");
    assert_eq!(place(text, &FieldPath::root()), (1, 1));
    assert_eq!(place(text, &spec.field("images")), (2, 3));
    assert_eq!(place(text, &spec.field("images").index(0)), (3, 7));
    assert_eq!(place(text, &spec.field("images").index(1).field("name")), (4, 7));
    assert_eq!(place(text, &spec.below("selector.names").index(1)), (5, 25));
}

#[test]
fn json_has_positions_too_even_when_it_is_indented_with_tabs() {
    let text = "{\n\t\"spec\": {\n\t\t\"images\": [\n\t\t\t\"a\\/\\u00e9\"\n\t\t]\n\t}\n}\n";
    assert_eq!(values(text), [json!({"spec": {"images": ["a/é"]}})]);
    assert_eq!(place(text, &FieldPath::root().below("spec.images").index(0)), (4, 4));
}

#[test]
fn json_objects_may_follow_each_other_line_by_line() {
    let text = "{\"a\":1}\n{\"b\":2}\n  {\"c\":3}\n";
    assert_eq!(values(text), [json!({"a": 1}), json!({"b": 2}), json!({"c": 3})]);
    let third = documents(text).nth(2).unwrap().unwrap();
    assert_eq!(third.marks.locate(&FieldPath::root().field("c")), Position { line: 3, column: 4 });
}

#[test]
fn windows_text_reads_like_any_other() {
    let text = "\u{feff}a: 1\r\nb:\r\n  - c\r\n";
    assert_eq!(values(text), [json!({"a": 1, "b": ["c"]})]);
    assert_eq!(place(text, &FieldPath::root().field("a")), (1, 1));
    assert_eq!(place(text, &FieldPath::root().field("b").index(0)), (3, 5));
}

#[test]
fn aliases_and_merge_keys_are_expanded_as_kubectl_does() {
    let text = "x: &x {a: 1, b: 1}\nz: &z {b: 2, c: 2}\nsame: *x\nlater: {<<: *x, a: 9}\n\
                earlier: {a: 9, <<: *x}\nboth: {<<: [*x, *z]}\nquoted: {\"<<\": 1}\n";
    let document = &values(text)[0];
    assert_eq!(document["same"], json!({"a": 1, "b": 1}));
    assert_eq!(document["later"], json!({"a": 9, "b": 1}));
    assert_eq!(document["earlier"], json!({"a": 1, "b": 1}));
    assert_eq!(document["both"], json!({"a": 1, "b": 1, "c": 2}));
    assert_eq!(document["quoted"], json!({"<<": 1}));
    assert_eq!(problems(text), Vec::<String>::new());
}

#[test]
fn an_aliased_value_keeps_its_original_position() {
    let text = "x: &x {a: 1}\nsame: *x\n";
    assert_eq!(place(text, &FieldPath::root().field("same")), (2, 1));
    assert_eq!(place(text, &FieldPath::root().below("same.a")), (1, 8));
}

#[test]
fn a_key_that_is_set_twice_is_a_problem_and_the_last_one_stays() {
    let text = "spec:\n  image: a\n  image: b\n";
    assert_eq!(problems(text), ["3:3 spec.image: \"image\" is already set in line 2; keep one of the two"]);
    assert_eq!(values(text), [json!({"spec": {"image": "b"}})]);
}

#[test]
fn keys_that_are_no_words_are_refused() {
    assert_eq!(problems("a:\n  ? [x]\n  : b\n"), ["2:5 a: a key must be a word, not a list or a mapping"]);
    assert_eq!(problems("~: b\n"), ["1:1 : a key is missing before the `:`"]);
    assert_eq!(problems("a: {<<: 1}\n"), ["1:9 a: `<<` takes a mapping or a list of mappings"]);
}

#[test]
fn aliases_cannot_blow_a_document_up() {
    let laugh = |level: usize| {
        let repeated = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{repeated}]\n")
    };
    let laughs =
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned() + &(1..10).map(laugh).collect::<String>();
    assert!(problems(&laughs)[0].contains("too large to check"), "{:?}", problems(&laughs));

    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 1000].join(", "));
    assert!(problems(&long)[0].contains("too large to check"));

    assert_eq!(problems("a: &a [*a]\n"), ["1:8 a[0]: the alias stands inside the value that it repeats"]);
}

#[test]
fn nesting_has_a_limit_with_and_without_aliases() {
    let deep = |levels: usize| format!("{}{}\n", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(problems(&deep(MAX_DEPTH)), Vec::<String>::new());
    assert_eq!(problems(&deep(MAX_DEPTH + 1)), ["1:101 : values are nested more than 100 levels deep"]);

    let through_alias = format!("a: &a {}b: {}*a{}\n", deep(60), "[".repeat(60), "]".repeat(60));
    assert!(problems(&through_alias)[0].ends_with("values are nested more than 100 levels deep"));
}

#[test]
fn long_lists_and_many_documents_have_a_limit() {
    assert!(problems(&"- x\n".repeat(MAX_VALUES + 1))[0].contains("too large to check"));
    let many = "--- a\n".repeat(MAX_DOCUMENTS + 5);
    assert_eq!(problems(&many), ["10001:5 : the text has more than 10000 documents; split it"]);
}

#[test]
fn common_mistakes_get_a_sentence_that_names_them() {
    let first = |text: &str| problems(text).into_iter().next().unwrap_or_default();
    for (text, problem) in [
        ("a:\n\tb: 1\n", "2:1 : tab characters are not allowed for indentation; use spaces"),
        ("a:\n  b: x\n  \tc: 1\n", "3:3 : tab characters are not allowed for indentation; use spaces"),
        ("a:\n  b: 1\n c: 2\n", "3:2 : the indentation of this line matches nothing above it"),
        ("a: 1\n- b\n", "2:3 : the indentation of this line matches nothing above it"),
        ("a: @b\n", "1:4 : text cannot start with `@`; put it in quotes"),
        ("a: %b\n", "1:4 : text cannot start with `%`; put it in quotes"),
        ("a: [1, 2\n", "1:4 : the `[` is never closed"),
        ("a: .nan\n", "1:4 a: `.nan` is not a number that JSON can hold"),
    ] {
        assert_eq!(first(text), problem, "{text:?}");
    }
    for (text, part) in [
        ("a: {{ .Values.image }}\n", "looks like a template"),
        ("{{- if .Values.x }}\na: 1\n", "looks like a template"),
        ("a: * * * * *\n", "put it in quotes"),
        ("a: */5\n", "put it in quotes"),
        ("a:\n  b: x\n    c: 1\n", "check the indentation of this line"),
        ("a: x: y\n", "put a text with `: ` in quotes"),
        ("a: \"b\nc: 1\n", "is its closing quote missing?"),
        ("a:\n- b\n-c\n", "a space after the `-`"),
    ] {
        assert!(first(text).contains(part), "{text:?}: {}", first(text));
    }
}

fn json_values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z0-9:.%/@ -]{0,12}",
        "\\PC{0,8}",
        prop::sample::select(vec![
            "yes", "~", "1_0", "0x1", "<<", "- a", "#", "null", "1e3", ".inf", "\t", "a\nb\n"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000.0..1000.0f64)
            .prop_filter("whole numbers are read as integers", |n| n.fract() != 0.0)
            .prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "(\\PC|[\\[\\]{}:,&*!|>'\"%@`#?<~\n\r\t -]){0,200}") {
        for document in documents(&text) {
            let _ = document.map(|document| document.marks.locate(&FieldPath::root().field("a")));
        }
    }

    #[test]
    fn a_value_survives_being_written_as_json(value in json_values()) {
        let object = json!({ "value": value });
        prop_assert_eq!(values(&serde_json::to_string_pretty(&object).unwrap()), vec![object]);
    }

    #[test]
    fn a_value_survives_being_written_as_yaml(value in json_values()) {
        let object = json!({ "value": value });
        let text = serde_saphyr::to_string(&object).unwrap();
        prop_assert_eq!(values(&text), vec![object], "{}", text);
    }
}
