//! Which nodes are chosen (ofen R3–R5, R9, R11, R12, W8, W10, W11, W15, W28).

use super::*;

/// ofen R3, C4, C13
#[test]
fn all_ready_nodes_are_chosen_and_those_that_are_not_ready_are_not() {
    let mut world = World::of(&["n1", "n2", "n3"]);
    world.store.put_node(unready(node("n2")));
    let mut world = begin(world, &json!({}));
    world.finish_prefetch("a");
    assert_eq!(world.selected("a"), ["n1", "n3"]);
    assert_eq!(world.sets("a").len(), 2);
    world.store.put_node(node("n2"));
    world.finish_prefetch("a");
    assert_eq!(world.selected("a"), ["n1", "n2", "n3"], "it joins when it is ready");
}

/// ofen R3, C2, C3
#[test]
fn a_selector_says_who_may_be_chosen() {
    let zone = |op: &str, zone: &str| json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": op, "values": [zone]}]});
    let mut world = begin(zoned(4, 3), &json!({"nodeSelector": zone("In", "y")}));
    world.finish_prefetch("a");
    assert_eq!(world.selected("a"), ["y4", "y5", "y6"]);
    let labels = json!({"matchLabels": {"topology.kubernetes.io/zone": "x"}});
    let mut world = begin(zoned(4, 3), &json!({"replicas": 2, "nodeSelector": labels}));
    world.finish_prefetch("a");
    assert!(world.selected("a").iter().all(|name| name.starts_with('x')));
    assert_eq!((world.nodes_with("a", Registry).len(), world.nodes_with("a", MirrorOnly).len()), (1, 1));
}

/// ofen R4, C7
#[test]
fn replicas_are_spread_over_zones() {
    let mut world = begin(zoned(6, 2), &json!({"replicas": 4}));
    world.finish_prefetch("a");
    let in_y = world.selected("a").iter().filter(|name| name.starts_with('y')).count();
    assert_eq!((world.selected("a").len(), in_y), (4, 2));
}

/// ofen R4, R12: a node that comes, or comes back, changes nothing for those that were chosen.
#[test]
fn a_choice_stays_while_its_nodes_do() {
    let mut world = world(&["n1", "n2", "n3"], &json!({"replicas": 2}));
    world.finish_prefetch("a");
    let chosen = world.selected("a");
    world.store.put_node(node("n0"));
    world.store.put_node(labelled("n2", &[("any", "label")]));
    assert_eq!(
        world.pass(seconds(60)),
        2,
        "a NodeImage is made for one, and the labels of the other are written"
    );
    assert_eq!(world.selected("a"), chosen);
}

/// ofen R4, C9: those that have the images stay.
#[test]
fn more_replicas_add_nodes_and_fewer_take_some_away() {
    let mut world = many(6, &json!({"replicas": 1}));
    world.finish_prefetch("a");
    let first = world.selected("a");
    edit(&mut world, &json!({"replicas": 4}));
    world.finish_prefetch("a");
    assert!(world.selected("a").contains(&first[0]) && world.selected("a").len() == 4);
    assert_eq!(world.nodes_with("a", Registry), first, "to ask for what is there costs one request");
    assert_eq!(world.nodes_with("a", MirrorOnly).len(), 3);
    edit(&mut world, &json!({"replicas": 2}));
    world.finish_prefetch("a");
    assert_eq!((world.nodes_with("a", Registry).len(), world.nodes_with("a", MirrorOnly).len()), (1, 1));
    assert_eq!((world.selected("a").len(), world.sets("a").len()), (2, 2));
}

#[test]
fn of_a_rollout_that_shrinks_those_stay_that_have_the_images() {
    let mut world = many(6, &json!({"replicas": 6}));
    let first = seed(&world);
    pull(&mut world);
    edit(&mut world, &json!({"replicas": 1}));
    assert_eq!(world.selected("a"), [first]);
}

/// ofen R12, C10: the set goes at once, also while a rollout goes on (ofen W10).
#[test]
fn a_node_that_is_deleted_is_replaced_and_its_set_goes_at_once() {
    let mut world = many(6, &json!({"replicas": 4}));
    let gone = seed(&world);
    world.store.delete_node(&gone);
    world.pass(SECOND);
    assert!(!world.sets("a").contains_key(&gone), "the rollout has only begun");
    world.finish_prefetch("a");
    assert!(!world.selected("a").contains(&gone));
    assert_eq!((world.selected("a").len(), world.sets("a").len()), (4, 4));
}

/// ofen R12, C12, with a grace period: most nodes come back.
#[test]
fn a_node_that_is_not_ready_keeps_its_place_for_five_minutes() {
    let mut world = many(4, &json!({"replicas": 2}));
    world.finish_prefetch("a");
    let chosen = world.selected("a");
    world.store.put_node(unready(node(&chosen[0])));
    world.pass(seconds(4 * 60));
    assert_eq!((world.selected("a"), world.sets("a").len()), (chosen.clone(), 2));
    assert_eq!(condition(&world, "Ready"), is("True", "ImagePrefetchReady"), "it has the images");
    world.store.put_node(node(&chosen[0]));
    world.pass(seconds(60));
    world.store.put_node(unready(node(&chosen[0])));
    world.pass(seconds(4 * 60));
    assert_eq!(world.selected("a"), chosen, "the time begins anew");
    world.pass(seconds(61));
    assert!(!world.selected("a").contains(&chosen[0]));
    assert!(!world.sets("a").contains_key(&chosen[0]));
    world.finish_prefetch("a");
    assert_eq!((world.selected("a").len(), world.sets("a").len()), (2, 2));
    assert_eq!(world.tag(&chosen[0], IMAGE), None, "nothing is wanted of it any more");
}

/// ofen W15, C11
#[test]
fn labels_that_change_take_nodes_in_and_out() {
    let pool = json!({"nodeSelector": {"matchLabels": {"pool": "x"}}});
    let mut world = World::default();
    for name in ["n1", "n2", "n3"] {
        world.store.put_node(labelled(name, &[("pool", "x")]));
    }
    world.store.put_node(node("n4"));
    world.settle();
    let mut world = begin(world, &pool);
    world.finish_prefetch("a");
    assert_eq!(world.sets("a").len(), 3);
    world.store.put_node(labelled("n4", &[("pool", "x")]));
    world.finish_prefetch("a");
    assert_eq!(world.sets("a").len(), 4);
    world.store.put_node(node("n1"));
    world.pass(SECOND);
    assert_eq!(world.selected("a"), ["n2", "n3", "n4"]);
    assert_eq!(world.sets("a").keys().collect::<Vec<_>>(), ["n2", "n3", "n4"]);
    assert_eq!(world.tag("n1", IMAGE), None);
}

/// ofen W11
#[test]
fn too_few_nodes_are_said_once_and_a_new_node_is_taken() {
    let mut world = world(&["n1"], &json!({"replicas": 2}));
    world.pass(seconds(60));
    assert_eq!(condition(&world, "NodesSelected"), is("False", "TooFewNodes"));
    assert_eq!(reasons(&world).iter().filter(|reason| **reason == "TooFewNodes").count(), 1);
    pull(&mut world);
    assert_eq!(world.prefetch_counts("a"), [2, 1, 0, 0]);
    assert_eq!(condition(&world, "Ready"), is("False", "ImagePrefetchProgressing"));
    world.store.put_node(node("n2"));
    world.finish_prefetch("a");
    assert_eq!(condition(&world, "NodesSelected"), is("True", "AllFound"));
    assert_eq!(world.selected("a"), ["n1", "n2"]);
    assert_eq!(reasons(&world).iter().filter(|reason| **reason == "TooFewNodes").count(), 1);
}

/// ofen W14: nothing is ready by accident.
#[test]
fn without_any_node_it_is_not_ready_and_says_so() {
    let mut world = world(&[], &json!({}));
    assert_eq!(condition(&world, "Ready"), is("False", "ImagePrefetchProgressing"));
    assert_eq!(condition(&world, "NodesSelected"), is("False", "NoNodes"));
    assert_eq!(world.settle(), 0);
}

/// ofen R4, R5
#[test]
fn the_same_cluster_gives_the_same_choice_and_names_are_sorted() {
    let one = many(9, &json!({"replicas": 4}));
    let other = many(9, &json!({"replicas": 4}));
    assert_eq!(one.selected("a"), other.selected("a"));
    assert!(one.selected("a").is_sorted());
}

/// ofen W8: what no agent will ever answer for is not waited for.
#[test]
fn nodes_on_which_no_agent_runs_are_not_chosen() {
    let mut world = World::of(&["n1", "n2"]);
    world.store.put_node(labelled("windows", &[("kubernetes.io/os", "windows")]));
    world.store.put_node(labelled("virtual", &[("type", "virtual-kubelet")]));
    let mut world = begin(world, &json!({}));
    world.finish_prefetch("a");
    assert_eq!(world.selected("a"), ["n1", "n2"]);
    assert_eq!(condition(&world, "Ready"), is("True", "ImagePrefetchReady"));
}

/// ofen W28
#[test]
fn a_node_whose_name_is_too_long_for_a_label_has_a_set_without_that_label() {
    let long = "n".repeat(64);
    let mut world = world(&[&long], &json!({}));
    world.finish_prefetch("a");
    world.restart();
    world.pass(SECOND);
    let (_, set) = world.store.sets.first_key_value().unwrap();
    assert_eq!(set.spec.node_name, long);
    let labels: Vec<&str> = set.metadata.labels.iter().flatten().map(|(name, _)| &**name).collect();
    assert_eq!(
        labels,
        ["image-prefetch.ofen.cybozu.io/owner-name", "image-prefetch.ofen.cybozu.io/owner-namespace"]
    );
    assert_eq!(condition(&world, "Ready"), is("True", "ImagePrefetchReady"));
    assert_eq!(world.settle(), 0);
}
