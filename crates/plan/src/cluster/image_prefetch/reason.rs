//! Why an ImagePrefetch is where it is: one type for each of its conditions (ofen 1.5, and two of our own).

use prewarm_api::names::condition::{
    DIGESTS_AGREE, NO_IMAGE_PULL_FAILED, NODE_IMAGE_SETS_CREATED, NODES_SELECTED, READY,
};

use crate::condition::{Finding, Reason};

/// The nodes of an ImagePrefetch, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes that must hold the images.
    pub desired: usize,
    /// Nodes that were chosen.
    pub selected: usize,
    /// Nodes that have all of them.
    pub pulled: usize,
    /// Nodes that have begun and have not all of them.
    pub pulling: usize,
    /// Nodes on which an image could not be pulled.
    pub failed: usize,
    /// NodeImageSets that there are.
    pub sets: usize,
}

impl Counts {
    /// Whether every node that must hold the images does.
    pub fn is_ready(&self) -> bool {
        self.desired > 0 && self.pulled == self.desired
    }
}

/// What the conditions are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// The nodes.
    pub counts: Counts,
    /// Whether it asks for no node at all, which the definition of ofen's own allows.
    pub wants_none: bool,
    /// What keeps it from beginning, in a sentence.
    pub hold: Option<String>,
    /// The first image for which the registry gave two digests: the image, and the node that was given another one.
    pub disagreement: Option<(String, String)>,
    /// Whether its Secrets are ready, if it names any.
    pub secrets: Option<Finding>,
}

impl Situation {
    /// As conditions.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.ready(), self.sets_created(), self.none_failed(), self.selected()];
        findings.extend(self.digests());
        findings.extend(self.secrets.clone());
        findings
    }

    fn ready(&self) -> Finding {
        let Counts { desired, pulled, .. } = self.counts;
        let is_ready = self.counts.is_ready();
        let message = match &self.hold {
            _ if is_ready => format!("all images are on {pulled} of {desired} nodes"),
            Some(hold) => hold.clone(),
            None if desired == 0 => "no node is selected".to_owned(),
            None => format!("all images are on {pulled} of {desired} nodes"),
        };
        let reason = if is_ready { Reason::ImagePrefetchReady } else { Reason::ImagePrefetchProgressing };
        Finding { type_: READY, status: is_ready.into(), reason, message }
    }

    fn sets_created(&self) -> Finding {
        let Counts { selected, sets, .. } = self.counts;
        let is_so = selected == sets;
        let reason = if is_so { Reason::NodeImageSetsCreated } else { Reason::NodeImageSetsCreating };
        let message = format!("{sets} NodeImageSets for {selected} nodes");
        Finding { type_: NODE_IMAGE_SETS_CREATED, status: is_so.into(), reason, message }
    }

    fn none_failed(&self) -> Finding {
        let failed = self.counts.failed;
        let is_so = failed == 0;
        let reason = if is_so { Reason::NoImagePullFailed } else { Reason::ImagePrefetchFailed };
        let message = if is_so {
            "no image pull has failed".to_owned()
        } else {
            format!("images could not be pulled on {failed} nodes; their NodeImageSets say why")
        };
        Finding { type_: NO_IMAGE_PULL_FAILED, status: is_so.into(), reason, message }
    }

    fn selected(&self) -> Finding {
        let Counts { desired, selected, .. } = self.counts;
        let (holds, reason, message) = match () {
            () if self.wants_none => {
                let message = "no node is asked for: set allNodes, or replicas above 0";
                (false, Reason::NoNodes, message.to_owned())
            }
            () if selected == 0 => {
                (false, Reason::NoNodes, "no ready node matches nodeSelector; check its labels".to_owned())
            }
            () if selected < desired => (
                false,
                Reason::TooFewNodes,
                format!(
                    "{desired} nodes are wanted and {selected} can be used: add nodes, widen nodeSelector or lower replicas"
                ),
            ),
            () => (true, Reason::AllFound, format!("{selected} nodes are selected")),
        };
        Finding { type_: NODES_SELECTED, status: holds.into(), reason, message }
    }

    /// Said once something was found, and taken back when it is over.
    fn digests(&self) -> Option<Finding> {
        let (image, node) = self.disagreement.as_ref()?;
        let message = format!(
            "{image} stood for something else when node {node} asked the registry; all other nodes get what the first one was given"
        );
        Some(Finding { type_: DIGESTS_AGREE, status: false.into(), reason: Reason::TagMoved, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A definition of ofen's own stores such objects.
    #[test]
    fn an_object_that_asks_for_no_node_is_not_sent_to_look_for_labels() {
        let situation = Situation { wants_none: true, ..Situation::default() };
        let findings = situation.findings();
        let selected = findings.iter().find(|finding| finding.type_ == NODES_SELECTED).unwrap();
        assert_eq!(selected.reason, Reason::NoNodes);
        assert!(selected.message.contains("set allNodes"), "{}", selected.message);
    }
}
