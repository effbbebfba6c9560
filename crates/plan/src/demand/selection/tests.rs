use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The five nodes of kruise T90: two in the pool `gpu`, one in `cpu`, two without labels.
fn nodes() -> [(&'static str, BTreeMap<String, String>); 5] {
    [
        ("node1", labels(&[("pool", "gpu"), ("zone", "a")])),
        ("node2", labels(&[("pool", "gpu"), ("zone", "b")])),
        ("node3", labels(&[("pool", "cpu")])),
        ("node4", labels(&[])),
        ("node5", labels(&[])),
    ]
}

fn taken(selector: Option<Value>) -> Vec<&'static str> {
    let selector = selector.map(read::<NodeSelector>);
    let selection = Selection::of(selector.as_ref(), None);
    let nodes = nodes().into_iter().filter(|(name, labels)| selection.takes_node(name, labels) == Some(true));
    nodes.map(|(name, _)| name).collect()
}

/// kruise T90
#[test]
fn no_selector_takes_every_node() {
    assert_eq!(taken(None), ["node1", "node2", "node3", "node4", "node5"]);
}

/// kruise W8
#[test]
fn an_empty_selector_takes_every_node() {
    let empty = [json!({}), json!({"matchLabels": {}}), json!({"matchExpressions": []})];
    for selector in empty.map(read::<NodeSelector>) {
        assert_eq!(Selection::of(Some(&selector), None), Selection::All);
    }
}

/// kruise T90
#[test]
fn names_take_exactly_those_nodes() {
    assert_eq!(taken(Some(json!({"names": ["node4", "node1", "stranger"]}))), ["node1", "node4"]);
}

/// kruise W8
#[test]
fn an_empty_list_of_names_takes_no_node() {
    assert!(taken(Some(json!({"names": []}))).is_empty());
}

/// kruise T90
#[test]
fn labels_take_the_nodes_that_have_them_all() {
    assert_eq!(taken(Some(json!({"matchLabels": {"pool": "gpu"}}))), ["node1", "node2"]);
    assert_eq!(taken(Some(json!({"matchLabels": {"pool": "gpu", "zone": "b"}}))), ["node2"]);
}

/// kruise T90
#[test]
fn expressions_take_the_nodes_that_meet_them() {
    let by = |operator: &str, values: &[&str]| {
        let expression = json!({"key": "pool", "operator": operator, "values": values});
        taken(Some(json!({"matchExpressions": [expression]})))
    };
    assert_eq!(by("In", &["gpu", "tpu"]), ["node1", "node2"]);
    assert_eq!(by("NotIn", &["gpu", "tpu"]), ["node3", "node4", "node5"]);
    assert_eq!(by("Exists", &[]), ["node1", "node2", "node3"]);
    assert_eq!(by("DoesNotExist", &[]), ["node4", "node5"]);
}

#[test]
fn labels_and_expressions_must_both_be_met() {
    let zone = json!({"key": "zone", "operator": "NotIn", "values": ["a"]});
    let selector = json!({"matchLabels": {"pool": "gpu"}, "matchExpressions": [zone]});
    assert_eq!(taken(Some(selector)), ["node2"]);
}

/// kruise R40
#[test]
fn a_pod_selector_leaves_nodes_to_their_pods() {
    let pods: LabelSelector = read(json!({"matchLabels": {"app": "web"}}));
    let selection = Selection::of(None, Some(&pods));
    assert_eq!(selection.takes_node("node1", &labels(&[("app", "web")])), None);
    let Selection::Pods(requirements) = selection else { panic!("{selection:?}") };
    assert!(requirements.matches(&labels(&[("app", "web"), ("tier", "front")])));
    assert!(!requirements.matches(&labels(&[("app", "mail")])));
}

#[test]
fn an_empty_pod_selector_selects_every_pod() {
    let Selection::Pods(requirements) = Selection::of(None, Some(&LabelSelector::default())) else {
        panic!()
    };
    assert!(requirements.matches(&labels(&[])));
    assert!(requirements.matches(&labels(&[("app", "web")])));
}

/// kruise R50
#[test]
fn parallelism_is_one_unless_given() {
    assert_eq!(parallelism(None), 1);
}

/// kruise R50
#[test]
fn parallelism_is_a_number_or_a_numeric_text() {
    assert_eq!(parallelism(Some(&IntOrString::Int(7))), 7);
    assert_eq!(parallelism(Some(&IntOrString::String("7".into()))), 7);
}

/// kruise R50
#[test]
fn parallelism_that_is_zero_negative_or_no_number_pauses() {
    for number in [0, -1, i32::MIN] {
        assert_eq!(parallelism(Some(&IntOrString::Int(number))), 0);
    }
    for text in ["", "0", "-3", "50%", "many", "2147483648", " 7"] {
        assert_eq!(parallelism(Some(&IntOrString::String(text.into()))), 0, "{text:?}");
    }
}

#[test]
fn the_labels_of_agents_nodes_are_read_as_kubectl_writes_them() {
    let parsed = Requirements::parse("pool=gpu, zone=a").unwrap();
    assert!(parsed.matches(&labels(&[("pool", "gpu"), ("zone", "a"), ("more", "x")])));
    assert!(!parsed.matches(&labels(&[("pool", "gpu")])));
    assert_eq!(Requirements::parse(""), Ok(Requirements::default()));
    for wrong in ["pool", "=gpu", "pool==gpu"] {
        let told = Requirements::parse(wrong).unwrap_err();
        assert!(told.contains(wrong) && told.contains("KEY=VALUE"), "{told}");
    }
}
