//! The tables in `docs/compatibility.md` name tests that exist, and every case; that in `docs/security.md` names tests that
//! exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Where tests of ofen's cases are, by the word that stands before their names: directories, or files without `.rs`.
const PLACES: [(&str, &str); 12] = [
    ("sim", "crates/sim/tests/prefetch"),
    ("plan", "crates/plan"),
    ("agent", "crates/agent/tests/whole"),
    ("mirror", "crates/mirror"),
    ("credentials", "crates/credentials"),
    ("runtime", "crates/runtime/tests"),
    ("contract", "crates/runtime/tests/contract"),
    ("real_mirror", "crates/agent/tests/real_mirror"),
    ("real_store", "crates/runtime/tests/real_store"),
    ("real_prefetch", "crates/prewarm/tests/real_prefetch"),
    ("real_chart", "crates/generate/tests/real_chart"),
    ("real_install", "crates/package/tests/real_install"),
];

/// The numbers of the cases of today's controllers (kruise 7.1, 7.2, 7.4–7.10), of BroadcastJob (7.3, 7.12), and of
/// AdvancedCronJob (7.3, 7.11).
fn cases() -> BTreeSet<u32> {
    [1..=16, 100..=109, 110..=121, 20..=33, 40..=57, 60..=77, 80..=88, 90..=92, 95..=98]
        .into_iter()
        .flatten()
        .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What stands under a heading of `docs/compatibility.md`, up to the next chapter.
fn section(heading: &str) -> String {
    let page = fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    let (_, section) = page.split_once(heading).unwrap();
    section.split_once("\n## ").unwrap().0.to_owned()
}

/// The numbers in the first cell of a row.
fn numbers(cell: &str, letter: char) -> Vec<u32> {
    cell.split(',').map(|case| case.trim().trim_start_matches(letter).parse().unwrap()).collect()
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of the table of today's cases: cases, and the names of tests.
fn rows() -> Vec<(Vec<u32>, Vec<String>)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let names = cells[2..].join(" ");
        let names = quoted(&names)
            .filter(|name| name.contains('_') && !["plan", "real_broadcast", "real_cron"].contains(name));
        (numbers(cells[1], 'T'), names.map(str::to_owned).collect())
    };
    section("### The cases of today's tests")
        .lines()
        .filter(|line| line.starts_with("| T"))
        .map(row)
        .collect()
}

/// The text of a file, or of every file below a directory.
fn sources(path: &Path) -> String {
    if !path.is_dir() {
        return fs::read_to_string(path).unwrap_or_default();
    }
    fs::read_dir(path).unwrap().map(|entry| sources(&entry.unwrap().path())).collect()
}

#[test]
fn every_case_is_in_the_table_of_compatibility_with_tests_that_exist() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [
        "../plan/src",
        "../plan/tests",
        "../controller/src",
        "../prewarm/tests/real_broadcast",
        "../prewarm/tests/real_cron",
    ];
    let inside: String = places.iter().map(|place| sources(&here.join(place))).collect();
    let listed: BTreeSet<u32> = rows().into_iter().flat_map(|(cases, _)| cases).collect();
    assert_eq!(listed, cases());
    for (cases, names) in rows() {
        assert!(!names.is_empty(), "{cases:?}");
        for name in names {
            if name.contains('/') {
                assert!(root().join(&name).exists(), "{cases:?}: no {name}");
                continue;
            }
            let (text, name) = match name.split_once("::") {
                Some((file, name)) => {
                    let in_file = ["whole", "broadcast", "cron"]
                        .map(|tests| here.join(format!("tests/{tests}/{file}.rs")));
                    let texts = in_file.iter().filter_map(|path| fs::read_to_string(path).ok());
                    (texts.collect(), name.to_owned())
                }
                None => (inside.clone(), name),
            };
            assert!(text.contains(&format!("fn {name}(")), "{cases:?}: no test {name}");
        }
    }
}

#[test]
fn every_case_of_ofen_is_in_its_table_with_tests_that_exist_or_the_reason_why_it_has_none() {
    let text = |path: &str| sources(&root().join(path)) + &sources(&root().join(path).with_extension("rs"));
    let texts: BTreeMap<&str, String> = PLACES.iter().map(|(word, path)| (*word, text(path))).collect();
    let table = section("### The cases of ofen's tests");
    let mut listed = Vec::new();
    for row in table.lines().filter(|line| line.starts_with("| C")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let mut place = None;
        let mut has_one = false;
        for name in quoted(cells[2]) {
            if let Some(text) = texts.get(name) {
                place = Some(text);
                continue;
            }
            let exists = match place {
                _ if name.contains('/') => root().join(name).exists(),
                Some(text) => text.contains(&format!("fn {name}(")),
                None => false,
            };
            assert!(exists, "no test {name} where {} says it is", cells[1]);
            has_one = true;
        }
        assert!(has_one || cells[3].starts_with("no counterpart: "), "{row}");
        listed.extend(numbers(cells[1], 'C'));
    }
    listed.sort_unstable();
    let all: Vec<u32> = (1..=104).collect();
    assert_eq!(listed, all, "each case stands in one row");
    let rules = fs::read_to_string(root().join("docs/spec/ofen.md")).unwrap();
    let missing = all.iter().find(|case| !rules.contains(&format!("\n- **C{case}** ")));
    assert_eq!(missing, None, "docs/spec/ofen.md says what each case is");
}

#[test]
fn every_sentence_on_who_cannot_do_what_is_shown_by_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, section) = page.split_once("## Who can do what to whom").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let inside = sources(&root().join("crates"));
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{}", rows.len());
    for row in rows {
        let shown_by = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
        let names: Vec<&str> = quoted(shown_by).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(inside.contains(&format!("fn {name}(")), "no test {name}");
        }
    }
}
