//! How a pod is doing, in one word, as a real server sums it up for `kubectl get`.

use jiff::Timestamp;
use serde_json::Value;

use super::age;

/// The three cells that say how a pod is doing.
pub struct Summary {
    pub ready: String,
    pub reason: String,
    pub restarts: String,
}

/// Counts over the containers.
#[derive(Default)]
struct Tally {
    ready: usize,
    restarts: i64,
    /// When a container last ended before a restart.
    last_restart: Option<Timestamp>,
}

impl Tally {
    fn restarted(&mut self, status: &Value) {
        self.restarts += status["restartCount"].as_i64().unwrap_or(0);
        let ended = status["lastState"]["terminated"]["finishedAt"].as_str();
        self.last_restart = self.last_restart.max(ended.and_then(|time| time.parse().ok()));
    }

    fn shown_restarts(&self, now: Timestamp) -> String {
        match self.last_restart.filter(|_| self.restarts > 0) {
            Some(last) => format!("{} ({} ago)", self.restarts, age::shown(now.duration_since(last))),
            None => self.restarts.to_string(),
        }
    }
}

impl Summary {
    pub fn of(pod: &Value, now: Timestamp) -> Self {
        let status = &pod["status"];
        let mut reason = text(&status["phase"]).to_owned();
        if !text(&status["reason"]).is_empty() {
            text(&status["reason"]).clone_into(&mut reason);
        }
        if items(&status["conditions"])
            .any(|condition| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated")
        {
            "SchedulingGated".clone_into(&mut reason);
        }
        let sidecars = items(&pod["spec"]["initContainers"]).filter(|container| is_sidecar(container));
        let total = items(&pod["spec"]["containers"]).count() + sidecars.count();

        let mut initial = Tally::default();
        let mut sidecar = Tally::default();
        let initializing = initializing(pod, &mut initial, &mut sidecar);
        let is_initialized = has_condition(status, "Initialized");
        if let Some(word) = &initializing {
            reason.clone_from(word);
        }
        let mut tally = initial;
        if initializing.is_none() || is_initialized {
            tally = Tally { ready: tally.ready, ..sidecar };
            let (word, has_running) = main_containers(status, &mut tally);
            reason = word.unwrap_or(reason);
            if reason == "Completed" && has_running {
                let word = if has_condition(status, "Ready") { "Running" } else { "NotReady" };
                word.clone_into(&mut reason);
            }
        }
        let is_leaving = !pod["metadata"]["deletionTimestamp"].is_null();
        if is_leaving && status["reason"] == "NodeLost" {
            "Unknown".clone_into(&mut reason);
        } else if is_leaving && !matches!(text(&status["phase"]), "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut reason);
        }
        Self { ready: format!("{}/{total}", tally.ready), reason, restarts: tally.shown_restarts(now) }
    }
}

/// The word for the first init container that is not done, if there is one.
fn initializing(pod: &Value, initial: &mut Tally, sidecar: &mut Tally) -> Option<String> {
    let containers: Vec<&Value> = items(&pod["spec"]["initContainers"]).collect();
    for (index, status) in items(&pod["status"]["initContainerStatuses"]).enumerate() {
        let named = |container: &&&Value| container["name"] == status["name"];
        let is_sidecar = containers.iter().find(named).is_some_and(|container| is_sidecar(container));
        initial.restarted(status);
        if is_sidecar {
            sidecar.restarted(status);
        }
        let (terminated, waiting) =
            (&status["state"]["terminated"], text(&status["state"]["waiting"]["reason"]));
        if terminated["exitCode"] == 0 {
            continue;
        }
        if is_sidecar && status["started"] == true {
            initial.ready += usize::from(status["ready"] == true);
            continue;
        }
        return Some(if !terminated.is_null() {
            format!("Init:{}", ending(terminated))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", containers.len())
        });
    }
    None
}

/// The word for the main containers, where the first one takes precedence, and whether one of them runs.
fn main_containers(status: &Value, tally: &mut Tally) -> (Option<String>, bool) {
    let (mut word, mut has_running) = (None, false);
    let statuses: Vec<&Value> = items(&status["containerStatuses"]).collect();
    for status in statuses.into_iter().rev() {
        tally.restarted(status);
        let (terminated, waiting) =
            (&status["state"]["terminated"], text(&status["state"]["waiting"]["reason"]));
        if !waiting.is_empty() {
            word = Some(waiting.to_owned());
        } else if !terminated.is_null() {
            word = Some(ending(terminated));
        } else if status["ready"] == true && !status["state"]["running"].is_null() {
            has_running = true;
            tally.ready += 1;
        }
    }
    (word, has_running)
}

/// Why a container ended.
fn ending(terminated: &Value) -> String {
    match (text(&terminated["reason"]), terminated["signal"].as_i64().unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// How many of a pod's readiness gates are open.
pub fn readiness_gates(pod: &Value) -> String {
    let gates: Vec<&str> =
        items(&pod["spec"]["readinessGates"]).map(|gate| text(&gate["conditionType"])).collect();
    let open = gates.iter().filter(|gate| has_condition(&pod["status"], gate)).count();
    if gates.is_empty() { "<none>".to_owned() } else { format!("{open}/{}", gates.len()) }
}

fn has_condition(status: &Value, kind: &str) -> bool {
    items(&status["conditions"]).any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cells(pod: &Value) -> String {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        let Summary { ready, reason, restarts } = Summary::of(pod, now);
        format!("{ready} {reason} {restarts}")
    }

    #[test]
    fn the_cells_of_a_pod_sum_up_its_status() {
        let spec = json!({ "containers": [{ "name": "a" }, { "name": "b" }] });
        let running = json!({ "ready": true, "state": { "running": {} }, "restartCount": 0 });
        let crashed = json!({
            "ready": false, "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            "lastState": { "terminated": { "finishedAt": "2026-01-01T00:05:00Z" } },
        });
        let done = json!({ "state": { "terminated": { "reason": "Completed", "exitCode": 0 } } });
        let table = [
            (json!({ "phase": "Pending" }), "0/2 Pending 0"),
            (json!({ "phase": "Failed", "reason": "Evicted" }), "0/2 Evicted 0"),
            (json!({ "phase": "Running", "containerStatuses": [running, running] }), "2/2 Running 0"),
            (
                json!({ "phase": "Running", "containerStatuses": [crashed, running] }),
                "1/2 CrashLoopBackOff 3 (5m ago)",
            ),
            (json!({ "phase": "Running", "containerStatuses": [done, running] }), "1/2 NotReady 0"),
            (json!({ "phase": "Succeeded", "containerStatuses": [done, done] }), "0/2 Completed 0"),
            (
                json!({ "phase": "Pending", "initContainerStatuses": [{ "state": { "waiting": {} } }] }),
                "0/2 Init:0/0 0",
            ),
            (
                json!({ "phase": "Pending", "initContainerStatuses": [
                    { "state": { "terminated": { "exitCode": 7 } } },
                ] }),
                "0/2 Init:ExitCode:7 0",
            ),
        ];
        for (status, wanted) in table {
            assert_eq!(cells(&json!({ "metadata": {}, "spec": spec, "status": status })), wanted);
        }
        let leaving = json!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "spec": spec,
            "status": { "phase": "Running", "containerStatuses": [running, running] },
        });
        assert_eq!(cells(&leaving), "2/2 Terminating 0");
    }
}
