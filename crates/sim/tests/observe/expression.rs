//! A look at expressions for Prometheus that finds the metrics and labels in them. It is no parser: what it does not know, it
//! refuses, so that nothing goes by unchecked.

use std::collections::BTreeSet;

use crate::exported::Exported;

/// Functions and aggregations that may be used.
const FUNCTIONS: [&str; 11] =
    ["absent", "count", "histogram_quantile", "increase", "max", "min", "rate", "sum", "time", "topk", "avg"];
/// Words that are followed by labels in parentheses.
const BY_LABELS: [&str; 4] = ["by", "without", "on", "ignoring"];
const OPERATORS: [&str; 4] = ["and", "or", "unless", "bool"];

/// What an expression asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// Metrics and what is asked of their labels.
    selectors: Vec<(String, Vec<Matcher>)>,
    /// Labels that results are grouped by.
    grouping: BTreeSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Matcher {
    label: String,
    /// The values; several in a regular expression that only has alternatives.
    values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

/// What is wrong with an expression, and with the labels that its legend shows.
pub fn faults(expression: &str, shown: &[String], exported: &Exported) -> Vec<String> {
    let asked = match read(expression) {
        Ok(asked) => asked,
        Err(fault) => return vec![format!("{fault} in {expression}")],
    };
    let mut faults = Vec::new();
    let mut labels: BTreeSet<&str> = BTreeSet::new();
    for (name, matchers) in &asked.selectors {
        let Some(known) = exported.samples.get(name) else {
            faults.push(format!("nothing exports {name}"));
            continue;
        };
        labels.extend(known.keys().map(String::as_str));
        for Matcher { label, values } in matchers {
            let known = known.get(label);
            let unknown = values.iter().filter(|value| known.is_none_or(|known| !known.contains(*value)));
            faults.extend(unknown.map(|value| format!("{name} has no {label}=\"{value}\"")));
        }
    }
    let used = asked.grouping.iter().chain(shown);
    faults.extend(
        used.filter(|label| !labels.contains(label.as_str())).map(|label| format!("no metric has {label}")),
    );
    if asked.selectors.is_empty() {
        faults.push("asks for no metric".to_owned());
    }
    faults
}

fn read(expression: &str) -> Result<Asked, String> {
    let tokens = tokens(expression)?;
    let mut asked = Asked::default();
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            Token::Text(text) => return Err(format!("a text at an odd place, {text:?},")),
            Token::Sign('[') => while rest.next().is_some_and(|token| *token != Token::Sign(']')) {},
            Token::Sign(_) => {}
            Token::Word(word) if BY_LABELS.contains(&word.as_str()) => {
                let list = rest.by_ref().skip(1).take_while(|token| **token != Token::Sign(')'));
                asked.grouping.extend(list.filter_map(|token| match token {
                    Token::Word(label) => Some(label.clone()),
                    _ => None,
                }));
            }
            Token::Word(word)
                if OPERATORS.contains(&word.as_str()) || word.starts_with(|c: char| c.is_ascii_digit()) => {}
            Token::Word(word) if FUNCTIONS.contains(&word.as_str()) => {}
            Token::Word(word) => {
                let has_matchers = rest.next_if(|token| **token == Token::Sign('{')).is_some();
                let matchers = if has_matchers { matchers(&mut rest)? } else { Vec::new() };
                asked.selectors.push((word.clone(), matchers));
            }
        }
    }
    Ok(asked)
}

fn matchers<'a>(rest: &mut impl Iterator<Item = &'a Token>) -> Result<Vec<Matcher>, String> {
    let mut matchers = Vec::new();
    let mut label = None;
    let mut signs = String::new();
    for token in rest {
        match token {
            Token::Word(word) => label = Some(word.clone()),
            Token::Text(text) => {
                let label = label.take().ok_or("a value without a label")?;
                let values = match std::mem::take(&mut signs).trim_start_matches(',') {
                    "=" | "!=" => vec![text.clone()],
                    "=~" | "!~" => text.split('|').map(str::to_owned).collect(),
                    other => return Err(format!("the operator {other}")),
                };
                matchers.push(Matcher { label, values });
            }
            Token::Sign('}') => return Ok(matchers),
            Token::Sign(sign) => signs.push(*sign),
        }
    }
    Err("braces that do not end".to_owned())
}

fn tokens(expression: &str) -> Result<Vec<Token>, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_:.$".contains(c);
    let mut tokens = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if first == '"' {
            let end = rest[1..].find('"').ok_or("a text that does not end")?;
            tokens.push(Token::Text(rest[1..=end].to_owned()));
            end + 2
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        } else {
            tokens.push(Token::Sign(first));
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// What two small processes export.
fn small() -> Exported {
    let mut exported = Exported::default();
    exported.add("# TYPE pulls counter\npulls_total{result=\"ok\",class=\"\"} 1\npulls_total{result=\"failed\",class=\"Tls\"} 1");
    exported.add("# TYPE wait_seconds histogram\nwait_seconds_bucket{le=\"1.0\"} 1\nwait_seconds_sum 1");
    exported
}

#[test]
fn expressions_that_name_what_is_exported_have_no_faults() {
    let shown = ["class".to_owned()];
    let right = [
        "sum by (class) (rate(pulls_total{result=\"failed\"}[$__rate_interval])) > 0",
        "sum by (class) (increase(pulls_total{result=~\"ok|failed\",class!=\"Tls\"}[30m])) / 2.5",
        "absent(pulls_total == 1) and on (class) (pulls_total)",
    ];
    for expression in right {
        assert_eq!(faults(expression, &shown, &small()), Vec::<String>::new(), "{expression}");
    }
    assert_eq!(
        faults("histogram_quantile(0.9, sum by (le) (rate(wait_seconds_bucket[5m])))", &[], &small()),
        Vec::<String>::new()
    );
}

#[test]
fn whatever_is_not_exported_is_a_fault() {
    let wrong = [
        ("rate(pull_total[5m])", "nothing exports pull_total"),
        ("rate(pulls[5m])", "nothing exports pulls"),
        ("rate(pulls_total{result=\"lost\"}[5m])", "pulls_total has no result=\"lost\""),
        ("rate(pulls_total{result=~\"ok|lost\"}[5m])", "pulls_total has no result=\"lost\""),
        ("rate(pulls_total{node=\"a\"}[5m])", "pulls_total has no node=\"a\""),
        ("sum by (node) (pulls_total)", "no metric has node"),
        ("sum(pulls_total) / sum(pushes_total)", "nothing exports pushes_total"),
        ("lowest(pulls_total)", "nothing exports lowest"),
        ("time()", "asks for no metric"),
    ];
    for (expression, fault) in wrong {
        assert_eq!(faults(expression, &[], &small()), [fault], "{expression}");
    }
    assert_eq!(faults("sum(pulls_total)", &["image".to_owned()], &small()), ["no metric has image"]);
    assert_eq!(faults("pulls_total{", &[], &small()).len(), 1);
}
