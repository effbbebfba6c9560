//! Every case of the admission corpus gets its verdict from `validate`.

use prewarm_api::path::FieldPath;
use prewarm_api::served;
use prewarm_api::validate::{self, Class, Inspection, Violation};
use prewarm_corpus::{Case, Verdict};
use serde_json::Value;

#[test]
fn every_object_of_the_corpus_gets_its_verdict() {
    let cases = prewarm_corpus::load().expect("the corpus can be read");
    let wrong: Vec<String> = cases.iter().filter_map(complaint).collect();
    println!("counted: {} corpus objects judged by validate", cases.len());
    assert!(wrong.is_empty(), "{} of {} verdicts are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn the_corpus_has_at_least_300_objects() {
    let cases = prewarm_corpus::load().expect("the corpus can be read");
    assert!(cases.len() >= 300, "only {} objects", cases.len());
}

#[test]
fn every_sentence_can_be_acted_on() {
    let cases = prewarm_corpus::load().expect("the corpus can be read");
    for case in &cases {
        for violation in violations(case) {
            let message = &violation.message;
            assert!(message.len() >= 10 && message.len() <= 600, "{}: {message:?}", case.title());
            assert!(!message.ends_with('.') && !message.contains('\n'), "{}: {message:?}", case.title());
        }
    }
}

fn complaint(case: &Case) -> Option<String> {
    let violations = violations(case);
    let said: Vec<String> = violations.iter().map(|one| format!("{}: {}", one.path, one.message)).collect();
    match &case.verdict {
        Verdict::Accept if violations.is_empty() => None,
        Verdict::Refuse { at } if violations.iter().any(|one| one.path.to_string() == *at) => None,
        wanted => Some(format!("{}\n    wanted {wanted:?}\n    said {said:?}", case.title())),
    }
}

fn violations(case: &Case) -> Vec<Violation> {
    match &case.old {
        None => match validate::inspect(&case.object) {
            Inspection::Ours(violations) => violations,
            Inspection::UnknownKind(violation) => vec![violation],
            Inspection::Foreign => vec![Violation {
                path: FieldPath::root(),
                class: Class::NotSupported,
                message: "the object is of a foreign kind".to_owned(),
            }],
        },
        Some(old) => {
            let text = |field: &str| case.object.get(field).and_then(Value::as_str).unwrap_or_default();
            let group = text("apiVersion").split('/').next().unwrap_or_default();
            let served = served::find(group, text("kind")).expect("updates are of our kinds");
            let (mut new, mut stored) = (case.object.clone(), old.clone());
            let refused = validate::admit(served, &mut stored, None);
            assert!(refused.is_empty(), "{}: the old object is refused: {refused:?}", case.title());
            validate::admit(served, &mut new, Some(&stored))
        }
    }
}
