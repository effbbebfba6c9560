//! What the user may do, of all that an installation needs.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::Asking;
use crate::check::facts::Right;
use crate::reach::{Request, sentence};

/// What an installation has to create, by group and resource.
const INSTALLED: [(&str, &str); 17] = [
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("", "namespaces"),
    ("", "serviceaccounts"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("apps", "deployments"),
    ("apps", "daemonsets"),
    ("coordination.k8s.io", "leases"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("scheduling.k8s.io", "priorityclasses"),
];

impl Asking<'_> {
    pub(super) async fn rights(&self) -> Vec<Right> {
        let reviews: Api<SelfSubjectAccessReview> = self.everywhere();
        let mut rights = Vec::new();
        for (group, resource) in INSTALLED {
            let attributes = ResourceAttributes {
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                verb: Some("create".to_owned()),
                namespace: Some(self.namespace.to_owned()),
                ..ResourceAttributes::default()
            };
            let spec = SelfSubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                ..SelfSubjectAccessReviewSpec::default()
            };
            let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
            let answer = reviews.create(&PostParams::default(), &review).await;
            let is_allowed = match answer {
                Ok(answer) => Ok(answer.status.is_some_and(|status| status.allowed)),
                Err(error) => Err(sentence(
                    &error,
                    &Request::of::<SelfSubjectAccessReview>("create", None),
                    &self.cluster.name,
                )),
            };
            rights.push(Right { what: format!("create {resource}"), is_allowed });
        }
        rights
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const INSTALL: &str = include_str!("../../../../../deploy/install.yaml");

    /// The resource of a kind, as Kubernetes names them.
    fn resource(kind: &str) -> String {
        let kind = kind.to_lowercase();
        match kind.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if kind.ends_with('s') => format!("{kind}es"),
            None => format!("{kind}s"),
        }
    }

    #[test]
    fn a_user_is_asked_for_the_right_to_everything_in_install_yaml() {
        let kinds = INSTALL.lines().filter_map(|line| line.strip_prefix("kind: "));
        let created: BTreeSet<String> = kinds.map(resource).collect();
        let asked: BTreeSet<String> = INSTALLED.iter().map(|(_, resource)| (*resource).to_owned()).collect();
        assert_eq!(asked, created);
    }
}
