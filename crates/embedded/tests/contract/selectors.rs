//! Label and field selectors: what each operator means, and the words for what is none.

use anyhow::ensure;
use serde_json::{Value, json};

use super::list::names;
use super::world::{World, map, same};
use super::{Case, cases};

pub fn cases() -> Vec<Case> {
    cases![
        one_equals_sign_selects_by_value,
        two_equals_signs_mean_the_same_as_one,
        unequal_selects_other_values_and_objects_without_the_label,
        in_selects_each_of_the_values,
        notin_selects_other_values_and_objects_without_the_label,
        a_name_alone_selects_objects_with_the_label,
        a_name_behind_an_exclamation_mark_selects_objects_without_the_label,
        greater_than_compares_numbers,
        less_than_compares_numbers,
        all_parts_of_a_selector_must_hold,
        an_empty_value_selects_empty_values,
        an_empty_place_in_a_set_is_the_empty_value,
        spaces_in_a_selector_mean_nothing,
        a_label_may_be_called_like_an_operator,
        labels_with_a_domain_are_selected,
        an_empty_selector_selects_everything,
        a_selector_without_a_name_is_refused,
        a_comma_without_a_requirement_is_refused,
        an_unfinished_set_is_refused,
        an_unknown_operator_is_refused,
        a_value_that_no_label_has_is_refused,
        a_name_that_no_label_has_is_refused,
        a_comparison_with_no_number_is_refused,
        a_field_selector_selects_by_name,
        a_field_selector_selects_by_namespace,
        an_unequal_field_selector_selects_the_others,
        all_parts_of_a_field_selector_must_hold,
        label_and_field_selectors_must_both_hold,
        empty_parts_of_a_field_selector_mean_nothing,
        pods_are_selected_by_their_node,
        pods_are_selected_by_their_phase,
        pods_without_a_network_of_the_host_are_selected_by_false,
        nodes_that_take_pods_are_selected_by_false,
        namespaces_are_selected_by_their_phase,
        secrets_are_selected_by_their_type,
        events_are_selected_by_what_they_are_about,
        events_are_selected_by_their_source,
        custom_objects_are_selected_by_the_fields_of_their_definition,
        custom_objects_without_the_field_are_selected_by_the_empty_value,
        an_unknown_field_of_a_plain_kind_is_refused,
        an_unknown_field_of_a_kind_with_fields_is_refused,
        an_unknown_field_of_a_custom_kind_is_refused,
        a_field_selector_without_an_operator_is_refused,
    ]
}

/// Maps of which "none" has no labels, and m0 to m4 have their number.
async fn numbered(world: &World) -> anyhow::Result<()> {
    world.make_map("none").await?;
    for number in 0..5 {
        let mut object = map(&format!("m{number}"));
        object["metadata"]["labels"] =
            json!({ "n": number.to_string(), "odd": (number % 2 == 1).to_string() });
        world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    }
    Ok(())
}

fn query(name: &str, value: &str) -> String {
    let value: Vec<String> = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let value = value.concat();
    format!("{name}={value}")
}

async fn selected(world: &World, path: &str, query: &str) -> anyhow::Result<String> {
    let list = world.get(&format!("{path}?{query}")).await?.ok(200)?;
    Ok(names(&list).join(" "))
}

async fn by_labels(world: &World, selector: &str) -> anyhow::Result<String> {
    selected(world, &world.core("configmaps"), &query("labelSelector", selector)).await
}

async fn by_fields(world: &World, path: &str, selector: &str) -> anyhow::Result<String> {
    selected(world, path, &query("fieldSelector", selector)).await
}

async fn refused_labels(world: &World, table: &[(&str, &str)]) -> anyhow::Result<()> {
    for (selector, words) in table {
        let path = world.core(&format!("configmaps?{}", query("labelSelector", selector)));
        let status = world.get(&path).await?.refused(400, "BadRequest")?;
        let message = status["message"].as_str().unwrap_or_default();
        ensure!(message.starts_with(words), "{selector}\n  wanted {words}\n   found {message}");
    }
    Ok(())
}

async fn refused_fields(world: &World, path: &str, selector: &str) -> anyhow::Result<Value> {
    let path = format!("{path}?{}", query("fieldSelector", selector));
    Ok(world.get(&path).await?.refused(400, "BadRequest")?["message"].clone())
}

async fn one_equals_sign_selects_by_value(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n=1").await?, "m1")
}

async fn two_equals_signs_mean_the_same_as_one(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n==1").await?, "m1")
}

async fn unequal_selects_other_values_and_objects_without_the_label(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n!=1").await?, "m0 m2 m3 m4 none")
}

async fn in_selects_each_of_the_values(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n in (1,3,9)").await?, "m1 m3")
}

async fn notin_selects_other_values_and_objects_without_the_label(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n notin (1,3,9)").await?, "m0 m2 m4 none")
}

async fn a_name_alone_selects_objects_with_the_label(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n").await?, "m0 m1 m2 m3 m4")
}

async fn a_name_behind_an_exclamation_mark_selects_objects_without_the_label(
    world: World,
) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "!n").await?, "none")
}

async fn greater_than_compares_numbers(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n>2").await?, "m3 m4")?;
    // Text that is no number is greater than none.
    same(by_labels(&world, "odd>0").await?, "")
}

async fn less_than_compares_numbers(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n<2").await?, "m0 m1")?;
    same(by_labels(&world, "n<10").await?, "m0 m1 m2 m3 m4")
}

async fn all_parts_of_a_selector_must_hold(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "n>0,n<4,odd=true").await?, "m1 m3")?;
    same(by_labels(&world, "n in (1,2),n!=2,!absent").await?, "m1")
}

async fn an_empty_value_selects_empty_values(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let mut object = map("empty");
    object["metadata"]["labels"] = json!({ "n": "" });
    world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    same(by_labels(&world, "n=").await?, "empty")?;
    same(by_labels(&world, "n=,n").await?, "empty")?;
    same(by_labels(&world, "n!=").await?, "m0 m1 m2 m3 m4 none")
}

async fn an_empty_place_in_a_set_is_the_empty_value(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let mut object = map("empty");
    object["metadata"]["labels"] = json!({ "n": "" });
    world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    for set in ["()", "(,)", "(,7)"] {
        same(by_labels(&world, &format!("n in {set}")).await?, "empty")?;
    }
    same(by_labels(&world, "n in (1,,2)").await?, "empty m1 m2")
}

async fn spaces_in_a_selector_mean_nothing(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "  n  in ( 1 , 2 ) , odd = true ").await?, "m1")
}

async fn a_label_may_be_called_like_an_operator(world: World) -> anyhow::Result<()> {
    let mut object = map("one");
    object["metadata"]["labels"] = json!({ "in": "notin" });
    world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    for selector in ["in", "in=notin", "in in (notin)", "in notin (in)"] {
        same(by_labels(&world, selector).await?, "one")?;
    }
    Ok(())
}

async fn labels_with_a_domain_are_selected(world: World) -> anyhow::Result<()> {
    let mut object = map("one");
    object["metadata"]["labels"] = json!({ "example.com/Size_of.it": "L" });
    world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    same(by_labels(&world, "example.com/Size_of.it=L").await?, "one")
}

async fn an_empty_selector_selects_everything(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_labels(&world, "").await?, "m0 m1 m2 m3 m4 none")?;
    same(by_labels(&world, "  ").await?, "m0 m1 m2 m3 m4 none")
}

async fn a_selector_without_a_name_is_refused(world: World) -> anyhow::Result<()> {
    refused_labels(
        &world,
        &[
            ("=1", "found '=', expected: !, identifier, or 'end of string'"),
            ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
        ],
    )
    .await
}

async fn a_comma_without_a_requirement_is_refused(world: World) -> anyhow::Result<()> {
    refused_labels(
        &world,
        &[
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("n=1,", "found '', expected: identifier after ','"),
        ],
    )
    .await
}

async fn an_unfinished_set_is_refused(world: World) -> anyhow::Result<()> {
    refused_labels(
        &world,
        &[
            ("n in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("n in (1", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("n in (1,", "unable to parse requirement: found '', expected: ',', or identifier"),
            ("n in 1", "unable to parse requirement: found '1' expected: '('"),
            ("n notin", "unable to parse requirement: found '' expected: '('"),
        ],
    )
    .await
}

async fn an_unknown_operator_is_refused(world: World) -> anyhow::Result<()> {
    let operators = "expected: in, notin, =, ==, !=, gt, lt";
    refused_labels(
        &world,
        &[
            ("n!1", &format!("unable to parse requirement: found '!', {operators}")),
            ("exists(n)", &format!("unable to parse requirement: found '(', {operators}")),
            ("n is 1", &format!("unable to parse requirement: found 'is', {operators}")),
            ("n===1", "unable to parse requirement: found '=', expected: identifier"),
            ("n>=2", "unable to parse requirement: found '=', expected: identifier"),
            ("n=1=2", "found '=', expected: ',' or 'end of string'"),
            ("!n=1", "found '=', expected: ',' or 'end of string'"),
            ("n=a b", "found 'b', expected: ',' or 'end of string'"),
            ("n in (1) m", "found 'm', expected: ',' or 'end of string'"),
        ],
    )
    .await
}

async fn a_value_that_no_label_has_is_refused(world: World) -> anyhow::Result<()> {
    let words = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                 start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
                 for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    refused_labels(
        &world,
        &[
            ("n=-", &format!("unable to parse requirement: values[0][n]: Invalid value: \"-\": {words}")),
            ("n>-1", &format!("unable to parse requirement: values[0][n]: Invalid value: \"-1\": {words}")),
            (
                "n=\"1\"",
                &format!("unable to parse requirement: values[0][n]: Invalid value: \"\\\"1\\\"\": {words}"),
            ),
        ],
    )
    .await
}

async fn a_name_that_no_label_has_is_refused(world: World) -> anyhow::Result<()> {
    refused_labels(
        &world,
        &[
            ("-a=1", "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric"),
            ("x/y/z", "unable to parse requirement: <nil>: Invalid value: \"x/y/z\": a qualified name must consist of"),
        ],
    )
    .await
}

async fn a_comparison_with_no_number_is_refused(world: World) -> anyhow::Result<()> {
    let words = "for 'Gt', 'Lt' operators, the value must be an integer";
    let start = "unable to parse requirement: values[0]: Invalid value: ";
    refused_labels(
        &world,
        &[
            ("n>x", &format!("{start}\"x\": {words}")),
            ("n<", &format!("{start}\"\": {words}")),
            ("n>2.5", &format!("{start}\"2.5\": {words}")),
        ],
    )
    .await
}

async fn a_field_selector_selects_by_name(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let path = world.core("configmaps");
    same(by_fields(&world, &path, "metadata.name=m1").await?, "m1")?;
    same(by_fields(&world, &path, "metadata.name==m1").await?, "m1")?;
    same(by_fields(&world, &path, "metadata.name=absent").await?, "")
}

async fn a_field_selector_selects_by_namespace(world: World) -> anyhow::Result<()> {
    world.make_map("one").await?;
    let own = format!("metadata.namespace={}", world.namespace);
    same(by_fields(&world, &world.core("configmaps"), &own).await?, "one")?;
    same(by_fields(&world, &world.core("configmaps"), "metadata.namespace=default").await?, "")?;
    same(by_fields(&world, "/api/v1/configmaps", &own).await?, "one")
}

async fn an_unequal_field_selector_selects_the_others(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let selector = "metadata.name!=m1,metadata.name!=none";
    same(by_fields(&world, &world.core("configmaps"), selector).await?, "m0 m2 m3 m4")
}

async fn all_parts_of_a_field_selector_must_hold(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let path = world.core("configmaps");
    same(by_fields(&world, &path, "metadata.name=m1,metadata.name!=m1").await?, "")?;
    let both = format!("metadata.name=m1,metadata.namespace={}", world.namespace);
    same(by_fields(&world, &path, &both).await?, "m1")
}

async fn label_and_field_selectors_must_both_hold(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    let both =
        format!("{}&{}", query("labelSelector", "odd=true"), query("fieldSelector", "metadata.name!=m1"));
    same(selected(&world, &world.core("configmaps"), &both).await?, "m3")
}

async fn empty_parts_of_a_field_selector_mean_nothing(world: World) -> anyhow::Result<()> {
    numbered(&world).await?;
    same(by_fields(&world, &world.core("configmaps"), ",metadata.name=m1,,").await?, "m1")
}

/// A pod, with these fields in its spec. A real server waits for the namespace's account.
pub async fn make_pod(world: &World, name: &str, spec: Value) -> anyhow::Result<Value> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "nginx:1.25" }] },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    world
        .eventually("the account of a pod", async || {
            let answer = world.post(&world.core("pods"), &pod).await?;
            let waits = answer.code == 403 && answer.text.contains("service account");
            if waits { Ok(None) } else { answer.ok(201).map(Some) }
        })
        .await
}

async fn pods_are_selected_by_their_node(world: World) -> anyhow::Result<()> {
    make_pod(&world, "a", json!({ "nodeName": "here" })).await?;
    make_pod(&world, "b", json!({ "nodeName": "there" })).await?;
    make_pod(&world, "c", json!({})).await?;
    let path = world.core("pods");
    same(by_fields(&world, &path, "spec.nodeName=here").await?, "a")?;
    same(by_fields(&world, &path, "spec.nodeName!=here").await?, "b c")?;
    same(by_fields(&world, &path, "spec.nodeName=").await?, "c")
}

async fn pods_are_selected_by_their_phase(world: World) -> anyhow::Result<()> {
    make_pod(&world, "a", json!({})).await?;
    make_pod(&world, "b", json!({})).await?;
    let phase = json!({ "status": { "phase": "Running" } });
    world.merge(&world.core("pods/b/status"), &phase).await?.ok(200)?;
    let path = world.core("pods");
    same(by_fields(&world, &path, "status.phase=Running").await?, "b")?;
    same(by_fields(&world, &path, "status.phase=Pending").await?, "a")?;
    same(by_fields(&world, &path, "status.phase!=Running,spec.nodeName=").await?, "a")
}

async fn pods_without_a_network_of_the_host_are_selected_by_false(world: World) -> anyhow::Result<()> {
    make_pod(&world, "a", json!({})).await?;
    make_pod(&world, "b", json!({ "hostNetwork": true })).await?;
    let path = world.core("pods");
    same(by_fields(&world, &path, "spec.hostNetwork=false").await?, "a")?;
    same(by_fields(&world, &path, "spec.hostNetwork=true").await?, "b")
}

async fn nodes_that_take_pods_are_selected_by_false(world: World) -> anyhow::Result<()> {
    let (open, closed) = (world.unique("open"), world.unique("closed"));
    let node = |name: &str, spec: Value| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "spec": spec });
    world.post("/api/v1/nodes", &node(&open, json!({}))).await?.ok(201)?;
    world.post("/api/v1/nodes", &node(&closed, json!({ "unschedulable": true }))).await?.ok(201)?;
    let found = by_fields(&world, "/api/v1/nodes", "spec.unschedulable=false").await?;
    ensure!(found.contains(&open) && !found.contains(&closed), "{found}");
    let found = by_fields(&world, "/api/v1/nodes", "spec.unschedulable=true").await?;
    ensure!(found.contains(&closed) && !found.contains(&open), "{found}");
    Ok(())
}

async fn namespaces_are_selected_by_their_phase(world: World) -> anyhow::Result<()> {
    let own = format!("metadata.name={},status.phase", world.namespace);
    same(by_fields(&world, "/api/v1/namespaces", &format!("{own}=Active")).await?, world.namespace.clone())?;
    same(by_fields(&world, "/api/v1/namespaces", &format!("{own}!=Active")).await?, "")
}

async fn secrets_are_selected_by_their_type(world: World) -> anyhow::Result<()> {
    let secret = |name: &str| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
    world.post(&world.core("secrets"), &secret("plain")).await?.ok(201)?;
    let mut special = secret("special");
    special["type"] = "example.com/special".into();
    world.post(&world.core("secrets"), &special).await?.ok(201)?;
    let path = world.core("secrets");
    same(by_fields(&world, &path, "type=Opaque").await?, "plain")?;
    same(by_fields(&world, &path, "type=example.com/special").await?, "special")
}

async fn make_event(world: &World, name: &str, about: &str) -> anyhow::Result<Value> {
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": name },
        "involvedObject": { "kind": "Pod", "name": about, "namespace": world.namespace },
        "reason": "Pulled", "type": "Normal", "message": "done", "source": { "component": "test" },
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
    });
    world.post(&world.core("events"), &event).await?.ok(201)
}

async fn events_are_selected_by_what_they_are_about(world: World) -> anyhow::Result<()> {
    make_event(&world, "first", "web").await?;
    make_event(&world, "second", "api").await?;
    let path = world.core("events");
    same(by_fields(&world, &path, "involvedObject.name=web").await?, "first")?;
    same(by_fields(&world, &path, "involvedObject.kind=Pod,involvedObject.name=api").await?, "second")?;
    same(by_fields(&world, &path, "involvedObject.kind=Job").await?, "")?;
    same(by_fields(&world, &path, "reason=Pulled,type=Normal").await?, "first second")
}

async fn events_are_selected_by_their_source(world: World) -> anyhow::Result<()> {
    make_event(&world, "first", "web").await?;
    same(by_fields(&world, &world.core("events"), "source=test").await?, "first")?;
    same(by_fields(&world, &world.core("events"), "source=other").await?, "")
}

async fn custom_objects_are_selected_by_the_fields_of_their_definition(world: World) -> anyhow::Result<()> {
    world.make_widget("a", json!({ "title": "plain", "color": "blue", "size": 3 })).await?;
    world.make_widget("b", json!({ "title": "plain", "color": "green" })).await?;
    let path = world.widgets("");
    same(by_fields(&world, &path, "spec.color=blue").await?, "a")?;
    same(by_fields(&world, &path, "spec.color!=blue").await?, "b")?;
    same(by_fields(&world, &path, "spec.size=3").await?, "a")?;
    // A default counts as if it had been written.
    same(by_fields(&world, &path, "spec.size=1,metadata.name=b").await?, "b")
}

async fn custom_objects_without_the_field_are_selected_by_the_empty_value(
    world: World,
) -> anyhow::Result<()> {
    world.make_widget("a", json!({ "title": "plain", "color": "blue" })).await?;
    same(by_fields(&world, &world.widgets(""), "spec.color=").await?, "")?;
    same(by_fields(&world, &world.widgets(""), "spec.color!=").await?, "a")
}

async fn an_unknown_field_of_a_plain_kind_is_refused(world: World) -> anyhow::Result<()> {
    let wanted = "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    same(refused_fields(&world, &world.core("configmaps"), "data.a=1").await?, wanted)?;
    let wanted = "\"spec\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    for path in [world.at("apps/v1", "deployments"), world.at("coordination.k8s.io/v1", "leases")] {
        same(refused_fields(&world, &path, "spec=1").await?, wanted)?;
    }
    Ok(())
}

async fn an_unknown_field_of_a_kind_with_fields_is_refused(world: World) -> anyhow::Result<()> {
    for plural in ["pods", "secrets", "events"] {
        let message = refused_fields(&world, &world.core(plural), "spec.image=a").await?;
        same(message, "field label not supported: spec.image")?;
    }
    let message = refused_fields(&world, &world.at("batch/v1", "jobs"), "spec.image=a").await?;
    same(message, "field label \"spec.image\" not supported for Job")
}

async fn an_unknown_field_of_a_custom_kind_is_refused(world: World) -> anyhow::Result<()> {
    let message = refused_fields(&world, &world.widgets(""), "spec.title=plain").await?;
    same(message, "field label not supported: spec.title")?;
    let path = world.at("apps.kruise.io/v1beta1", "imagepulljobs");
    same(refused_fields(&world, &path, "spec.image=a").await?, "field label not supported: spec.image")
}

async fn a_field_selector_without_an_operator_is_refused(world: World) -> anyhow::Result<()> {
    let path = world.core("configmaps");
    let wanted = "invalid selector: 'metadata.name'; can't understand 'metadata.name'";
    same(refused_fields(&world, &path, "metadata.name").await?, wanted)?;
    let wanted = "invalid selector: 'metadata.name=a,b in (c)'; can't understand 'b in (c)'";
    same(refused_fields(&world, &path, "metadata.name=a,b in (c)").await?, wanted)
}
