//! The script: what a person types, in this order. Adding a step takes one line.

/// One command.
pub struct Step {
    pub words: &'static [&'static str],
    /// The input for `-f -`.
    pub input: &'static str,
    pub ending: Ending,
}

pub enum Ending {
    ByItself,
    /// The command is ended after this many lines. Each of the other commands adds one.
    After {
        lines: usize,
        meanwhile: &'static [&'static [&'static str]],
    },
}

impl Step {
    /// A command that reads no input and ends by itself.
    pub const fn new(words: &'static [&'static str]) -> Self {
        Self { words, input: "", ending: Ending::ByItself }
    }

    const fn reading(words: &'static [&'static str], input: &'static str) -> Self {
        Self { words, input, ending: Ending::ByItself }
    }

    /// The command as it was typed.
    pub fn line(&self) -> String {
        self.words.join(" ")
    }
}

const JOB: &str = include_str!("manifests/job.yaml");
const JOB_CHANGED: &str = include_str!("manifests/job_changed.yaml");
const JOB_MISSPELT: &str = include_str!("manifests/job_misspelt.yaml");
const NAMESPACES: &str = include_str!("manifests/namespace.yaml");
const EVENTS: &str = include_str!("manifests/events.yaml");
const BUILT_IN: &str = include_str!("manifests/built_in.yaml");
const SETTINGS_CHANGED: &str = include_str!("manifests/settings_changed.yaml");
const OWNED: &str = include_str!("manifests/owned.yaml");

/// A command and its input.
macro_rules! k {
    ($($word:literal)+) => { Step::new(&[$($word),+]) };
    ($($word:literal)+ < $input:ident) => { Step::reading(&[$($word),+], $input) };
}

#[rustfmt::skip]
pub const SCRIPT: &[Step] = &[
    k!("get" "--raw" "/readyz"),
    k!("get" "--raw" "/livez"),
    k!("api-resources" "--api-group=apps.kruise.io"),
    k!("api-resources" "--api-group=ofen.cybozu.io" "-o" "wide"),
    k!("get" "imagepulljobs"),
    k!("create" "-f" "-" < NAMESPACES),
    k!("get" "ns" "shop"),

    // A job is created, changed and read.
    k!("apply" "-n" "shop" "-f" "-" < JOB),
    k!("apply" "-n" "shop" "-f" "-" < JOB),
    k!("apply" "-n" "shop" "--dry-run=server" "-f" "-" < JOB_CHANGED),
    k!("diff" "-n" "shop" "-f" "-" < JOB),
    k!("apply" "-n" "shop" "-f" "-" < JOB_CHANGED),
    k!("apply" "-n" "shop" "-f" "-" < JOB_MISSPELT),
    k!("apply" "-n" "shop" "--validate=warn" "--dry-run=server" "-f" "-" < JOB_MISSPELT),
    k!("create" "-n" "shop" "-f" "-" < JOB),
    k!("create" "-n" "nowhere" "-f" "-" < JOB),
    k!("get" "-n" "shop" "imagepulljobs"),
    k!("get" "-n" "shop" "imagepulljobs" "-o" "wide"),
    k!("get" "-n" "shop" "imagepulljob" "web" "-o" "yaml"),
    k!("get" "-n" "shop" "imagepulljob" "web" "-o" "json"),
    k!("get" "-n" "shop" "imagepulljob/web" "-o" "name"),
    k!("get" "-n" "shop" "imagepulljobs.v1alpha1.apps.kruise.io" "web" "-o" "jsonpath={.apiVersion} {.spec.image}"),
    k!("get" "-n" "shop" "imagepulljobs" "-o" "custom-columns=NAME:.metadata.name,IMAGE:.spec.image"),
    k!("get" "imagepulljobs" "-A" "-l" "team=shop" "--show-labels"),
    k!("get" "imagepulljobs" "-A" "-l" "team in (a,b)"),
    k!("get" "imagepulljobs" "-A" "--field-selector=metadata.name=web"),
    k!("get" "-n" "shop" "imagepulljob" "nothing"),
    k!("get" "sculptures"),
    k!("replace" "-n" "shop" "-f" "-" < JOB),

    // Patches, labels, annotations.
    k!("patch" "-n" "shop" "imagepulljob" "web" "--type=merge" "-p" r#"{"spec":{"parallelism":5}}"#),
    k!("patch" "-n" "shop" "imagepulljob" "web" "--type=merge" "-p" r#"{"spec":{"parallelism":5}}"#),
    k!("patch" "-n" "shop" "imagepulljob" "web" "--type=json" "-p" r#"[{"op":"replace","path":"/spec/parallelism","value":6}]"#),
    k!("patch" "-n" "shop" "imagepulljob" "web" "--type=json" "-p" r#"[{"op":"test","path":"/spec/parallelism","value":7}]"#),
    k!("patch" "-n" "shop" "imagepulljob" "web" "-p" r#"{"spec":{"parallelism":7}}"#),
    k!("label" "-n" "shop" "imagepulljob" "web" "stage=test"),
    k!("label" "-n" "shop" "imagepulljob" "web" "stage=live"),
    k!("label" "-n" "shop" "imagepulljob" "web" "stage=live" "--overwrite"),
    k!("label" "-n" "shop" "imagepulljob" "web" "stage-"),
    k!("annotate" "-n" "shop" "imagepulljob" "web" "note=seen"),

    // What the controller would write, and a client that waits for it.
    k!("patch" "-n" "shop" "imagepulljob" "web" "--subresource=status" "--type=merge" "-p" r#"{"status":{"desired":3,"active":2,"succeeded":1,"failed":0,"message":"job is running"}}"#),
    k!("get" "-n" "shop" "imagepulljobs"),
    Step { words: &["get", "-n", "shop", "imagepulljobs", "-w"], input: "", ending: Ending::After { lines: 4, meanwhile: &[
        &["patch", "-n", "shop", "imagepulljob", "web", "--subresource=status", "--type=merge", "-p", r#"{"status":{"active":1,"succeeded":2}}"#],
        &["patch", "-n", "shop", "imagepulljob", "web", "--subresource=status", "--type=merge", "-p", r#"{"status":{"active":0,"succeeded":3,"message":"job is completed"}}"#],
    ] } },
    Step { words: &["get", "-n", "shop", "imagepulljob", "web", "-w", "-o", "name"], input: "", ending: Ending::After { lines: 2, meanwhile: &[
        &["annotate", "-n", "shop", "imagepulljob", "web", "note=again", "--overwrite"],
    ] } },
    k!("wait" "-n" "shop" "imagepulljob/web" "--for=jsonpath={.status.succeeded}=3" "--timeout=10s"),
    k!("wait" "-n" "shop" "imagepulljob/web" "--for=jsonpath={.status.succeeded}=4" "--timeout=1s"),
    k!("create" "-f" "-" < EVENTS),
    k!("describe" "-n" "shop" "imagepulljob" "web"),
    k!("events" "-n" "shop"),
    k!("events" "-n" "shop" "--for" "imagepulljob/web" "--types=Warning"),
    k!("get" "-n" "shop" "events" "--sort-by=.metadata.name"),
    k!("get" "-n" "shop" "events" "-o" "wide" "--field-selector=reason=PullFailed"),

    // What the fields mean.
    k!("explain" "imagepulljob"),
    k!("explain" "imagepulljob.spec" "--recursive"),
    k!("explain" "imagepulljob.spec.pullPolicy.backoffLimit"),
    k!("explain" "imagepulljob.metadata.labels"),
    k!("explain" "imagepulljob" "--api-version=apps.kruise.io/v1alpha1"),
    k!("explain" "nodeimages.spec.images"),
    k!("explain" "imageprefetch.status.conditions"),
    k!("explain" "imagepulljob.spec.nothing"),
    k!("explain" "configmap"),

    // Built-in kinds.
    k!("apply" "-n" "shop" "-f" "-" < BUILT_IN),
    k!("get" "-n" "shop" "configmap/settings" "secret/pull" "sa/agent" "pod/alone" "lease/leader"),
    k!("get" "-n" "shop" "all"),
    k!("get" "-n" "shop" "deploy,ds,sts,rs,cj" "-o" "wide"),
    k!("get" "-n" "shop" "pods,secrets,roles,rolebindings" "-o" "wide"),
    k!("get" "nodes" "-o" "wide"),
    k!("patch" "node" "node-1" "--subresource=status" "--type=merge" "-p" r#"{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"fine","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}],"nodeInfo":{"kubeletVersion":"v1.34.0","osImage":"Linux","kernelVersion":"6.1","containerRuntimeVersion":"containerd://2.2.0","machineID":"","systemUUID":"","bootID":"","operatingSystem":"linux","architecture":"amd64","kubeProxyVersion":""}}}"#),
    k!("wait" "node/node-1" "--for=condition=Ready" "--timeout=10s"),
    k!("cordon" "node-1"),
    k!("get" "nodes"),
    k!("apply" "-n" "shop" "-f" "-" < SETTINGS_CHANGED),
    k!("get" "-n" "shop" "cm" "settings" "-o" "jsonpath={.data}"),
    k!("describe" "-n" "shop" "cm" "settings"),
    k!("describe" "-n" "shop" "secret" "pull"),
    k!("rollout" "restart" "-n" "shop" "deployment/web"),
    k!("create" "namespace" "made-by-hand"),
    k!("create" "-n" "shop" "configmap" "made-by-hand" "--from-literal=a=1"),
    k!("create" "-n" "shop" "secret" "docker-registry" "registry" "--docker-server=registry.example" "--docker-username=me" "--docker-password=secret"),
    k!("create" "-n" "shop" "serviceaccount" "made-by-hand"),
    k!("get" "-n" "shop" "cm/made-by-hand" "secret/registry" "sa/made-by-hand" "-o" "jsonpath={.items[*]['data', 'type']}"),

    // Deletion.
    k!("apply" "-n" "shop" "-f" "-" < OWNED),
    k!("delete" "-n" "shop" "imagelistpulljob" "many" "--cascade=foreground" "--timeout=30s"),
    k!("delete" "-n" "shop" "imagepulljob" "web" "--dry-run=server"),
    k!("delete" "-n" "shop" "imagepulljob" "web" "--timeout=30s"),
    k!("wait" "-n" "shop" "imagepulljob/web" "--for=delete" "--timeout=10s"),
    k!("delete" "-n" "shop" "imagepulljob" "web"),
    k!("delete" "-n" "shop" "imagepulljob" "web" "--ignore-not-found"),
    k!("delete" "-n" "shop" "cm" "-l" "no=such"),
    k!("delete" "-n" "shop" "events" "--all"),
    k!("delete" "-n" "shop" "-f" "-" < SETTINGS_CHANGED),
    k!("delete" "namespace" "short-lived" "--timeout=30s"),
    k!("get" "ns" "short-lived"),
    k!("get" "-n" "shop" "imagepulljobs" "-o" "yaml"),
];
