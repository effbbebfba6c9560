//! The policies of the API server: those that restrict agents to their nodes, and the one of allowed images, which a cluster need
//! not have.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use prewarm_api::permission::IMAGE_ALLOW_LIST;

use super::arguments;
use crate::check::facts::{Asked, Facts, Policies};
use crate::check::report::{Finding, Section};

const SECTION: Section = Section::Controller;
/// The controller's argument that makes it obey a list of images.
const OBEYS_LIST: &str = "--image-allow-list";
const STEP: &str = "install once more, which brings the policies back: docs/install.md";

/// A policy that has to be there.
struct Wanted {
    /// How its name ends; what comes before is the name of the release.
    end: &'static str,
    /// What it does.
    does: &'static str,
    /// What is so without it.
    otherwise: &'static str,
}

/// Without these an agent's token is worth more than its node.
const OF_AGENTS: [Wanted; 2] = [
    Wanted {
        end: "agent-own-node",
        does: "restricts each agent to its own node",
        otherwise: "nothing prevents a captured agent from reporting for other nodes",
    },
    Wanted {
        end: "agent-own-events",
        does: "restricts each agent to events of its own node",
        otherwise: "nothing prevents a captured agent from writing events in the name of other nodes",
    },
];
const OF_IMAGES: Wanted = Wanted {
    end: "image-allow-list",
    does: "refuses objects with images that are not allowed",
    otherwise: "objects with images that are not allowed are stored, and only the controller holds them",
};

pub fn judge(facts: &Facts) -> Vec<Finding> {
    let obeys_list = obeys_list(facts);
    let wanted = OF_AGENTS.iter().chain(obeys_list.then_some(&OF_IMAGES));
    let mut findings = match &facts.policies {
        Ok(policies) => wanted.map(|wanted| policy(wanted, policies)).collect(),
        Err(why) => vec![Finding::unknown(SECTION, "the policies", why)],
    };
    if obeys_list {
        findings.push(list(&facts.allow_list, &facts.installed_in));
    }
    findings
}

/// Whether the controller has a list of images that are allowed.
fn obeys_list(facts: &Facts) -> bool {
    let deployments = facts.deployments.iter().flatten();
    let mut pods = deployments.filter_map(|deployment| deployment.spec.as_ref()?.template.spec.as_ref());
    pods.any(|pod| arguments(pod).any(|argument| argument.starts_with(OBEYS_LIST)))
}

fn policy(wanted: &Wanted, Policies { policies, bindings }: &Policies) -> Finding {
    let Wanted { end, does, otherwise } = wanted;
    let Some(policy) = policies.iter().find(|policy| policy.name_any().ends_with(end)) else {
        return Finding::bad(SECTION, format!("{otherwise}: the policy {end} is missing"), STEP);
    };
    let name = policy.name_any();
    if bindings.iter().any(|binding| enforces(binding, &name)) {
        return Finding::good(SECTION, format!("policy {name} {does}"));
    }
    Finding::bad(SECTION, format!("policy {name} exists, but no binding enforces it with Deny"), STEP)
}

fn enforces(binding: &ValidatingAdmissionPolicyBinding, policy: &str) -> bool {
    let Some(spec) = &binding.spec else { return false };
    let mut actions = spec.validation_actions.iter().flatten();
    spec.policy_name.as_deref() == Some(policy) && actions.any(|action| action == "Deny")
}

/// Without the ConfigMap it is as with an empty one.
fn list(list: &Asked<Option<ConfigMap>>, namespace: &str) -> Finding {
    let name = format!("ConfigMap {namespace}/{IMAGE_ALLOW_LIST}");
    match list {
        Ok(Some(_)) => Finding::good(SECTION, format!("{name} says which images are allowed")),
        Ok(None) => Finding::bad(
            SECTION,
            format!("{name} does not exist, so no image is allowed"),
            "install once more with imageAllowList, or without imageAllowList.enabled: docs/security.md",
        ),
        Err(why) => Finding::unknown(SECTION, &name, why),
    }
}
