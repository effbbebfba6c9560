//! What each program may do in a cluster: one table, from which the shipped roles are generated and with which a real
//! server is compared.

use crate::names::DEFAULT_CONFIG_NAMESPACE;

/// The namespace in which the programs run.
pub const SYSTEM_NAMESPACE: &str = "prewarm-system";

/// The Lease that determines which controller leads. It has this name in every installation.
pub const LEASE: &str = "prewarm-controller";

/// The Lease of OpenKruise's manager, which works on the same kinds, and its namespace.
pub const RIVAL_LEASE: &str = "kruise-manager";
/// The namespace of [`RIVAL_LEASE`].
pub const RIVAL_NAMESPACE: &str = "kruise-system";

/// A program's account and its permissions.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// The name of the ServiceAccount, of its roles and of their bindings.
    pub name: &'static str,
    /// Everything that it may do. All else is refused.
    pub permissions: &'static [Permission],
}

/// Verbs on one resource.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// What they are needed for.
    pub part: Part,
    /// Where they apply.
    pub scope: Scope,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, with its subresource if it is one.
    pub resource: &'static str,
    /// The only objects to which they apply; empty for all.
    pub names: &'static [&'static str],
    /// The allowed verbs.
    pub verbs: &'static [&'static str],
}

/// What a permission is needed for. Each part is a role of its own, so that a cluster can leave out the kinds that it
/// does not use: without a part's role, the controller works on everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Nodes, NodeImages and ImagePullJobs, without which nothing works.
    Base,
    /// Lists, and the ImagePullJobs that are created for them.
    ImageListPullJob,
    /// BroadcastJobs, and the pods that are created for them.
    BroadcastJob,
    /// AdvancedCronJobs, and the Jobs that are created for them. The permissions for lists and BroadcastJobs are in
    /// those parts.
    AdvancedCronJob,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 4] =
        [Self::Base, Self::ImageListPullJob, Self::BroadcastJob, Self::AdvancedCronJob];

    /// The kind that the part is for, unless everything needs it.
    pub fn kind(self) -> Option<&'static str> {
        match self {
            Self::Base => None,
            Self::ImageListPullJob => Some("ImageListPullJob"),
            Self::BroadcastJob => Some("BroadcastJob"),
            Self::AdvancedCronJob => Some("AdvancedCronJob"),
        }
    }
}

/// Where a permission applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// On cluster-wide objects and in every namespace.
    Cluster,
    /// Only in the namespace of the copied Secrets.
    ConfigNamespace,
    /// Only in the namespace of the programs.
    SystemNamespace,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Cluster, Self::ConfigNamespace, Self::SystemNamespace];

    /// The namespace, if the scope is one.
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
/// RBAC has no notion of an own node: all agents share one account, so it may read every NodeImage, and the policy
/// `agent-own-node` keeps it from writing the status of another node's.
pub const AGENT: Account = Account {
    name: "prewarm-agent",
    permissions: &[
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages",
            names: &[],
            verbs: &["get", "list", "watch"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages/status",
            names: &[],
            verbs: &["patch"],
        },
        // Jobs are in any namespace, and so are their events.
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "events.k8s.io",
            resource: "events",
            names: &[],
            verbs: &["create", "patch"],
        },
        // Neither list nor watch: a Secret is read by name, when a task names it.
        Permission {
            part: Part::Base,
            scope: Scope::ConfigNamespace,
            group: "",
            resource: "secrets",
            names: &[],
            verbs: &["get"],
        },
    ],
};

/// The controller.
///
/// It reads the Secrets that jobs name, by name: it may not list the Secrets of a cluster. It may list them only in the
/// config namespace, where its copies are.
pub const CONTROLLER: Account = Account {
    name: "prewarm-controller",
    permissions: &[
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "",
            resource: "nodes",
            names: &[],
            verbs: &["list", "watch"],
        },
        // Watched in namespaces with an unfinished job that selects nodes by their pods.
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "",
            resource: "pods",
            names: &[],
            verbs: &["list", "watch"],
        },
        Permission {
            part: Part::BroadcastJob,
            scope: Scope::Cluster,
            group: "",
            resource: "pods",
            names: &[],
            verbs: &["get", "create", "delete"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages",
            names: &[],
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        // The status of nodes that do not answer.
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "nodeimages/status",
            names: &[],
            verbs: &["patch"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagepulljobs",
            names: &[],
            verbs: &["get", "list", "watch", "patch", "delete"],
        },
        Permission {
            part: Part::ImageListPullJob,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagepulljobs",
            names: &[],
            verbs: &["create"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagepulljobs/status",
            names: &[],
            verbs: &["patch"],
        },
        Permission {
            part: Part::ImageListPullJob,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagelistpulljobs",
            names: &[],
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        Permission {
            part: Part::ImageListPullJob,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "imagelistpulljobs/status",
            names: &[],
            verbs: &["patch"],
        },
        Permission {
            part: Part::BroadcastJob,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "broadcastjobs",
            names: &[],
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        Permission {
            part: Part::BroadcastJob,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "broadcastjobs/status",
            names: &[],
            verbs: &["patch"],
        },
        Permission {
            part: Part::AdvancedCronJob,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "advancedcronjobs",
            names: &[],
            verbs: &["get", "list", "watch"],
        },
        Permission {
            part: Part::AdvancedCronJob,
            scope: Scope::Cluster,
            group: "apps.kruise.io",
            resource: "advancedcronjobs/status",
            names: &[],
            verbs: &["patch"],
        },
        // Watched in namespaces with an AdvancedCronJob that makes Jobs.
        Permission {
            part: Part::AdvancedCronJob,
            scope: Scope::Cluster,
            group: "batch",
            resource: "jobs",
            names: &[],
            verbs: &["get", "list", "watch", "create", "delete"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "",
            resource: "secrets",
            names: &[],
            verbs: &["get"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::ConfigNamespace,
            group: "",
            resource: "secrets",
            names: &[],
            verbs: &["list", "watch", "create", "patch", "delete"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "events.k8s.io",
            resource: "events",
            names: &[],
            verbs: &["create", "patch"],
        },
        Permission {
            part: Part::Base,
            scope: Scope::SystemNamespace,
            group: "coordination.k8s.io",
            resource: "leases",
            names: &[LEASE],
            verbs: &["get", "update"],
        },
        // Two managers at once are noticed. The namespace may not exist, so that a role there could not be installed.
        Permission {
            part: Part::Base,
            scope: Scope::Cluster,
            group: "coordination.k8s.io",
            resource: "leases",
            names: &[RIVAL_LEASE],
            verbs: &["get"],
        },
        // A permission to create cannot be restricted to a name.
        Permission {
            part: Part::Base,
            scope: Scope::SystemNamespace,
            group: "coordination.k8s.io",
            resource: "leases",
            names: &[],
            verbs: &["create"],
        },
    ],
};

/// All programs' accounts.
pub const ACCOUNTS: [Account; 2] = [AGENT, CONTROLLER];

impl Account {
    /// The account's user name at the API server, if it is installed as in `install.yaml`.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{}", self.name)
    }

    /// The permissions in one of its roles.
    pub fn permissions_of(&self, part: Part, scope: Scope) -> impl Iterator<Item = &'static Permission> {
        self.permissions.iter().filter(move |one| one.part == part && one.scope == scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_account_has_a_permission_that_leads_to_others() {
        let dangerous = ["*", "escalate", "bind", "impersonate", "deletecollection"];
        for permission in ACCOUNTS.iter().flat_map(|account| account.permissions) {
            let Permission { resource, verbs, group, scope, .. } = permission;
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
