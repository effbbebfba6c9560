//! A run as it is made (kruise R102).

use jiff::Timestamp;
use prewarm_api::kruise::{
    ADVANCED_CRON_JOB, API_VERSION, AdvancedCronJob, CronTemplate, ImageListPullJobSpec, TemplateKind,
    TemplateMetadata,
};
use prewarm_api::names::SCHEDULED_AT_ANNOTATION;
use serde_json::{Map, Value, json};

/// The name of the run of this time: the same time always leads to the same name, so that no run is made twice.
pub fn name(cron: &AdvancedCronJob, at: Timestamp) -> String {
    format!("{}-{}", cron.metadata.name.as_deref().unwrap_or_default(), at.as_second())
}

/// The run of this time. The template goes as it is, with fields that this release does not know; what is wrong with it,
/// the API server says.
pub fn make(cron: &AdvancedCronJob, kind: TemplateKind, at: Timestamp) -> Value {
    let (labels, mut annotations, spec) = parts(&cron.spec.template, kind);
    annotations.insert(SCHEDULED_AT_ANNOTATION.to_owned(), json!(at.to_string()));
    let owner = json!({
        "apiVersion": API_VERSION,
        "kind": ADVANCED_CRON_JOB,
        "name": cron.metadata.name,
        "uid": cron.metadata.uid,
        // It does not block: that would need the right to set the cron job's finalizers.
        "controller": true,
    });
    let mut metadata = json!({
        "name": name(cron, at),
        "namespace": cron.metadata.namespace,
        "annotations": annotations,
        "ownerReferences": [owner],
    });
    if !labels.is_empty() {
        metadata["labels"] = Value::Object(labels);
    }
    json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata, "spec": spec})
}

/// Labels, annotations and spec of a template.
fn parts(template: &CronTemplate, kind: TemplateKind) -> (Map<String, Value>, Map<String, Value>, Value) {
    let typed = |metadata: Option<&TemplateMetadata>, spec: Value| {
        let metadata = metadata.map(|metadata| json!(metadata)).unwrap_or_default();
        (map(&metadata["labels"]), map(&metadata["annotations"]), spec)
    };
    match kind {
        TemplateKind::Job => {
            let template = template.job_template.clone().unwrap_or_default();
            let metadata = &template["metadata"];
            (map(&metadata["labels"]), map(&metadata["annotations"]), template["spec"].clone())
        }
        TemplateKind::BroadcastJob => {
            let template = template.broadcast_job_template.as_ref();
            typed(
                template.and_then(|one| one.metadata.as_ref()),
                template.map(|one| json!(one.spec)).unwrap_or_default(),
            )
        }
        TemplateKind::ImageListPullJob => {
            let template = template.image_list_pull_job_template.as_ref();
            // The template may be older than the bounds, which the API server asks of each new object.
            let bounded = |spec: &ImageListPullJobSpec| {
                json!(ImageListPullJobSpec { pull_policy: spec.pull_policy.bounded(), ..spec.clone() })
            };
            typed(
                template.and_then(|one| one.metadata.as_ref()),
                template.map(|one| bounded(&one.spec)).unwrap_or_default(),
            )
        }
    }
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(template: &Value) -> AdvancedCronJob {
        serde_json::from_value(json!({
            "metadata": {"name": "nightly", "namespace": "shop", "uid": "cron-1"},
            "spec": {"schedule": "0 2 * * *", "template": template},
        }))
        .unwrap()
    }

    fn at() -> Timestamp {
        "2026-11-17T02:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_run_is_named_after_its_time_and_carries_the_template() {
        let template = json!({
            "metadata": {"name": "ignored", "labels": {"app": "sweep"}, "annotations": {"note": "x"}},
            "spec": {"backoffLimit": 2, "fieldOfTomorrow": true},
        });
        let run = make(&cron(&json!({"jobTemplate": template})), TemplateKind::Job, at());
        let owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "AdvancedCronJob", "name": "nightly",
            "uid": "cron-1", "controller": true});
        let expected = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": "nightly-1794880800", "namespace": "shop", "labels": {"app": "sweep"},
                "annotations": {"note": "x", "apps.kruise.io/scheduled-at": "2026-11-17T02:00:00Z"},
                "ownerReferences": [owner],
            },
            "spec": {"backoffLimit": 2, "fieldOfTomorrow": true},
        });
        assert_eq!(run, expected);
    }

    #[test]
    fn a_stored_template_beyond_the_bounds_makes_runs_within_them() {
        let limits = json!({"timeoutSeconds": i32::MAX, "backoffLimit": i32::MAX});
        let list = json!({"spec": {"images": ["nginx"], "completionPolicy": {}, "pullPolicy": limits}});
        let run =
            make(&cron(&json!({"imageListPullJobTemplate": list})), TemplateKind::ImageListPullJob, at());
        assert_eq!(run["spec"]["pullPolicy"], json!({"timeoutSeconds": 86_400, "backoffLimit": 1_000}));
    }

    #[test]
    fn every_kind_of_template_is_made() {
        let list = json!({"spec": {"images": ["nginx"], "completionPolicy": {}}});
        let run =
            make(&cron(&json!({"imageListPullJobTemplate": list})), TemplateKind::ImageListPullJob, at());
        assert_eq!((&run["kind"], &run["spec"]["images"]), (&json!("ImageListPullJob"), &json!(["nginx"])));
        let broadcast = json!({"spec": {"template": {"spec": {"containers": []}}}});
        let run = make(&cron(&json!({"broadcastJobTemplate": broadcast})), TemplateKind::BroadcastJob, at());
        assert_eq!((&run["kind"], &run["metadata"]["labels"]), (&json!("BroadcastJob"), &Value::Null));
    }

    #[test]
    fn a_template_that_is_no_template_is_left_to_the_server() {
        let run = make(&cron(&json!({"jobTemplate": "nonsense"})), TemplateKind::Job, at());
        assert_eq!(run["spec"], Value::Null);
    }
}
