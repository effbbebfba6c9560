//! Policies that are missing or not enforced, and the list of allowed images.

use k8s_openapi::api::apps::v1::Deployment;

use super::*;

/// The policies of agents, and what is so without each.
const OF_AGENTS: [(&str, &str); 2] = [
    ("shop-agent-own-node", "reporting for other nodes: the policy agent-own-node is missing"),
    ("shop-agent-own-events", "in the name of other nodes: the policy agent-own-events is missing"),
];
const OF_IMAGES: &str = "shop-image-allow-list";

/// What is wrong, and how that is reported.
type Fault = (fn(&mut Facts), Verdict, &'static str);

fn without_policy(facts: &mut Facts, name: &str) {
    let Ok(Policies { policies, .. }) = &mut facts.policies else { panic!("they are there") };
    policies.retain(|policy| policy.name_any() != name);
}

/// What is violated is only written down.
fn without_deny(facts: &mut Facts, name: &str) {
    let Ok(Policies { bindings, .. }) = &mut facts.policies else { panic!("they are there") };
    for spec in bindings.iter_mut().filter_map(|binding| binding.spec.as_mut()) {
        if spec.policy_name.as_deref() == Some(name) {
            spec.validation_actions = Some(vec!["Audit".to_owned()]);
        }
    }
}

/// An installation with a list of allowed images.
fn with_list(facts: &mut Facts) {
    let Ok(deployments) = &mut facts.deployments else { panic!("they are there") };
    let container =
        json!({"name": "controller", "args": ["controller", "--image-allow-list=prewarm-image-allow-list"]});
    let deployment: &mut Deployment = &mut deployments[0];
    deployment.spec.as_mut().unwrap().template = read(json!({"spec": {"containers": [container]}}));
    let Ok(Policies { policies, bindings }) = &mut facts.policies else { panic!("they are there") };
    policies.push(read(json!({"metadata": {"name": OF_IMAGES}})));
    let spec = json!({"policyName": OF_IMAGES, "validationActions": ["Deny", "Audit"]});
    bindings.push(read(json!({"metadata": {"name": OF_IMAGES}, "spec": spec})));
    facts.allow_list = Ok(Some(read(json!({"metadata": {"name": "prewarm-image-allow-list"}}))));
}

#[test]
fn a_policy_of_agents_that_is_missing_is_reported() {
    for (name, words) in OF_AGENTS {
        finds(|facts| without_policy(facts, name), Stage::After, Verdict::Bad, &[words, "docs/install.md"]);
    }
}

#[test]
fn a_policy_that_does_not_deny_is_reported() {
    for (name, _) in OF_AGENTS {
        let words = format!("policy {name} exists, but no binding enforces it with Deny");
        finds(|facts| without_deny(facts, name), Stage::After, Verdict::Bad, &[&words]);
    }
}

#[test]
fn a_list_of_allowed_images_needs_its_policy_its_binding_and_its_config_map() {
    let mut facts = healthy();
    with_list(&mut facts);
    assert_eq!(found(&facts, Stage::After), []);
    let faults: [Fault; 4] = [
        (|facts| without_policy(facts, OF_IMAGES), Verdict::Bad, "the policy image-allow-list is missing"),
        (|facts| without_deny(facts, OF_IMAGES), Verdict::Bad, "no binding enforces it"),
        (|facts| facts.allow_list = Ok(None), Verdict::Bad, "does not exist, so no image is allowed"),
        (
            |facts| facts.allow_list = Err("no".to_owned()),
            Verdict::Warning,
            "image-allow-list could not be read: no",
        ),
    ];
    for (fault, verdict, words) in faults {
        let broken = |facts: &mut Facts| {
            with_list(facts);
            fault(facts);
        };
        finds(broken, Stage::After, verdict, &[words]);
    }
}

#[test]
fn without_a_list_of_allowed_images_nothing_of_it_is_asked_for() {
    let mut facts = healthy();
    facts.allow_list = Err("you may not read it".to_owned());
    assert_eq!(found(&facts, Stage::After), []);
}
