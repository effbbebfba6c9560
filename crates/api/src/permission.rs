//! What each program may do in a cluster: one table, from which the shipped roles are generated and with which a real
//! server is compared.

use crate::kruise::GROUP;
use crate::names::DEFAULT_CONFIG_NAMESPACE;
use crate::ofen;

/// API groups besides our own.
const CORE: &str = "";
const BATCH: &str = "batch";
const EVENTS: &str = "events.k8s.io";
const LEASES: &str = "coordination.k8s.io";

/// What it takes to know all objects of a kind.
const READ: &[&str] = &["get", "list", "watch"];
/// What a kind needs that is made, changed and deleted for others, too.
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// The namespace in which the programs run.
pub const SYSTEM_NAMESPACE: &str = "prewarm-system";

/// The Lease that determines which controller leads. It has this name in every installation.
pub const LEASE: &str = "prewarm-controller";

/// The Lease of OpenKruise's manager, which works on the same kinds, and its namespace.
pub const RIVAL_LEASE: &str = "kruise-manager";
/// The ConfigMap that says which images each namespace may have, in [`SYSTEM_NAMESPACE`].
pub const IMAGE_ALLOW_LIST: &str = "prewarm-image-allow-list";
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

/// Makes `Part`: what everything needs, and a row for each kind that can be left out.
macro_rules! parts {
    ($($(#[$about:meta])* $kind:ident,)*) => {
        /// What a permission is needed for. Each part is a role of its own, so that a cluster can leave out the kinds that it
        /// does not use: without a part's role, the controller works on everything else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Part {
            /// Nodes, NodeImages and ImagePullJobs, without which nothing works.
            Base,
            $($(#[$about])* $kind,)*
        }

        impl Part {
            /// All parts.
            pub const ALL: [Self; 1 + [$(stringify!($kind)),*].len()] = [Self::Base, $(Self::$kind),*];

            /// The kind that the part is for, unless everything needs it.
            pub const fn kind(self) -> Option<&'static str> {
                match self {
                    Self::Base => None,
                    $(Self::$kind => Some(stringify!($kind)),)*
                }
            }
        }
    };
}

parts! {
    /// Lists, and the ImagePullJobs that are created for them.
    ImageListPullJob,
    /// BroadcastJobs, and the pods that are created for them.
    BroadcastJob,
    /// AdvancedCronJobs, and the Jobs that are created for them. The permissions for lists and BroadcastJobs are in
    /// those parts.
    AdvancedCronJob,
    /// ImagePrefetches, and the NodeImageSets that show what they do on each node.
    ImagePrefetch,
}

impl Part {
    /// What is needed for it, everywhere.
    const fn may(
        self,
        verbs: &'static [&'static str],
        group: &'static str,
        resource: &'static str,
    ) -> Permission {
        Permission { part: self, scope: Scope::Cluster, group, resource, names: &[], verbs }
    }
}

impl Permission {
    /// The same, only there.
    const fn within(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// The same, only on these objects.
    const fn only(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
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
        Part::Base.may(READ, GROUP, "nodeimages"),
        Part::Base.may(&["patch"], GROUP, "nodeimages/status"),
        // Jobs are in any namespace, and so are their events.
        Part::Base.may(&["create", "patch"], EVENTS, "events"),
        // Neither list nor watch: a Secret is read by name, when a task names it.
        Part::Base.may(&["get"], CORE, "secrets").within(Scope::ConfigNamespace),
    ],
};

/// The controller.
///
/// It reads the Secrets that jobs name, by name: it may not list the Secrets of a cluster. It may list them only in the
/// config namespace, where its copies are.
pub const CONTROLLER: Account = Account {
    name: "prewarm-controller",
    permissions: &[
        Part::Base.may(&["list", "watch"], CORE, "nodes"),
        // Watched in namespaces with an unfinished job that selects nodes by their pods.
        Part::Base.may(&["list", "watch"], CORE, "pods"),
        Part::BroadcastJob.may(&["get", "create", "delete"], CORE, "pods"),
        Part::Base.may(OWN, GROUP, "nodeimages"),
        // The status of nodes that do not answer.
        Part::Base.may(&["patch"], GROUP, "nodeimages/status"),
        Part::Base.may(&["get", "list", "watch", "patch", "delete"], GROUP, "imagepulljobs"),
        Part::ImageListPullJob.may(&["create"], GROUP, "imagepulljobs"),
        Part::Base.may(&["patch"], GROUP, "imagepulljobs/status"),
        Part::ImageListPullJob.may(OWN, GROUP, "imagelistpulljobs"),
        Part::ImageListPullJob.may(&["patch"], GROUP, "imagelistpulljobs/status"),
        Part::BroadcastJob.may(OWN, GROUP, "broadcastjobs"),
        Part::BroadcastJob.may(&["patch"], GROUP, "broadcastjobs/status"),
        Part::AdvancedCronJob.may(READ, GROUP, "advancedcronjobs"),
        Part::AdvancedCronJob.may(&["patch"], GROUP, "advancedcronjobs/status"),
        // Watched in namespaces with an AdvancedCronJob that makes Jobs.
        Part::AdvancedCronJob.may(&["get", "list", "watch", "create", "delete"], BATCH, "jobs"),
        Part::ImagePrefetch.may(&["get", "list", "watch", "patch"], ofen::GROUP, "imageprefetches"),
        Part::ImagePrefetch.may(&["patch"], ofen::GROUP, "imageprefetches/status"),
        Part::ImagePrefetch.may(OWN, ofen::GROUP, "nodeimagesets"),
        Part::ImagePrefetch.may(&["patch"], ofen::GROUP, "nodeimagesets/status"),
        Part::Base.may(&["get"], CORE, "secrets"),
        Part::Base
            .may(&["list", "watch", "create", "patch", "delete"], CORE, "secrets")
            .within(Scope::ConfigNamespace),
        Part::Base.may(&["create", "patch"], EVENTS, "events"),
        // Watched by its name, if the controller is set to obey one.
        Part::Base
            .may(&["list", "watch"], CORE, "configmaps")
            .within(Scope::SystemNamespace)
            .only(&[IMAGE_ALLOW_LIST]),
        Part::Base.may(&["get", "update"], LEASES, "leases").within(Scope::SystemNamespace).only(&[LEASE]),
        // Two managers at once are noticed. The namespace may not exist, so that a role there could not be installed.
        Part::Base.may(&["get"], LEASES, "leases").only(&[RIVAL_LEASE]),
        // A permission to create cannot be restricted to a name.
        Part::Base.may(&["create"], LEASES, "leases").within(Scope::SystemNamespace),
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
