//! The table in `docs/compatibility.md` names tests that exist, and every case; that in `docs/security.md` names tests that
//! exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The numbers of the cases of today's controllers (kruise 7.1, 7.2, 7.4–7.10), of BroadcastJob (7.3, 7.12), and of
/// AdvancedCronJob (7.3, 7.11).
fn cases() -> BTreeSet<u32> {
    [1..=16, 100..=109, 110..=121, 20..=33, 40..=57, 60..=77, 80..=88, 90..=92, 95..=98]
        .into_iter()
        .flatten()
        .collect()
}

/// The rows of the table: cases, and the names of tests.
fn rows() -> Vec<(Vec<u32>, Vec<String>)> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md"));
    let page = page.unwrap();
    let (_, section) = page.split_once("### The cases of today's tests").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let cases = cells[1].split(',').map(|case| case.trim().trim_start_matches('T').parse().unwrap());
        let names = cells[2..].join(" ");
        let names = names.split('`').skip(1).step_by(2);
        let names = names
            .filter(|name| name.contains('_') && !["plan", "real_broadcast", "real_cron"].contains(name));
        (cases.collect(), names.map(str::to_owned).collect())
    };
    section.lines().filter(|line| line.starts_with("| T")).map(row).collect()
}

/// The text of every file below a directory.
fn sources(directory: &Path) -> String {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| {
        if path.is_dir() { sources(&path) } else { fs::read_to_string(path).unwrap_or_default() }
    };
    entries.map(text).collect()
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
                assert!(here.join("../..").join(&name).exists(), "{cases:?}: no {name}");
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
fn every_sentence_on_who_cannot_do_what_is_shown_by_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let (_, section) = page.split_once("## Who can do what to whom").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let inside = sources(&root.join("crates"));
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 10, "{}", rows.len());
    for row in rows {
        let shown_by = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
        let names: Vec<&str> = shown_by.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(inside.contains(&format!("fn {name}(")), "no test {name}");
        }
    }
}
