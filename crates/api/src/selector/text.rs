//! Label selectors as people type them (`app=web,tier!=test,zone in (a, b)`), parsed in the steps and refused in the
//! words of a real server.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::vec::IntoIter;

use super::{
    LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN, LabelSelector, LabelSelectorRequirement, SelectorOperator,
};
use crate::schema::matches;

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";
const NAME_SENTENCE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_SENTENCE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
                              or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
                              'my_value',  or '12345', regex used for validation is \
                              '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What one part of a selector requires of an object's labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label has one of these values.
    In(String, BTreeSet<String>),
    /// The label has none of these values, or is not there.
    NotIn(String, BTreeSet<String>),
    /// The label is there.
    Exists(String),
    /// The label is not there.
    DoesNotExist(String),
    /// The label is a number above this one.
    GreaterThan(String, i64),
    /// The label is a number below this one.
    LessThan(String, i64),
}

impl Requirement {
    /// Whether labels meet the requirement.
    pub fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key);
        let number = |key: &str| label(key).and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(key, values) => label(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => label(key).is_none_or(|value| !values.contains(value)),
            Self::Exists(key) => label(key).is_some(),
            Self::DoesNotExist(key) => label(key).is_none(),
            Self::GreaterThan(key, bound) => number(key).is_some_and(|value| value > *bound),
            Self::LessThan(key, bound) => number(key).is_some_and(|value| value < *bound),
        }
    }
}

impl LabelSelector {
    /// Parses a selector for an object. Comparisons of numbers are not allowed there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut labels, mut expressions) = (BTreeMap::new(), Vec::new());
        for requirement in parse(text)? {
            let (key, operator, values) = match requirement {
                Requirement::In(key, values) if values.len() == 1 && !labels.contains_key(&key) => {
                    labels.extend(values.into_iter().map(|value| (key.clone(), value)));
                    continue;
                }
                Requirement::In(key, values) => (key, SelectorOperator::In, Some(values)),
                Requirement::NotIn(key, values) => (key, SelectorOperator::NotIn, Some(values)),
                Requirement::Exists(key) => (key, SelectorOperator::Exists, None),
                Requirement::DoesNotExist(key) => (key, SelectorOperator::DoesNotExist, None),
                Requirement::GreaterThan(key, _) | Requirement::LessThan(key, _) => {
                    return Err(format!(
                        "{key} is compared as a number, which objects cannot; list the values"
                    ));
                }
            };
            let values = values.map(|values| values.into_iter().collect());
            expressions.push(LabelSelectorRequirement { key, operator, values });
        }
        Ok(Self {
            match_labels: (!labels.is_empty()).then_some(labels),
            match_expressions: (!expressions.is_empty()).then_some(expressions),
        })
    }
}

/// Parses a selector, or returns what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens(scan(text).into_iter().peekable());
    let mut requirements = Vec::new();
    loop {
        match tokens.peek() {
            Token::Word(_) | Token::Symbol("!") => {
                let requirement = tokens.requirement();
                requirements
                    .push(requirement.map_err(|error| format!("unable to parse requirement: {error}"))?);
            }
            Token::End => return Ok(requirements),
            other @ Token::Symbol(_) => {
                return Err(format!("found '{other}', expected: !, identifier, or 'end of string'"));
            }
        }
        match tokens.next() {
            Token::End => return Ok(requirements),
            Token::Symbol(",") => match tokens.peek() {
                Token::Word(_) | Token::Symbol("!") => {}
                other => return Err(format!("found '{other}', expected: identifier after ','")),
            },
            other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(word) => formatter.write_str(word),
            Self::Symbol(symbol) => formatter.write_str(symbol),
            Self::End => Ok(()),
        }
    }
}

fn scan(text: &str) -> Vec<Token> {
    const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
    let is_space = |character: char| matches!(character, ' ' | '\t' | '\r' | '\n');
    let is_special = |character: char| "=!(),><".contains(character);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        } else {
            let end = rest.find(|character| is_space(character) || is_special(character));
            let end = end.unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        };
        rest = rest[end..].trim_start_matches(is_space);
    }
    tokens
}

struct Tokens(Peekable<IntoIter<Token>>);

impl Tokens {
    fn next(&mut self) -> Token {
        self.0.next().unwrap_or(Token::End)
    }

    fn peek(&mut self) -> Token {
        self.0.peek().cloned().unwrap_or(Token::End)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next();
        let is_negated = token == Token::Symbol("!");
        if is_negated {
            token = self.next();
        }
        let Token::Word(key) = token else { return Err(format!("found '{token}', expected: identifier")) };
        check_key(&key)?;
        if is_negated {
            return Ok(Requirement::DoesNotExist(key));
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(Requirement::Exists(key));
        }
        let operator = self.next();
        match operator.to_string().as_str() {
            "in" => Ok(Requirement::In(key.clone(), checked(&key, self.values()?)?)),
            "notin" => Ok(Requirement::NotIn(key.clone(), checked(&key, self.values()?)?)),
            "=" | "==" => Ok(Requirement::In(key.clone(), checked(&key, [self.exact_value()?].into())?)),
            "!=" => Ok(Requirement::NotIn(key.clone(), checked(&key, [self.exact_value()?].into())?)),
            ">" => Ok(Requirement::GreaterThan(key.clone(), number(&key, self.exact_value()?)?)),
            "<" => Ok(Requirement::LessThan(key.clone(), number(&key, self.exact_value()?)?)),
            other => Err(format!("found '{other}', expected: {OPERATORS}")),
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(format!("found '{other}', expected: identifier")),
        }
    }

    /// Parses `(a,b)`. Empty elements count as the empty value, also in `()`.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{other}' expected: '('")),
        }
        match self.peek() {
            Token::Word(_) | Token::Symbol("," | ")") => {}
            other => return Err(format!("found '{other}', expected: ',', ')' or identifier")),
        }
        let mut values = BTreeSet::new();
        let mut current = String::new();
        loop {
            match self.next() {
                Token::Word(word) if current.is_empty() => current = word,
                Token::Symbol(",") => drop(values.insert(std::mem::take(&mut current))),
                Token::Symbol(")") => {
                    values.insert(current);
                    return Ok(values);
                }
                other if current.is_empty() => {
                    return Err(format!("found '{other}', expected: ',', or identifier"));
                }
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), String> {
    if matches(LABEL_KEY_PATTERN, key) {
        return Ok(());
    }
    let sentence = if key.matches('/').count() > 1 {
        format!(
            "a valid label key {NAME_SENTENCE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    } else {
        format!("name part {NAME_SENTENCE}")
    };
    Err(format!("<nil>: Invalid value: {key:?}: {sentence}"))
}

fn checked(key: &str, values: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    let faults = values.iter().enumerate().filter(|(_, value)| !matches(LABEL_VALUE_PATTERN, value));
    let faults: Vec<String> = faults
        .map(|(index, value)| format!("values[{index}][{key}]: Invalid value: {value:?}: {VALUE_SENTENCE}"))
        .collect();
    match faults.as_slice() {
        [] => Ok(values),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// A bound is both a number and a label value, so it cannot be negative.
fn number(key: &str, text: String) -> Result<i64, String> {
    let number = text.parse().map_err(|_| {
        format!("values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })?;
    checked(key, [text].into()).map(|_| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_elements_count_as_the_empty_value() {
        for (text, wanted) in [("()", vec![""]), ("(,)", vec![""]), ("(1,,2)", vec!["", "1", "2"])] {
            let parsed = parse(&format!("n in {text}")).unwrap();
            let wanted = wanted.into_iter().map(str::to_owned).collect();
            assert_eq!(parsed, [Requirement::In("n".to_owned(), wanted)], "{text}");
        }
    }

    #[test]
    fn a_typed_selector_becomes_that_of_an_object() {
        let selector =
            LabelSelector::parse("pool=big,zone in (b, a),!spot,tier!=test,gpu,pool=small").unwrap();
        let expected = serde_json::json!({
            "matchLabels": {"pool": "big"},
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                {"key": "spot", "operator": "DoesNotExist"},
                {"key": "tier", "operator": "NotIn", "values": ["test"]},
                {"key": "gpu", "operator": "Exists"},
                {"key": "pool", "operator": "In", "values": ["small"]},
            ],
        });
        assert_eq!(serde_json::to_value(selector).unwrap(), expected);
        assert_eq!(LabelSelector::parse("").unwrap(), LabelSelector::default());
    }

    #[test]
    fn requirements_that_an_object_cannot_express_are_refused() {
        assert!(LabelSelector::parse("cores>8").unwrap_err().contains("compared as a number"));
        assert!(LabelSelector::parse("pool in big").unwrap_err().contains("expected: '('"));
    }
}
