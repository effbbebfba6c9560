//! The definitions: whether they are ours and complete. Who else handles these kinds comes first, because that has to be
//! settled before definitions are replaced.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::ResourceExt as _;
use prewarm_api::crd;
use prewarm_api::permission::Part;

use super::Stage;
use super::ofen;
use super::openkruise::{self, Manager};
use crate::check::facts::{Asked, Facts};
use crate::check::report::{Finding, Section};
use crate::show;

const SECTION: Section = Section::Definitions;
/// The most fields or names that are listed.
const MOST_NAMES: usize = 3;
const APPLY: &str = "prewarm crds | kubectl apply --server-side --force-conflicts -f -";
/// The same for the kinds that OpenKruise's manager can leave alone.
const APPLY_IMAGE_KINDS: &str = "prewarm crds nodeimages imagepulljobs imagelistpulljobs | kubectl apply --server-side --force-conflicts -f -";

pub fn judge(facts: &Facts, stage: Stage) -> Vec<Finding> {
    let manager = openkruise::manager(facts);
    let mut findings = openkruise::judge(facts, manager, stage);
    findings.extend(ofen::judge(facts));
    findings.extend(definitions(&facts.definitions, manager, stage));
    if stage == Stage::After {
        findings.extend(unserved(facts, manager));
    }
    findings
}

fn definitions(
    installed: &BTreeMap<String, Asked<Option<CustomResourceDefinition>>>,
    manager: Manager,
    stage: Stage,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut absent, mut optional, mut left, mut whole) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for ours in crd::all() {
        let (name, kind) = (ours.name_any(), ours.spec.names.kind.clone());
        match installed.get(&name) {
            _ if manager.keeps(&ours.spec.names.plural) => left.push(kind),
            None | Some(Ok(None)) if ours.spec.group == ofen::GROUP => optional.push(kind),
            None | Some(Ok(None)) => absent.push(kind),
            Some(Err(why)) => findings.push(Finding::unknown(SECTION, &format!("definition {name}"), why)),
            Some(Ok(Some(theirs))) => match lacking(ours, theirs).as_slice() {
                [] => whole += 1,
                fields => findings.push(foreign(&name, fields, manager, stage)),
            },
        }
    }
    if whole > 0 {
        let all = show::counted(whole, "definition");
        findings.push(Finding::good(SECTION, format!("{all} of this version or a newer one")));
    }
    if !left.is_empty() {
        findings.push(Finding::good(SECTION, format!("left to OpenKruise: {}", left.join(", "))));
    }
    findings.extend(not_there(&absent, stage));
    findings.extend(ofen::left_out(&optional, stage));
    findings
}

/// Kinds that are defined, and that an installed controller has no role for.
fn unserved(facts: &Facts, manager: Manager) -> Option<Finding> {
    let is_installed = facts.deployments.as_ref().is_ok_and(|deployments| !deployments.is_empty());
    if !is_installed || manager == Manager::LeadsWithoutImages {
        return None;
    }
    let roles = match &facts.roles {
        Ok(roles) => roles,
        Err(why) => return Some(Finding::unknown(SECTION, "the controller's roles", why)),
    };
    let granted = roles.iter().flat_map(|role| role.rules.iter().flatten());
    let served: BTreeSet<&String> = granted.flat_map(|rule| rule.resources.iter().flatten()).collect();
    let is_unserved = |kind: &&str| {
        let Some(ours) = crd::all().iter().find(|ours| ours.spec.names.kind == **kind) else { return false };
        let definition = facts.definitions.get(&ours.name_any());
        matches!(definition, Some(Ok(Some(_)))) && !served.contains(&ours.spec.names.plural)
    };
    let unserved: Vec<&str> = Part::ALL.into_iter().filter_map(Part::kind).filter(is_unserved).collect();
    (!unserved.is_empty()).then(|| {
        let all = unserved.join(", ");
        Finding::warning(
            SECTION,
            format!(
                "the controller has no role for {all}: such objects are stored, and nothing acts on them"
            ),
            "install with these `kinds`, or delete their definitions",
        )
    })
}

fn not_there(absent: &[String], stage: Stage) -> Option<Finding> {
    if absent.is_empty() {
        return None;
    }
    let listed = absent.join(", ");
    Some(match stage {
        Stage::Before => Finding::good(SECTION, format!("not installed yet: {listed}")),
        Stage::After if absent.iter().any(|kind| kind == "NodeImage") => {
            Finding::bad(SECTION, format!("there is no definition of {listed}"), APPLY)
        }
        Stage::After => Finding::warning(
            SECTION,
            format!("left out: {listed}; everything else works without them"),
            format!("if they are wanted: {APPLY}"),
        ),
    })
}

fn foreign(name: &str, fields: &[String], manager: Manager, stage: Stage) -> Finding {
    let what = format!(
        "definition {name} is from another implementation or an older version: it drops what Prewarm writes ({})",
        show::names(fields, MOST_NAMES)
    );
    match stage {
        _ if manager == Manager::LeadsWithoutImages => Finding::bad(SECTION, what, APPLY_IMAGE_KINDS),
        Stage::Before => Finding::warning(SECTION, what, format!("stop the other manager, then: {APPLY}")),
        Stage::After => Finding::bad(SECTION, what, APPLY),
    }
}

/// The fields that our definition has and theirs drops, in the stored version.
fn lacking(ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Vec<String> {
    let mut fields = Vec::new();
    for version in ours.spec.versions.iter().filter(|version| version.storage) {
        let same = theirs.spec.versions.iter().find(|other| other.name == version.name);
        let schema = |version: Option<&_>| {
            let version: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion =
                version?;
            version.schema.as_ref()?.open_api_v3_schema.clone()
        };
        match (schema(Some(version)), schema(same)) {
            (Some(ours), Some(theirs)) => compare(&ours, &theirs, "", &mut fields),
            _ => fields.push(format!("version {}", version.name)),
        }
    }
    fields
}

fn compare(ours: &JSONSchemaProps, theirs: &JSONSchemaProps, path: &str, fields: &mut Vec<String>) {
    if theirs.x_kubernetes_preserve_unknown_fields == Some(true) {
        return;
    }
    for (name, part) in ours.properties.iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match theirs.properties.as_ref().and_then(|properties| properties.get(name)) {
            Some(same) => compare(part, same, &path, fields),
            None => fields.push(path),
        }
    }
    if let (Some(ours), Some(theirs)) = (items(ours), items(theirs)) {
        compare(ours, theirs, path, fields);
    }
}

/// The schema of the items of a list or the values of a map.
fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    };
    let listed = match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(schema)) => Some(&**schema),
        _ => None,
    };
    let mapped = match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(schema)) => Some(&**schema),
        _ => None,
    };
    listed.or(mapped)
}
