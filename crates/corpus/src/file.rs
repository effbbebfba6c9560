//! How a file of the corpus is written, and what its cases become.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Case, Difference, Verdict};

/// One file: a rule, a kind, and cases about it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: String,
    /// The kind of all cases that give a `spec`; not needed where every case gives a whole `object`.
    kind: Option<String>,
    cases: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    accept: Option<String>,
    refuse: Option<String>,
    at: Option<String>,
    /// The spec of an object of the file's kind.
    spec: Option<Value>,
    /// The metadata beside a spec; by default a name alone.
    metadata: Option<Map<String, Value>>,
    /// The status beside a spec.
    status: Option<Value>,
    /// A whole object.
    object: Option<Value>,
    /// The spec before the update.
    old: Option<Value>,
    /// What the server says where it differs: `accept`, or the path at which it refuses.
    server: Option<String>,
    because: Option<String>,
    /// For values too long to be written out: what is put where.
    fill: Option<Fill>,
}

/// A value made of many pieces, put at a JSON pointer such as `/spec/images`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fill {
    at: String,
    /// How many list items or map entries, each from `item` with `{n}` replaced by its number.
    items: Option<usize>,
    entries: Option<usize>,
    /// How many characters of text; `item` is repeated.
    characters: Option<usize>,
    item: Value,
}

pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<Case>> {
    let file: File = serde_saphyr::from_str(text).context("not a file of the corpus")?;
    let mut cases = Vec::new();
    for (index, entry) in file.cases.iter().enumerate() {
        let title = entry.accept.as_ref().or(entry.refuse.as_ref());
        let title = title.with_context(|| format!("case {index} has neither accept nor refuse"))?;
        let expanded = expand(name, &file, entry, index).with_context(|| format!("case {title:?}"))?;
        cases.extend(expanded);
    }
    Ok(cases)
}

fn expand(name: &str, file: &File, entry: &Entry, index: usize) -> Result<Vec<Case>> {
    let (title, verdict) = match (&entry.accept, &entry.refuse, &entry.at) {
        (Some(title), None, None) => (title, Verdict::Accept),
        (None, Some(title), Some(at)) => (title, Verdict::Refuse { at: at.clone() }),
        _ => bail!("write `accept: NAME`, or `refuse: NAME` with `at: PATH`"),
    };
    let difference = difference(entry)?;
    let case = |object: Value, old: Option<Value>| Case {
        file: name.to_owned(),
        rule: file.rule.clone(),
        name: title.clone(),
        object,
        old,
        verdict: verdict.clone(),
        difference: difference.clone(),
    };
    if let Some(object) = &entry.object {
        return Ok(vec![case(filled(object.clone(), entry)?, None)]);
    }
    let kind = file.kind.as_deref().context("a case without `object` needs the file's `kind`")?;
    let versions = api_versions(kind).with_context(|| format!("{kind} is not a kind of the corpus"))?;
    let mut cases = Vec::new();
    for api_version in versions {
        let made = |spec: Option<&Value>| object(api_version, kind, &format!("case-{index}"), spec, entry);
        cases.push(case(
            filled(made(entry.spec.as_ref()), entry)?,
            entry.old.as_ref().map(|old| made(Some(old))),
        ));
    }
    Ok(cases)
}

fn difference(entry: &Entry) -> Result<Option<Difference>> {
    match (&entry.server, &entry.because) {
        (None, None) => Ok(None),
        (Some(server), Some(because)) => {
            let server =
                if server == "accept" { Verdict::Accept } else { Verdict::Refuse { at: server.clone() } };
            Ok(Some(Difference { server, because: because.clone() }))
        }
        _ => bail!("a difference needs both `server` and `because`"),
    }
}

fn object(api_version: &str, kind: &str, name: &str, spec: Option<&Value>, entry: &Entry) -> Value {
    let mut metadata = entry.metadata.clone().unwrap_or_default();
    if !metadata.contains_key("name") && !metadata.contains_key("generateName") {
        metadata.insert("name".to_owned(), name.into());
    }
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
    for (field, value) in [("spec", spec), ("status", entry.status.as_ref())] {
        if let Some(value) = value {
            object[field] = value.clone();
        }
    }
    object
}

fn api_versions(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "ImagePullJob" | "ImageListPullJob" | "NodeImage" | "AdvancedCronJob" | "BroadcastJob" => {
            Some(&["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"])
        }
        "ImagePrefetch" | "NodeImageSet" => Some(&["ofen.cybozu.io/v1"]),
        _ => None,
    }
}

fn filled(mut object: Value, entry: &Entry) -> Result<Value> {
    if let Some(fill) = &entry.fill {
        let place = object.pointer_mut(&fill.at).with_context(|| format!("nothing stands at {}", fill.at))?;
        *place = pieces(fill)?;
    }
    Ok(object)
}

fn pieces(fill: &Fill) -> Result<Value> {
    let numbered = |number: usize| -> Result<Value> {
        let text = fill.item.to_string().replace("{n}", &number.to_string());
        serde_json::from_str(&text).context("an item that is no longer JSON with its number")
    };
    match (fill.items, fill.entries, fill.characters, &fill.item) {
        (Some(count), None, None, _) => (0..count).map(numbered).collect(),
        (None, Some(count), None, _) => {
            let map: Result<Map<String, Value>> =
                (0..count).map(|number| Ok((format!("entry-{number}"), numbered(number)?))).collect();
            Ok(Value::Object(map?))
        }
        (None, None, Some(count), Value::String(piece)) => {
            Ok(piece.chars().cycle().take(count).collect::<String>().into())
        }
        _ => bail!("fill with one of `items`, `entries`, or `characters` of a text"),
    }
}
