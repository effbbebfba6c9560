//! Every name that is visible on the wire: labels, annotations, finalizers, condition types, event reasons and the
//! short texts in a status. Clients and dashboards compare them to the letter, so they are in one place.

/// Finalizer that keeps an ImagePullJob until its copied secrets are released.
pub const DELETION_PROTECTION_FINALIZER: &str = "apps.kruise.io/deletion-protection";
/// Label of a NodeImage that may exist without a Node.
pub const FAKE_NODE_IMAGE_LABEL: &str = "apps.kruise.io/fake-nodeimage";
/// Annotation of a NodeImage: the container runtime that the node's kubelet reports, such as `containerd://2.4.2`. Its agent finds
/// the node's runtime by it.
pub const NODE_RUNTIME_ANNOTATION: &str = "apps.kruise.io/container-runtime";
/// Label of a node's operating system.
pub const OS_LABEL: &str = "kubernetes.io/os";
/// Value of [`OS_LABEL`] on nodes that agents can run on.
pub const LINUX: &str = "linux";
/// Label of nodes that have no container runtime; with value [`VIRTUAL_KUBELET`] they get no NodeImage.
pub const NODE_TYPE_LABEL: &str = "type";
/// Value of [`NODE_TYPE_LABEL`] on virtual nodes.
pub const VIRTUAL_KUBELET: &str = "virtual-kubelet";
/// Label of an ImageListPullJob and its children: the hash of the template they were made from.
pub const REVISION_HASH_LABEL: &str = "controller-revision-hash";
/// Annotation of a cron's children: the time they were scheduled for, in RFC 3339.
pub const SCHEDULED_AT_ANNOTATION: &str = "apps.kruise.io/scheduled-at";
/// Label of a BroadcastJob's pods: the job's name. Reserved in templates.
pub const BROADCAST_JOB_NAME_LABEL: &str = "broadcastjob-name";
/// Label of a BroadcastJob's pods: the job's UID. Reserved in templates.
pub const BROADCAST_JOB_UID_LABEL: &str = "broadcastjob-controller-uid";
/// Annotation of a copied Secret: `namespace/name` of its source.
pub const SECRET_SOURCE_ANNOTATION: &str = "imagepulljobs.kruise.io/source-key";
/// Annotation of a copied Secret: comma-separated `namespace/name` of the jobs that use it.
pub const SECRET_REFERENCES_ANNOTATION: &str = "imagepulljobs.kruise.io/references";
/// Annotation of a copied Secret: how it was made; [`SECRET_MODE_BATCH`] for copies that jobs share.
pub const SECRET_MODE_ANNOTATION: &str = "imagepulljobs.kruise.io/mode";
/// Value of [`SECRET_MODE_ANNOTATION`] and of a secret reference's `mode`.
pub const SECRET_MODE_BATCH: &str = "batch";
/// Annotation that every pull request carries in its sandbox configuration.
pub const PULLING_BY_ANNOTATION: &str = "apps.kruise.io/pulling-image-by";
/// Value of [`PULLING_BY_ANNOTATION`]. Tools that filter by it expect this text, whoever pulls.
pub const PULLING_BY: &str = "kruise-daemon";
/// Namespace of the copied Secrets, unless configured otherwise.
pub const DEFAULT_CONFIG_NAMESPACE: &str = "kruise-daemon-config";

/// Finalizer that keeps an ImagePrefetch until its NodeImageSets are gone.
pub const IMAGE_PREFETCH_FINALIZER: &str = "image-prefetch.ofen.cybozu.io/finalizer";
/// Finalizer that keeps a NodeImageSet until the agent has stopped its pulls.
pub const NODE_IMAGE_SET_FINALIZER: &str = "nodeimageset.ofen.cybozu.io/finalizer";
/// Label of a NodeImageSet: namespace of its ImagePrefetch.
pub const OWNER_NAMESPACE_LABEL: &str = "image-prefetch.ofen.cybozu.io/owner-namespace";
/// Label of a NodeImageSet: name of its ImagePrefetch.
pub const OWNER_NAME_LABEL: &str = "image-prefetch.ofen.cybozu.io/owner-name";
/// Label of a NodeImageSet: its node.
pub const NODE_NAME_LABEL: &str = "image-prefetch.ofen.cybozu.io/node-name";
/// Field manager of the ImagePrefetch controller.
pub const IMAGE_PREFETCH_FIELD_MANAGER: &str = "image-prefetch.ofen.cybozu.io/image-prefetch-controller";
/// Field manager of the agent's NodeImageSet status.
pub const NODE_IMAGE_SET_FIELD_MANAGER: &str = "nodeimageset.ofen.cybozu.io/nodeimageset-controller";

/// Types and reasons of conditions.
pub mod condition {
    /// BroadcastJob: the pods on all matching nodes have ended. Pull jobs: finished, and nothing failed.
    pub const COMPLETE: &str = "Complete";
    /// BroadcastJob: the failure policy or the deadline ended the job. Pull jobs: finished, and something failed.
    pub const FAILED: &str = "Failed";
    /// Pull jobs: whether work goes on, and if not, why.
    pub const PROGRESSING: &str = "Progressing";
    /// ImagePullJob: every node that the job names exists. BroadcastJob: there are nodes for its pods.
    pub const NODES_FOUND: &str = "NodesFound";
    /// ImagePullJob: every Secret that the job names exists and was copied for the agents.
    pub const SECRETS_READY: &str = "SecretsReady";
    /// ImageListPullJob: every image has its ImagePullJob.
    pub const CHILDREN_CREATED: &str = "ChildrenCreated";
    /// BroadcastJob: the API server accepts the pods.
    pub const PODS_CREATED: &str = "PodsCreated";
    /// BroadcastJob: the scheduler finds a node for every pod.
    pub const PODS_SCHEDULED: &str = "PodsScheduled";
    /// AdvancedCronJob: whether runs start when they are due, and if not, why.
    pub const SCHEDULING: &str = "Scheduling";
    /// AdvancedCronJob: whether the last ended run succeeded.
    pub const LAST_RUN_SUCCEEDED: &str = "LastRunSucceeded";
    /// ImagePrefetch: there are as many nodes as are wanted.
    pub const NODES_SELECTED: &str = "NodesSelected";
    /// ImagePrefetch: false if the registry gave two nodes different images for one tag.
    pub const DIGESTS_AGREE: &str = "DigestsAgree";
    /// ImagePrefetch: every selected node has all images.
    pub const READY: &str = "Ready";
    /// Reason of [`READY`] when true.
    pub const IMAGE_PREFETCH_READY: &str = "ImagePrefetchReady";
    /// Reason of [`READY`] when false.
    pub const IMAGE_PREFETCH_PROGRESSING: &str = "ImagePrefetchProgressing";
    /// ImagePrefetch: every selected node has its NodeImageSet. Also the reason when true.
    pub const NODE_IMAGE_SETS_CREATED: &str = "NodeImageSetsCreated";
    /// Reason of [`NODE_IMAGE_SETS_CREATED`] when false.
    pub const NODE_IMAGE_SETS_CREATING: &str = "NodeImageSetsCreating";
    /// ImagePrefetch: no node failed to pull. Also the reason when true, and that of
    /// [`IMAGE_DOWNLOAD_SUCCEEDED`].
    pub const NO_IMAGE_PULL_FAILED: &str = "NoImagePullFailed";
    /// Reason of [`NO_IMAGE_PULL_FAILED`] when false.
    pub const IMAGE_PREFETCH_FAILED: &str = "ImagePrefetchFailed";
    /// NodeImageSet: the node has all images.
    pub const IMAGE_AVAILABLE: &str = "ImageAvailable";
    /// Reason of [`IMAGE_AVAILABLE`] when true.
    pub const IMAGE_DOWNLOAD_COMPLETE: &str = "ImageDownloadComplete";
    /// Reason of [`IMAGE_AVAILABLE`] when false.
    pub const IMAGE_DOWNLOAD_INCOMPLETE: &str = "ImageDownloadIncomplete";
    /// NodeImageSet: no image failed.
    pub const IMAGE_DOWNLOAD_SUCCEEDED: &str = "ImageDownloadSucceeded";
    /// Reason of [`IMAGE_DOWNLOAD_SUCCEEDED`] when false.
    pub const IMAGE_DOWNLOAD_FAILED: &str = "ImageDownloadFailed";
}

/// Reasons of events.
pub mod event {
    /// A pull succeeded.
    pub const PULL_IMAGE_SUCCEED: &str = "PullImageSucceed";
    /// A pull failed, or its node does not answer.
    pub const PULL_IMAGE_FAILED: &str = "PullImageFailed";
    /// This version cannot read the object.
    pub const UNREADABLE: &str = "Unreadable";
    /// Writes have failed for a while.
    pub const WRITE_FAILED: &str = "WriteFailed";
    /// What was written to a status did not come back whole.
    pub const FIELDS_NOT_KEPT: &str = "FieldsNotKept";
    /// An ImageListPullJob created children.
    pub const CREATED_CHILDREN: &str = "Successful create ImagePullJob";
    /// The API server refuses a child of an ImageListPullJob.
    pub const CHILD_REFUSED: &str = "Failed create ImagePullJob";
    /// A job names nodes that do not exist.
    pub const UNKNOWN_NODES: &str = "UnknownNodes";
    /// A job names Secrets that do not exist.
    pub const SECRET_MISSING: &str = "SecretMissing";
    /// The NodeImages of some nodes have no room for a job.
    pub const NO_ROOM: &str = "NoRoom";
    /// The namespace of a job may not have its image.
    pub const IMAGE_NOT_ALLOWED: &str = "ImageNotAllowed";
    /// A job names Secrets that hold no registry credentials.
    pub const SECRET_UNUSABLE: &str = "SecretUnusable";
    /// There are fewer nodes than an ImagePrefetch wants.
    pub const TOO_FEW_NODES: &str = "TooFewNodes";
    /// The node of a NodeImageSet pulls an image.
    pub const IMAGE_DOWNLOADING: &str = "ImageDownloading";
    /// The node of a NodeImageSet has an image.
    pub const IMAGE_DOWNLOADED: &str = "ImageDownloaded";
    /// The node of a NodeImageSet could not pull an image.
    pub const IMAGE_DOWNLOAD_FAILED: &str = "ImageDownloadFailed";
    /// An ImageListPullJob deleted children.
    pub const DELETED_CHILDREN: &str = "Successful delete ImagePullJob";
    /// A BroadcastJob was paused by its failure policy.
    pub const PAUSED: &str = "Paused";
    /// A BroadcastJob continues after a pause.
    pub const CONTINUE: &str = "Continue";
    /// A BroadcastJob took too long.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// A BroadcastJob failed because one of its pods did.
    pub const FAILED_POD_FOUND: &str = "failed pod is found";
    /// A BroadcastJob is complete.
    pub const JOB_COMPLETE: &str = "JobComplete";
    /// A BroadcastJob has more pods than its parallelism allows.
    pub const TOO_MANY_ACTIVE_PODS: &str = "TooManyActivePods";
    /// An AdvancedCronJob created a run.
    pub const RUN_SCHEDULED: &str = "RunScheduled";
    /// Runs of an AdvancedCronJob were due but did not happen.
    pub const RUNS_SKIPPED: &str = "RunsSkipped";
    /// An AdvancedCronJob deleted a running run to start the next one.
    pub const RUN_REPLACED: &str = "RunReplaced";
    /// A run of an AdvancedCronJob succeeded.
    pub const RUN_COMPLETED: &str = "RunCompleted";
    /// A run of an AdvancedCronJob failed.
    pub const RUN_FAILED: &str = "RunFailed";
    /// A run of an AdvancedCronJob was deleted before it ended.
    pub const RUN_DELETED: &str = "RunDeleted";
    /// The API server refuses a run of an AdvancedCronJob.
    pub const RUN_REFUSED: &str = "RunRefused";
}

/// Texts in statuses that clients compare to the letter.
pub mod message {
    /// NodeImage: the node did not answer in time (kruise R16).
    pub const NODE_SILENT: &str = "node has not responded for a long time";
    /// NodeImage: the task took too long (kruise R17).
    pub const TASK_DEADLINE: &str = "pulling exceeds the activeDeadlineSeconds";
    /// ImagePullJob: finished (kruise R47).
    pub const JOB_COMPLETED: &str = "job has completed";
    /// ImagePullJob: running, no node matches (kruise R47).
    pub const JOB_NO_PROGRESS: &str = "job is running, no progress";
    /// ImagePullJob: took too long (kruise R49).
    pub const JOB_DEADLINE: &str = "job exceeds activeDeadlineSeconds";
}

/// States of one image in a NodeImageSet's status.
pub mod image_state {
    /// Nothing has happened yet.
    pub const WAITING: &str = "WaitingForImageDownload";
    /// The image is being pulled.
    pub const IN_PROGRESS: &str = "ImageDownloadInProgress";
    /// The image is on the node.
    pub const DOWNLOADED: &str = "ImageDownloaded";
    /// The image could not be pulled.
    pub const FAILED: &str = "ImageDownloadFailed";
    /// The image could not be pulled, but another attempt may succeed.
    pub const TEMPORARILY_FAILED: &str = "ImageDownloadTemporarilyFailed";
}
