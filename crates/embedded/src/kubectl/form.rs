//! The form in which a client wants objects: as they are, only their metadata, or as a table for a terminal.

use http::HeaderMap;

use crate::refusal::Refusal;

const KNOWN: &str = "only the following media types are accepted: application/json";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The objects themselves.
    Objects,
    /// Only their metadata.
    Metadata,
    /// Rows with cells, each with this much of its object beside them.
    Table(Beside),
}

/// What accompanies the cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    Metadata,
    Object,
}

/// One acceptable media type, with the parameters that mean something in Kubernetes.
struct Clause<'a> {
    media_type: &'a str,
    kind: Option<&'a str>,
    group: &'a str,
    version: &'a str,
}

impl Form {
    /// The first form that the client accepts and the server supports.
    pub fn of(headers: &HeaderMap, query: &str) -> Result<Self, Refusal> {
        let accept = accepted(headers);
        if accept.trim().is_empty() {
            return Ok(Self::Objects);
        }
        let form = accept.split(',').find_map(|clause| Self::of_clause(&Clause::parse(clause)));
        match form {
            None => Err(Refusal::not_acceptable(KNOWN)),
            Some(Self::Table(_)) => beside(query).map(Self::Table),
            Some(form) => Ok(form),
        }
    }

    fn of_clause(clause: &Clause<'_>) -> Option<Self> {
        if !matches!(clause.media_type, "application/json" | "application/*" | "*/*") {
            return None;
        }
        match (clause.kind, clause.group, clause.version) {
            (None, _, _) => Some(Self::Objects),
            (Some("Table"), "meta.k8s.io", "v1" | "v1beta1") => Some(Self::Table(Beside::Metadata)),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                "meta.k8s.io",
                "v1" | "v1beta1",
            ) => Some(Self::Metadata),
            _ => None,
        }
    }
}

/// Whether the client prefers all of discovery in one answer.
pub fn wants_aggregated_discovery(headers: &HeaderMap) -> bool {
    let accept = accepted(headers);
    let mut known = accept.split(',').map(Clause::parse).filter(|clause| {
        clause.media_type == "application/json"
            && (clause.kind.is_none() || (clause.group, clause.version) == ("apidiscovery.k8s.io", "v2"))
    });
    known.next().is_some_and(|first| first.kind == Some("APIGroupDiscoveryList"))
}

/// The media types that a client accepts. A header that is not text accepts nothing.
fn accepted(headers: &HeaderMap) -> String {
    let values = headers.get_all(http::header::ACCEPT).iter();
    let values: Vec<&str> = values.map(|value| value.to_str().unwrap_or("?")).collect();
    values.join(",")
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let mut clause = Self { media_type, kind: None, group: "", version: "" };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "as" => clause.kind = Some(value),
                "g" => clause.group = value,
                "v" => clause.version = value,
                _ => {}
            }
        }
        clause
    }
}

fn beside(query: &str) -> Result<Beside, Refusal> {
    let value = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "includeObject");
    match value.as_ref().map_or("", |(_, value)| value.as_ref()) {
        "" | "Metadata" => Ok(Beside::Metadata),
        "None" => Ok(Beside::Nothing),
        "Object" => Ok(Beside::Object),
        other => Err(Refusal::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', \
             'Object', 'None', or empty"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &'static str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert("accept", http::HeaderValue::from_static(accept));
        Form::of(&headers, "").ok()
    }

    #[test]
    fn the_first_supported_form_is_chosen() {
        let table = Form::Table(Beside::Metadata);
        let metadata = Form::Metadata;
        let cases = [
            ("application/json", Some(Form::Objects)),
            ("*/*", Some(Form::Objects)),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(table)),
            ("application/json;as=Table;g=meta.k8s.io;v=v1", Some(table)),
            ("application/json;as=Table;v=v9;g=meta.k8s.io, application/json", Some(Form::Objects)),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Some(metadata)),
            ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Some(metadata)),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Form::Objects)),
            ("application/json;as=Sculpture", None),
            ("text/html", None),
        ];
        for (accept, wanted) in cases {
            assert_eq!(form(accept), wanted, "{accept}");
        }
    }
}
