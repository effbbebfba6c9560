//! Properties of selection.

use std::collections::BTreeMap;

use prewarm_api::kruise::NodeSelector;
use prewarm_api::selector::{LabelSelector, LabelSelectorRequirement, SelectorOperator};
use prewarm_plan::demand::selection::{Requirements, Selection};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// Few keys and values, so that labels and requirements meet.
fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map("[abc]", "[xyz]", 0..4)
}

fn expression(operator: SelectorOperator, key: &str, values: &[String]) -> Requirements {
    let requirement =
        LabelSelectorRequirement { key: key.to_owned(), operator, values: Some(values.to_vec()) };
    Requirements::of(&LabelSelector { match_labels: None, match_expressions: Some(vec![requirement]) })
}

proptest! {
    #[test]
    fn each_operator_and_its_opposite_split_all_labels_in_two(
        labels in labels(), key in "[abc]", values in vec("[xyz]", 1..3),
    ) {
        use SelectorOperator::{DoesNotExist, Exists, In, NotIn};
        let meets = |operator| expression(operator, &key, &values).matches(&labels);
        prop_assert_ne!(meets(In), meets(NotIn));
        prop_assert_ne!(meets(Exists), meets(DoesNotExist));
        prop_assert!(!meets(In) || meets(Exists));
    }

    #[test]
    fn labels_select_as_their_expressions_would(wanted in labels(), labels in labels()) {
        let expressions = wanted.iter().map(|(key, value)| LabelSelectorRequirement {
            key: key.clone(),
            operator: SelectorOperator::In,
            values: Some(vec![value.clone()]),
        });
        let expressions =
            LabelSelector { match_labels: None, match_expressions: Some(expressions.collect()) };
        let plain = LabelSelector { match_labels: Some(wanted), match_expressions: None };
        prop_assert_eq!(
            Requirements::of(&plain).matches(&labels),
            Requirements::of(&expressions).matches(&labels)
        );
    }

    #[test]
    fn one_more_label_wanted_never_takes_more_nodes(wanted in labels(), labels in labels(), key in "[abc]") {
        let select = |wanted: BTreeMap<String, String>| {
            let selector = NodeSelector { match_labels: Some(wanted), ..NodeSelector::default() };
            Selection::of(Some(&selector), None).takes_node("node", &labels)
        };
        let mut more = wanted.clone();
        more.entry(key).or_insert_with(|| "x".to_owned());
        prop_assert!(select(more) <= select(wanted));
    }
}
