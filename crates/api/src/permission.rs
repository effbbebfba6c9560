//! What each of the project's programs may do in a cluster: one table, from which the shipped roles are made and
//! against which a real server is asked.

use serde_json::{Value, json};

use crate::names::DEFAULT_CONFIG_NAMESPACE;

/// The namespace in which the programs run.
pub const SYSTEM_NAMESPACE: &str = "prewarm-system";

/// A program's account and all that it may do.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Name of the ServiceAccount, of its roles and of their bindings.
    pub name: &'static str,
    /// All that it may do; what is not here is refused.
    pub permissions: &'static [Permission],
}

/// Verbs on one resource.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// Where they hold.
    pub scope: Scope,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, with its subresource if it is one.
    pub resource: &'static str,
    /// What may be done.
    pub verbs: &'static [&'static str],
}

/// Where a permission holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// On cluster-wide objects and in every namespace.
    Cluster,
    /// In the namespace of the copied Secrets only.
    ConfigNamespace,
    /// In the namespace of the programs only.
    SystemNamespace,
}

impl Scope {
    /// The namespace in which it holds, if it is one.
    pub fn namespace(self) -> Option<&'static str> {
        match self {
            Self::Cluster => None,
            Self::ConfigNamespace => Some(DEFAULT_CONFIG_NAMESPACE),
            Self::SystemNamespace => Some(SYSTEM_NAMESPACE),
        }
    }
}

/// The agent on each node.
///
/// RBAC knows no "own node": the same account is on all of them, so it may read every NodeImage, and the policy
/// `agent-own-node` is what keeps it from writing the status of another node's.
pub const AGENT: Account = Account {
    name: "prewarm-agent",
    permissions: &[
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages",
            verbs: &["get", "list", "watch"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages/status",
            verbs: &["patch"],
        },
        // Jobs are in any namespace, and their events with them.
        Permission {
            scope: Scope::Cluster,
            group: "events.k8s.io",
            resource: "events",
            verbs: &["create", "patch"],
        },
        // No list and no watch: a Secret is read by its name, when a task names it.
        Permission { scope: Scope::ConfigNamespace, group: "", resource: "secrets", verbs: &["get"] },
    ],
};

/// The controller.
///
/// It reads Secrets that jobs name, by name: it may not list the Secrets of a cluster. Only in the config namespace,
/// where its copies are, it may.
pub const CONTROLLER: Account = Account {
    name: "prewarm-controller",
    permissions: &[
        Permission { scope: Scope::Cluster, group: "", resource: "nodes", verbs: &["list", "watch"] },
        // Watched in namespaces with an unfinished job that selects nodes by their pods; made and deleted for
        // BroadcastJobs.
        Permission {
            scope: Scope::Cluster,
            group: "",
            resource: "pods",
            verbs: &["get", "list", "watch", "create", "delete"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages",
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        // Verdicts on nodes that do not answer.
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages/status",
            verbs: &["patch"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagepulljobs",
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagepulljobs/status",
            verbs: &["patch"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagelistpulljobs",
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagelistpulljobs/status",
            verbs: &["patch"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "broadcastjobs",
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "broadcastjobs/status",
            verbs: &["patch"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "advancedcronjobs",
            verbs: &["get", "list", "watch"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "advancedcronjobs/status",
            verbs: &["patch"],
        },
        // Watched in namespaces with an AdvancedCronJob that makes Jobs.
        Permission {
            scope: Scope::Cluster,
            group: "batch",
            resource: "jobs",
            verbs: &["get", "list", "watch", "create", "delete"],
        },
        Permission { scope: Scope::Cluster, group: "", resource: "secrets", verbs: &["get"] },
        Permission {
            scope: Scope::ConfigNamespace,
            group: "",
            resource: "secrets",
            verbs: &["list", "watch", "create", "patch", "delete"],
        },
        Permission {
            scope: Scope::Cluster,
            group: "events.k8s.io",
            resource: "events",
            verbs: &["create", "patch"],
        },
        Permission {
            scope: Scope::SystemNamespace,
            group: "coordination.k8s.io",
            resource: "leases",
            verbs: &["create", "get", "update"],
        },
    ],
};

/// All programs' accounts.
pub const ACCOUNTS: [Account; 2] = [AGENT, CONTROLLER];

impl Account {
    /// The objects that give the account its permissions, in the order in which they are applied.
    pub fn objects(&self) -> Vec<Value> {
        let Self { name, .. } = self;
        let rbac = "rbac.authorization.k8s.io";
        let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}]);
        let role = |kind: &str| json!({"apiGroup": rbac, "kind": kind, "name": name});
        let object = |kind: &str, namespace: Option<&str>, fields: Value| {
            let mut object = fields;
            object["apiVersion"] =
                json!(if kind == "ServiceAccount" { "v1".into() } else { format!("{rbac}/v1") });
            object["kind"] = json!(kind);
            object["metadata"] = json!({"name": name, "labels": labels()});
            if let Some(namespace) = namespace {
                object["metadata"]["namespace"] = json!(namespace);
            }
            object
        };
        let mut objects = vec![
            // Whatever mounts a host's directory needs the privileged level; what else is unusual is told.
            namespace(
                SYSTEM_NAMESPACE,
                &[("enforce", "privileged"), ("warn", "restricted"), ("audit", "restricted")],
            ),
            namespace(DEFAULT_CONFIG_NAMESPACE, &[]),
            object("ServiceAccount", Some(SYSTEM_NAMESPACE), json!({"automountServiceAccountToken": false})),
        ];
        for scope in [Scope::Cluster, Scope::ConfigNamespace, Scope::SystemNamespace] {
            let rules = self.rules(scope);
            if rules.is_empty() {
                continue;
            }
            let (namespace, kind) =
                (scope.namespace(), if scope == Scope::Cluster { "ClusterRole" } else { "Role" });
            objects.push(object(kind, namespace, json!({"rules": rules})));
            let binding = json!({"roleRef": role(kind), "subjects": subjects});
            objects.push(object(&format!("{kind}Binding"), namespace, binding));
        }
        objects
    }

    /// The objects as one file of YAML, the same bytes every time.
    pub fn to_yaml(&self) -> String {
        let documents = self.objects().into_iter();
        let texts = documents.map(|object| serde_saphyr::to_string(&object).expect("JSON is YAML"));
        texts.collect::<Vec<_>>().join("---\n")
    }

    /// The name under which the API server knows the account.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{}", self.name)
    }

    fn rules(&self, scope: Scope) -> Vec<Value> {
        let granted = self.permissions.iter().filter(|permission| permission.scope == scope);
        granted
            .map(|Permission { group, resource, verbs, .. }| {
                json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
            })
            .collect()
    }
}

fn labels() -> Value {
    json!({"app.kubernetes.io/part-of": "prewarm"})
}

fn namespace(name: &str, security: &[(&str, &str)]) -> Value {
    let mut labels = labels();
    for (mode, level) in security {
        labels[format!("pod-security.kubernetes.io/{mode}")] = json!(level);
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_account_has_a_permission_that_leads_to_others() {
        let dangerous = ["*", "escalate", "bind", "impersonate", "deletecollection"];
        for permission in ACCOUNTS.iter().flat_map(|account| account.permissions) {
            let Permission { resource, verbs, group, scope } = permission;
            assert!(
                *group != "*"
                    && !resource.contains('*')
                    && verbs.iter().all(|verb| !dangerous.contains(verb))
            );
            let forbidden =
                ["pods/exec", "nodes/proxy", "serviceaccounts/token", "certificatesigningrequests/approval"];
            assert!(!forbidden.contains(resource), "{resource}");
            let reads_all = verbs.contains(&"list") || verbs.contains(&"watch");
            let is_ours = *scope == Scope::ConfigNamespace;
            assert!(
                *resource != "secrets" || !reads_all || is_ours,
                "Secrets of others are read by name only"
            );
        }
    }
}
