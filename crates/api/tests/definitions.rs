//! What holds for every generated definition, and an overview of them all as a snapshot.

use std::fmt::Write as _;

use prewarm_api::{crd, rule};
use serde_json::Value;

/// Walks every node of a definition's schema with its path.
fn walk(node: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, node);
    for (name, property) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(property, &format!("{path}.{name}"), visit);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(inner) = node.get(key) {
            walk(inner, &format!("{path}{mark}"), visit);
        }
    }
}

fn each_node(mut visit: impl FnMut(&str, &Value)) {
    for crd in crd::all() {
        let schema =
            crd.spec.versions[0].schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        walk(&serde_json::to_value(schema).expect("a schema is JSON"), &crd.spec.names.kind, &mut visit);
    }
}

#[test]
fn every_field_has_a_sentence_for_kubectl_explain() {
    let mut silent = Vec::new();
    each_node(|path, node| {
        let is_field = !path.ends_with(['}', ']']) && !path.ends_with(".metadata");
        let description = node.get("description").and_then(Value::as_str).unwrap_or_default();
        if is_field && (!description.ends_with('.') || description.contains('\n')) {
            silent.push(path.to_owned());
        }
    });
    assert!(silent.is_empty(), "no sentence for {silent:#?}");
}

#[test]
fn every_default_is_named_in_its_sentence() {
    let mut silent = Vec::new();
    each_node(|path, node| {
        let description = node.get("description").and_then(Value::as_str).unwrap_or_default();
        let is_plain = node.get("default").is_some_and(|default| !default.is_object());
        // Counters in a status start at zero, which nobody chooses.
        if is_plain && !path.contains(".status.") && !description.contains("efaults to") {
            silent.push(path.to_owned());
        }
    });
    assert!(silent.is_empty(), "defaults that no sentence names: {silent:#?}");
}

#[test]
fn every_list_map_and_text_has_a_bound() {
    let mut unbounded = Vec::new();
    each_node(|path, node| {
        let bound = match node.get("type").and_then(Value::as_str) {
            Some("array") => "maxItems",
            Some("object") if node.get("additionalProperties").is_some() => "maxProperties",
            Some("string") if node.get("enum").is_none() && node.get("format").is_none() => "maxLength",
            _ => return,
        };
        let is_kubernetes_own =
            path.split_once('.').is_some_and(|(_, below)| matches!(below, "apiVersion" | "kind"));
        if node.get(bound).is_none() && !is_kubernetes_own {
            unbounded.push(format!("{path} has no {bound}"));
        }
    });
    assert!(unbounded.is_empty(), "{unbounded:#?}");
}

#[test]
fn both_versions_have_one_schema_and_the_last_is_stored() {
    for crd in crd::all() {
        let versions = &crd.spec.versions;
        assert!(versions.iter().all(|version| version.served && version.schema == versions[0].schema));
        let stored: Vec<bool> = versions.iter().map(|version| version.storage).collect();
        assert_eq!(stored.iter().filter(|is_stored| **is_stored).count(), 1);
        assert_eq!(stored.last(), Some(&true));
    }
}

#[test]
fn the_definitions_at_a_glance() {
    let mut text = String::new();
    for crd in crd::all() {
        let (spec, names) = (&crd.spec, &crd.spec.names);
        let versions: Vec<&str> = spec.versions.iter().map(|version| version.name.as_str()).collect();
        writeln!(text, "{} ({}) {} {:?}", names.kind, names.plural, spec.scope, names.short_names).unwrap();
        writeln!(
            text,
            "  versions {}; status subresource {}",
            versions.join(", "),
            spec.versions
                .iter()
                .all(|version| version.subresources.as_ref().is_some_and(|one| one.status.is_some()))
        )
        .unwrap();
        let columns = spec.versions[0].additional_printer_columns.iter().flatten();
        let columns: Vec<String> =
            columns.map(|column| format!("{}={}", column.name, column.json_path)).collect();
        writeln!(text, "  columns {}", columns.join(" ")).unwrap();
        for rule in rule::of(&names.kind) {
            writeln!(text, "  {} at {:?}: {}", rule.id, rule.at, rule.message).unwrap();
        }
    }
    insta::assert_snapshot!(text);
}
