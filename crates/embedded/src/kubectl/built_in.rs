//! The columns of the built-in kinds, as a real server has them. A kind that is not in the table shows its name and
//! age.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{
    about, amount, controller, count, either, entries, first_seen, job_completions, job_status, joined,
    labels, last_seen, node_address, node_roles, node_status, of_containers, or, plain, ports,
    ready_of_wanted, selector, source, string, subjects, whole,
};
use super::{age, pod};

pub struct Column {
    pub name: &'static str,
    pub value_type: &'static str,
    /// Columns with a priority above 0 are shown only by `-o wide`.
    pub priority: i64,
    pub cell: fn(&Value, Timestamp) -> Value,
}

pub fn columns(group: &str, kind: &str) -> &'static [Column] {
    let row = TABLE.iter().find(|row| row.0 == group && row.1 == kind);
    row.map_or(&[NAME, CREATED], |row| row.2)
}

const fn text(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column { name, value_type: "string", priority: 0, cell }
}

const fn number(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column { name, value_type: "integer", priority: 0, cell }
}

const fn wide(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column { name, value_type: "string", priority: 1, cell }
}

const NAME: Column = text("Name", |object, _| string(&object["metadata"]["name"]));
const AGE: Column =
    text("Age", |object, now| age::since(&object["metadata"]["creationTimestamp"], now).into());
const CREATED: Column = Column {
    name: "Created At",
    value_type: "date",
    priority: 0,
    cell: |object, _| object["metadata"]["creationTimestamp"].clone(),
};
const CONTAINERS: Column = wide("Containers", |object, _| of_containers(object, "name"));
const IMAGES: Column = wide("Images", |object, _| of_containers(object, "image"));
const SELECTOR: Column = wide("Selector", |object, _| selector(&object["spec"]["selector"]).into());
const ROLE: Column = text("Role", |object, _| {
    format!("{}/{}", plain(&object["roleRef"]["kind"]), plain(&object["roleRef"]["name"])).into()
});
const BINDING: &[Column] = &[
    NAME,
    ROLE,
    AGE,
    wide("Users", |object, _| subjects(object, "User")),
    wide("Groups", |object, _| subjects(object, "Group")),
    wide("ServiceAccounts", |object, _| subjects(object, "ServiceAccount")),
];
const EVENT: &[Column] = &[
    text("Last Seen", |event, now| last_seen(event, now).into()),
    text("Type", |event, _| string(&event["type"])),
    text("Reason", |event, _| string(&event["reason"])),
    text("Object", |event, _| about(event).into()),
    wide("Subobject", |event, _| string(&either(event, "involvedObject", "regarding")["fieldPath"])),
    wide("Source", |event, _| source(event).into()),
    text("Message", |event, _| plain(either(event, "message", "note")).trim().into()),
    wide("First Seen", |event, now| first_seen(event, now).into()),
    wide("Count", |event, _| count(event).into()),
    wide("Name", |event, _| string(&event["metadata"]["name"])),
];

/// Group, kind, columns.
const TABLE: &[(&str, &str, &[Column])] = &[
    (
        "",
        "ConfigMap",
        &[NAME, text("Data", |map, _| (entries(&map["data"]) + entries(&map["binaryData"])).into()), AGE],
    ),
    ("", "Event", EVENT),
    ("events.k8s.io", "Event", EVENT),
    ("", "Namespace", &[NAME, text("Status", |space, _| string(&space["status"]["phase"])), AGE]),
    (
        "",
        "Node",
        &[
            NAME,
            text("Status", |node, _| node_status(node).into()),
            text("Roles", |node, _| node_roles(node).into()),
            AGE,
            text("Version", |node, _| string(&node["status"]["nodeInfo"]["kubeletVersion"])),
            wide("Internal-IP", |node, _| node_address(node, "InternalIP")),
            wide("External-IP", |node, _| node_address(node, "ExternalIP")),
            wide("OS-Image", |node, _| or(&node["status"]["nodeInfo"]["osImage"], "<unknown>")),
            wide("Kernel-Version", |node, _| or(&node["status"]["nodeInfo"]["kernelVersion"], "<unknown>")),
            wide("Container-Runtime", |node, _| {
                or(&node["status"]["nodeInfo"]["containerRuntimeVersion"], "<unknown>")
            }),
        ],
    ),
    (
        "",
        "Pod",
        &[
            NAME,
            text("Ready", |pod, now| pod::Summary::of(pod, now).ready.into()),
            text("Status", |pod, now| pod::Summary::of(pod, now).reason.into()),
            text("Restarts", |pod, now| pod::Summary::of(pod, now).restarts.into()),
            AGE,
            wide("IP", |pod, _| or(&pod["status"]["podIPs"][0]["ip"], "<none>")),
            wide("Node", |pod, _| or(&pod["spec"]["nodeName"], "<none>")),
            wide("Nominated Node", |pod, _| or(&pod["status"]["nominatedNodeName"], "<none>")),
            wide("Readiness Gates", |pod, _| pod::readiness_gates(pod).into()),
        ],
    ),
    (
        "",
        "Secret",
        &[
            NAME,
            text("Type", |secret, _| string(&secret["type"])),
            text("Data", |secret, _| entries(&secret["data"]).into()),
            AGE,
        ],
    ),
    (
        "",
        "Service",
        &[
            NAME,
            text("Type", |service, _| string(&service["spec"]["type"])),
            text("Cluster-IP", |service, _| or(&service["spec"]["clusterIP"], "<none>")),
            text("External-IP", |service, _| joined(&service["spec"]["externalIPs"], ",")),
            text("Port(s)", |service, _| ports(service).into()),
            AGE,
            wide("Selector", |service, _| labels(&service["spec"]["selector"]).into()),
        ],
    ),
    ("", "ServiceAccount", &[NAME, AGE]),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
        &[
            NAME,
            number("Validations", |policy, _| entries(&policy["spec"]["validations"]).into()),
            text("ParamKind", |policy, _| {
                let kind = &policy["spec"]["paramKind"];
                let shown = format!("{}/{}", plain(&kind["apiVersion"]), plain(&kind["kind"]));
                if kind.is_null() { "<unset>".into() } else { shown.into() }
            }),
            AGE,
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
        &[
            NAME,
            text("PolicyName", |binding, _| string(&binding["spec"]["policyName"])),
            text("ParamRef", |binding, _| or(&binding["spec"]["paramRef"]["name"], "<unset>")),
            AGE,
        ],
    ),
    (
        "apps",
        "ControllerRevision",
        &[
            NAME,
            text("Controller", |revision, _| controller(revision).into()),
            text("Revision", |revision, _| revision["revision"].as_i64().unwrap_or(0).into()),
            AGE,
        ],
    ),
    (
        "apps",
        "DaemonSet",
        &[
            NAME,
            number("Desired", |set, _| whole(&set["status"]["desiredNumberScheduled"])),
            number("Current", |set, _| whole(&set["status"]["currentNumberScheduled"])),
            number("Ready", |set, _| whole(&set["status"]["numberReady"])),
            number("Up-to-date", |set, _| whole(&set["status"]["updatedNumberScheduled"])),
            number("Available", |set, _| whole(&set["status"]["numberAvailable"])),
            text("Node Selector", |set, _| labels(&set["spec"]["template"]["spec"]["nodeSelector"]).into()),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "apps",
        "Deployment",
        &[
            NAME,
            text("Ready", |set, _| ready_of_wanted(set)),
            text("Up-to-date", |set, _| whole(&set["status"]["updatedReplicas"])),
            text("Available", |set, _| whole(&set["status"]["availableReplicas"])),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "apps",
        "ReplicaSet",
        &[
            NAME,
            number("Desired", |set, _| set["spec"]["replicas"].as_i64().unwrap_or(1).into()),
            number("Current", |set, _| whole(&set["status"]["replicas"])),
            number("Ready", |set, _| whole(&set["status"]["readyReplicas"])),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    ("apps", "StatefulSet", &[NAME, text("Ready", |set, _| ready_of_wanted(set)), AGE, CONTAINERS, IMAGES]),
    (
        "batch",
        "CronJob",
        &[
            NAME,
            text("Schedule", |job, _| string(&job["spec"]["schedule"])),
            text("Timezone", |job, _| or(&job["spec"]["timeZone"], "<none>")),
            Column {
                name: "Suspend",
                value_type: "boolean",
                priority: 0,
                cell: |job, _| if job["spec"]["suspend"] == true { "True".into() } else { "False".into() },
            },
            number("Active", |job, _| entries(&job["status"]["active"]).into()),
            text("Last Schedule", |job, now| {
                let last = &job["status"]["lastScheduleTime"];
                if last.is_null() { "<none>".into() } else { age::since(last, now).into() }
            }),
            AGE,
            CONTAINERS,
            IMAGES,
            wide("Selector", |_, _| "<none>".into()),
        ],
    ),
    (
        "batch",
        "Job",
        &[
            NAME,
            text("Status", |job, _| job_status(job).into()),
            text("Completions", |job, _| job_completions(job).into()),
            text("Duration", |job, now| {
                age::between(&job["status"]["startTime"], &job["status"]["completionTime"], now).into()
            }),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
    ),
    (
        "coordination.k8s.io",
        "Lease",
        &[NAME, text("Holder", |lease, _| string(&lease["spec"]["holderIdentity"])), AGE],
    ),
    (
        "policy",
        "PodDisruptionBudget",
        &[
            NAME,
            text("Min Available", |budget, _| amount(&budget["spec"]["minAvailable"])),
            text("Max Unavailable", |budget, _| amount(&budget["spec"]["maxUnavailable"])),
            number("Allowed Disruptions", |budget, _| whole(&budget["status"]["disruptionsAllowed"])),
            AGE,
        ],
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", BINDING),
    ("rbac.authorization.k8s.io", "RoleBinding", BINDING),
    (
        "scheduling.k8s.io",
        "PriorityClass",
        &[
            NAME,
            number("Value", |class, _| whole(&class["value"])),
            Column {
                name: "Global-Default",
                value_type: "boolean",
                priority: 0,
                cell: |class, _| (class["globalDefault"] == true).into(),
            },
            AGE,
            text("PreemptionPolicy", |class, _| string(&class["preemptionPolicy"])),
        ],
    ),
];
