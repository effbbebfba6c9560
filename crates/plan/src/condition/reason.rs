//! Why a condition holds or not, in one word: every reason that a condition of ours can have.

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Why a condition holds or not. On the wire it is the variant's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Reads the word on the wire.
            pub fn read(word: &str) -> Option<Self> {
                match word {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// All images are on all nodes.
    ImagePrefetchReady,
    /// Not all images are on all nodes.
    ImagePrefetchProgressing,
    /// Every selected node has its NodeImageSet.
    NodeImageSetsCreated,
    /// NodeImageSets are being made.
    NodeImageSetsCreating,
    /// No pull has failed.
    NoImagePullFailed,
    /// Some nodes could not pull.
    ImagePrefetchFailed,
    /// There are fewer nodes than are wanted.
    TooFewNodes,
    /// The registry gave two nodes different images for one tag.
    TagMoved,
    /// The node has all images.
    ImageDownloadComplete,
    /// The node does not have all images.
    ImageDownloadIncomplete,
    /// The node could not pull an image.
    ImageDownloadFailed,
    /// Secrets are named where none can be used.
    SecretsIgnored,
    /// The namespace may not have the image.
    ImageNotAllowed,
    /// Everything has ended.
    Finished,
    /// It took longer than its deadline allows.
    DeadlineExceeded,
    /// The image of a job is no reference.
    InvalidImage,
    /// Secrets have to be copied first.
    WaitingForSecrets,
    /// The other children of the list are being made.
    WaitingForSiblings,
    /// The NodeImages of some nodes have no room for it.
    WaitingForRoom,
    /// It is paused.
    Paused,
    /// No node is selected.
    NoNodes,
    /// Everything has ended, and nodes that join are served too.
    Watching,
    /// Nodes are pulling.
    Pulling,
    /// The API server does not take something.
    Refused,
    /// Every image of a list has its child.
    AllCreated,
    /// Children are being made.
    Creating,
    /// Every named node exists.
    AllFound,
    /// Some named nodes do not exist.
    UnknownNodes,
    /// No agent runs on some named nodes.
    NodesWithoutAgent,
    /// Agents can read every Secret.
    Copied,
    /// Some Secrets do not exist.
    SecretMissing,
    /// Some Secrets hold no registry credentials.
    SecretUnusable,
    /// Runs start when they are due.
    OnSchedule,
    /// A run waits for the one before it.
    Forbidden,
    /// Too many runs have not ended.
    TooManyRuns,
    /// The schedule cannot be read.
    NotASchedule,
    /// There is no such time zone.
    UnknownTimeZone,
    /// The schedule has no time.
    NeverDue,
    /// It ended well.
    Complete,
    /// It failed.
    Failed,
    /// Some of its images failed.
    ImagesFailed,
    /// The next run took its place.
    Replaced,
    /// Somebody deleted it.
    Deleted,
    /// The pod fits no node.
    NoNodeFits,
    /// The API server takes no pod.
    PodRefused,
    /// The scheduler finds no place for a pod.
    PodUnschedulable,
    /// Nodes were found.
    NodesFound,
    /// Pods were made.
    PodsCreated,
    /// Pods were scheduled.
    PodsScheduled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_back_as_itself() {
        for reason in [Reason::Finished, Reason::WaitingForSecrets, Reason::NoNodeFits] {
            assert_eq!(Reason::read(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::read("because"), None);
    }
}
