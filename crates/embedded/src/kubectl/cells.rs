//! The contents of the cells of built-in kinds, in the words of a real server.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;

pub fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn string(value: &Value) -> Value {
    plain(value).into()
}

pub fn or(value: &Value, otherwise: &str) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(otherwise).into()
}

pub fn whole(value: &Value) -> Value {
    value.as_i64().unwrap_or(0).into()
}

/// A number or a percentage, as in disruption budgets.
pub fn amount(value: &Value) -> Value {
    match value {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

pub fn entries(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

pub fn joined(value: &Value, separator: &str) -> Value {
    let texts: Vec<&str> = value.as_array().into_iter().flatten().map(plain).collect();
    if texts.is_empty() { "<none>".into() } else { texts.join(separator).into() }
}

pub fn ready_of_wanted(set: &Value) -> Value {
    let wanted = set["spec"]["replicas"].as_i64().unwrap_or(1);
    format!("{}/{wanted}", set["status"]["readyReplicas"].as_i64().unwrap_or(0)).into()
}

/// One field of each container in a template, joined by commas.
pub fn of_containers(object: &Value, field: &str) -> Value {
    let templates = ["/spec/template/spec/containers", "/spec/jobTemplate/spec/template/spec/containers"];
    let containers = templates.iter().find_map(|place| object.pointer(place)?.as_array());
    let texts: Vec<&str> =
        containers.into_iter().flatten().map(|container| plain(&container[field])).collect();
    texts.join(",").into()
}

pub fn labels(value: &Value) -> String {
    let pairs = value.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", plain(value))).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector as it is written on a command line.
pub fn selector(value: &Value) -> String {
    let expressions = value["matchExpressions"].as_array().into_iter().flatten().map(|expression| {
        let key = plain(&expression["key"]);
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().map(plain).collect();
        values.sort_unstable();
        match plain(&expression["operator"]) {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    let expressions: Vec<String> = expressions.collect();
    let matched = labels(&value["matchLabels"]);
    match (entries(&value["matchLabels"]), expressions.is_empty()) {
        (_, true) => matched,
        (0, false) => expressions.join(","),
        (_, false) => format!("{matched},{}", expressions.join(",")),
    }
}

pub fn subjects(binding: &Value, kind: &str) -> Value {
    let meant =
        binding["subjects"].as_array().into_iter().flatten().filter(|subject| subject["kind"] == kind);
    let names = meant.map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", plain(&subject["namespace"]), plain(&subject["name"])),
        _ => plain(&subject["name"]).to_owned(),
    });
    names.collect::<Vec<String>>().join(", ").into()
}

pub fn controller(object: &Value) -> String {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let Some(owner) = owners.find(|owner| owner["controller"] == true) else { return "<none>".to_owned() };
    let group = plain(&owner["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let kind = plain(&owner["kind"]).to_lowercase();
    let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
    format!("{kind}/{}", plain(&owner["name"]))
}

pub fn ports(service: &Value) -> String {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten().map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        match port["nodePort"].as_i64() {
            Some(node_port) if node_port > 0 => format!("{}:{node_port}/{protocol}", port["port"]),
            _ => format!("{}/{protocol}", port["port"]),
        }
    });
    let ports: Vec<String> = ports.collect();
    if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }
}

fn has_condition(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

pub fn node_status(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    let ready = match ready.map(|ready| ready["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    let is_closed = node["spec"]["unschedulable"] == true;
    if is_closed { format!("{ready},SchedulingDisabled") } else { ready.to_owned() }
}

pub fn node_roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let mut roles: Vec<&str> = labels
        .filter_map(|(name, value)| match name.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None => (name == "kubernetes.io/role").then(|| plain(value)),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

pub fn node_address(node: &Value, kind: &str) -> Value {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let address = addresses.into_iter().find(|address| address["type"] == kind);
    address.map_or(json!("<none>"), |address| or(&address["address"], "<none>"))
}

pub fn job_status(job: &Value) -> &'static str {
    let is_leaving = !job["metadata"]["deletionTimestamp"].is_null();
    let ends = [
        (has_condition(job, "Complete"), "Complete"),
        (has_condition(job, "Failed"), "Failed"),
        (is_leaving, "Terminating"),
        (has_condition(job, "Suspended"), "Suspended"),
        (has_condition(job, "FailureTarget"), "FailureTarget"),
        (has_condition(job, "SuccessCriteriaMet"), "SuccessCriteriaMet"),
    ];
    ends.iter().find(|(is_so, _)| *is_so).map_or("Running", |(_, word)| word)
}

pub fn job_completions(job: &Value) -> String {
    let succeeded = job["status"]["succeeded"].as_i64().unwrap_or(0);
    let parallelism = job["spec"]["parallelism"].as_i64().unwrap_or(0);
    match job["spec"]["completions"].as_i64() {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

/// A field that has different names in the two groups of events.
pub fn either<'a>(event: &'a Value, core: &str, other: &str) -> &'a Value {
    event.get(core).or_else(|| event.get(other)).unwrap_or(&Value::Null)
}

pub fn about(event: &Value) -> String {
    let object = either(event, "involvedObject", "regarding");
    let kind = plain(&object["kind"]).to_lowercase();
    match plain(&object["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

pub fn source(event: &Value) -> String {
    let source = either(event, "source", "deprecatedSource");
    let component =
        first_text([&source["component"], &event["reportingComponent"], &event["reportingController"]]);
    match first_text([&source["host"], &event["reportingInstance"]]) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

fn first_text<const N: usize>(texts: [&Value; N]) -> &str {
    texts.map(plain).into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

pub fn first_seen(event: &Value, now: Timestamp) -> String {
    let first = either(event, "firstTimestamp", "deprecatedFirstTimestamp");
    age::since(if first.is_null() { &event["eventTime"] } else { first }, now)
}

pub fn last_seen(event: &Value, now: Timestamp) -> String {
    let last = either(event, "lastTimestamp", "deprecatedLastTimestamp");
    match (&event["series"]["lastObservedTime"], last) {
        (Value::Null, Value::Null) => first_seen(event, now),
        (Value::Null, last) => age::since(last, now),
        (observed, _) => age::since(observed, now),
    }
}

pub fn count(event: &Value) -> i64 {
    let own = either(event, "count", "deprecatedCount").as_i64().filter(|count| *count > 0);
    event["series"]["count"].as_i64().or(own).unwrap_or(1)
}
