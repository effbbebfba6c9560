//! The table of one host: what stands in it, with containerd's types and defaults.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use toml_edit::{Array, Item, TableLike, Value};

use super::address::Address;
use super::problem::Reason;

/// The most header values that are sent to a mirror besides our own.
pub(super) const MAX_HEADERS: usize = 32;

/// Headers that belong to the connection or to the request, which a file cannot set.
const OURS: [&str; 7] =
    ["host", "accept", "range", "connection", "content-length", "transfer-encoding", "user-agent"];

/// What a file says of one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub address: Option<Address>,
    pub capabilities: Capabilities,
    /// Files with certificates of authorities; none at all is another thing than an empty list.
    pub ca: Option<Vec<PathBuf>>,
    /// Certificates of ours, each with the file of its key if that is another one.
    pub client: Option<Vec<(PathBuf, Option<PathBuf>)>>,
    pub skip_verify: Option<bool>,
    /// Marked as sensitive, so that they are not shown.
    pub headers: Headers,
    pub dial_timeout: Option<Duration>,
}

/// What may be asked of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub pull: bool,
    pub resolve: bool,
}

/// Headers, or which of them cannot be sent.
#[derive(Clone, Debug)]
pub(crate) struct Headers(pub Result<HeaderMap, Reason>);

impl Default for Headers {
    fn default() -> Self {
        Self(Ok(HeaderMap::new()))
    }
}

/// A value of another type than containerd reads.
pub(super) fn wrong_type(field: &str, expected: &'static str) -> Reason {
    Reason::Type { field: field.to_owned(), expected }
}

impl Table {
    /// Reads a table. An error is one for which containerd ignores the whole file.
    pub fn read(name: &str, table: &dyn TableLike, directory: &Path) -> Result<Self, Reason> {
        let override_path = flag(table, "override_path")?.unwrap_or(false);
        Ok(Self {
            address: Address::parse(name, override_path),
            capabilities: capabilities(table)?,
            ca: authorities(table, directory)?,
            client: client(table, directory)?,
            skip_verify: flag(table, "skip_verify")?,
            headers: headers(table)?,
            dial_timeout: dial_timeout(table)?,
        })
    }

    /// Whether the table has something that only TLS needs.
    pub fn has_tls(&self) -> bool {
        self.ca.is_some() || self.client.is_some() || self.skip_verify.is_some()
    }
}

fn flag(table: &dyn TableLike, field: &str) -> Result<Option<bool>, Reason> {
    let read = |item: &Item| item.as_bool().ok_or_else(|| wrong_type(field, "true or false"));
    table.get(field).map(read).transpose()
}

fn capabilities(table: &dyn TableLike) -> Result<Capabilities, Reason> {
    const EXPECTED: &str = "a list of texts";
    let all = Capabilities { pull: true, resolve: true };
    let Some(item) = table.get("capabilities") else { return Ok(all) };
    let listed = item.as_array().ok_or_else(|| wrong_type("capabilities", EXPECTED))?;
    let mut capabilities = if listed.is_empty() { all } else { Capabilities::default() };
    for one in texts(listed, "capabilities", EXPECTED)? {
        match one.to_lowercase().as_str() {
            "pull" => capabilities.pull = true,
            "resolve" => capabilities.resolve = true,
            "push" | "referrers" => {}
            _ => return Err(Reason::Capability(shown(one))),
        }
    }
    Ok(capabilities)
}

fn authorities(table: &dyn TableLike, directory: &Path) -> Result<Option<Vec<PathBuf>>, Reason> {
    const EXPECTED: &str = "a path or a list of paths";
    match table.get("ca").map(Item::as_value) {
        None => Ok(None),
        Some(Some(Value::String(path))) => Ok(Some(vec![directory.join(path.value())])),
        Some(Some(Value::Array(paths))) => {
            let paths = texts(paths, "ca", EXPECTED)?;
            Ok(Some(paths.into_iter().map(|path| directory.join(path)).collect()))
        }
        Some(_) => Err(wrong_type("ca", EXPECTED)),
    }
}

type Pairs = Vec<(PathBuf, Option<PathBuf>)>;

fn client(table: &dyn TableLike, directory: &Path) -> Result<Option<Pairs>, Reason> {
    const EXPECTED: &str = "a path, a list of paths, or a list of pairs of paths";
    let wrong = || wrong_type("client", EXPECTED);
    let alone = |path: &str| (directory.join(path), None);
    match table.get("client").map(Item::as_value) {
        None => Ok(None),
        Some(Some(Value::String(path))) => Ok(Some(vec![alone(path.value())])),
        Some(Some(Value::Array(entries))) => {
            let pair = |entry: &Value| match entry {
                Value::String(path) => Ok(alone(path.value())),
                Value::Array(pair) => match texts(pair, "client", EXPECTED)?.as_slice() {
                    [path, ""] => Ok(alone(path)),
                    [path, key] => Ok((directory.join(path), Some(directory.join(key)))),
                    _ => Err(wrong()),
                },
                _ => Err(wrong()),
            };
            entries.iter().map(pair).collect::<Result<Pairs, Reason>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

fn texts<'a>(array: &'a Array, field: &str, expected: &'static str) -> Result<Vec<&'a str>, Reason> {
    array.iter().map(|value| value.as_str().ok_or_else(|| wrong_type(field, expected))).collect()
}

/// Reads headers. Another type makes the file unusable; a header that cannot be sent, only this mirror.
fn headers(table: &dyn TableLike) -> Result<Headers, Reason> {
    const EXPECTED: &str = "a text or a list of texts";
    let Some(item) = table.get("header") else { return Ok(Headers::default()) };
    let named = item.as_table_like().ok_or_else(|| wrong_type("header", "a table of headers"))?;
    let mut lines = Vec::new();
    for (name, item) in named.iter() {
        let field = format!("header.{}", shown(name));
        match item.as_value() {
            Some(Value::String(value)) => lines.push((name, value.value().as_str())),
            Some(Value::Array(values)) => {
                lines.extend(texts(values, &field, EXPECTED)?.into_iter().map(|value| (name, value)));
            }
            _ => return Err(wrong_type(&field, EXPECTED)),
        }
    }
    Ok(Headers(sendable(&lines)))
}

fn sendable(lines: &[(&str, &str)]) -> Result<HeaderMap, Reason> {
    if lines.len() > MAX_HEADERS {
        return Err(Reason::TooManyHeaders);
    }
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let unfit = || Reason::Header(shown(name));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| unfit())?;
        value.set_sensitive(true);
        if !OURS.contains(&key.as_str()) {
            headers.append(key, value);
        }
    }
    Ok(headers)
}

fn dial_timeout(table: &dyn TableLike) -> Result<Option<Duration>, Reason> {
    const EXPECTED: &str = "a duration such as \"200ms\" or \"3s\"";
    let wrong = || wrong_type("dial_timeout", EXPECTED);
    let Some(item) = table.get("dial_timeout") else { return Ok(None) };
    let text = item.as_str().ok_or_else(wrong)?;
    let duration = if text.is_empty() { Some(Duration::ZERO) } else { parse_duration(text) };
    // Nothing and less than nothing mean that there is no limit of its own.
    duration.map(|duration| (!duration.is_zero()).then_some(duration)).ok_or_else(wrong)
}

/// A duration as Go writes it. Durations below zero are read as zero.
fn parse_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() || seconds == 0.0 {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let word = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..word])?;
        seconds += number * unit;
        rest = &rest[word..];
        if rest.is_empty() {
            break;
        }
    }
    if is_negative { Some(Duration::ZERO) } else { Duration::try_from_secs_f64(seconds).ok() }
}

fn shown(text: &str) -> String {
    const MAX_SHOWN: usize = 60;
    prewarm_api::text::cut(&prewarm_api::text::plain(text), MAX_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        let table = [
            ("200ms", Some(200)),
            ("3s", Some(3_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("0", Some(0)),
            ("-3s", Some(0)),
            ("0s", Some(0)),
            ("3", None),
            ("s", None),
            ("", None),
            ("3 s", None),
            ("1e3s", None),
        ];
        for (text, milliseconds) in table {
            assert_eq!(parse_duration(text), milliseconds.map(Duration::from_millis), "{text}");
        }
    }
}
