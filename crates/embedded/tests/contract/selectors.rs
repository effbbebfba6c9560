//! Label selectors: what each operator means, and how invalid ones are refused.

use anyhow::ensure;
use serde_json::json;

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
        an_empty_element_in_a_set_is_the_empty_value,
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
    ]
}

/// Maps m0 to m4 with their number as a label, and "none" without labels.
pub async fn numbered(world: &World) -> anyhow::Result<()> {
    world.make_map("none").await?;
    for number in 0..5 {
        let mut object = map(&format!("m{number}"));
        object["metadata"]["labels"] =
            json!({ "n": number.to_string(), "odd": (number % 2 == 1).to_string() });
        world.post(&world.core("configmaps"), &object).await?.ok(201)?;
    }
    Ok(())
}

pub fn query(name: &str, value: &str) -> String {
    let value: Vec<String> = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let value = value.concat();
    format!("{name}={value}")
}

pub async fn selected(world: &World, path: &str, query: &str) -> anyhow::Result<String> {
    let list = world.get(&format!("{path}?{query}")).await?.ok(200)?;
    Ok(names(&list).join(" "))
}

async fn by_labels(world: &World, selector: &str) -> anyhow::Result<String> {
    selected(world, &world.core("configmaps"), &query("labelSelector", selector)).await
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
    // Text that is not a number is not greater than any number.
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

async fn an_empty_element_in_a_set_is_the_empty_value(world: World) -> anyhow::Result<()> {
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
            ("x/y/z", "unable to parse requirement: <nil>: Invalid value: \"x/y/z\": a valid label key must consist of"),
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
