//! `MirrorOnly`: an image comes from the node's mirrors, and its registry is never asked (ofen A11, W19). On containerd the agent
//! brings the content itself ([`brought`](super::brought)); elsewhere that cannot be kept, and the flag decides what happens then.

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;
use prewarm_mirror::content::ContentError;
use prewarm_mirror::{FetchError, Hosts, Mirrors as Asked, Platform, Settings};
use prewarm_plan::agent::source::Allowed;
use prewarm_plan::agent::task::Task;
use prewarm_plan::agent::worklist::{Failure, Held, Outcome, Start};
use prewarm_runtime::{CallError, ContentStore, Fitness, Kind, Runtime, advice};
use tokio::sync::OnceCell;
use tracing::{info, warn};

use super::brought::{Bringer, bring, leases_of, release};
use super::turns::Turns;
use super::{Tools, Update, absence, registry};
use crate::config::{Fallback, Mirrors, NodeMirrors, Verifiers};
use crate::look::held;

/// Keeps `MirrorOnly` with one runtime.
pub struct MirrorOnly {
    choice: Mirrors,
    /// Whether the runtime was tried out, and with which snapshotter it unpacks. What failed is tried again.
    tried: OnceCell<(String, Fitness)>,
    turns: Turns,
}

/// Why `MirrorOnly` cannot be kept on this node.
enum Unkept {
    Runtime(String),
    Verifiers,
    Trial(CallError),
}

/// Why an image could not be brought.
pub(super) enum Trouble {
    /// The runtime.
    Call(CallError),
    /// The mirrors.
    Fetch(FetchError),
    /// What the mirrors have.
    Content(ContentError),
    /// Everything was brought, and CRI does not have the image.
    NotTakenOver,
}

impl MirrorOnly {
    pub fn new(choice: Mirrors) -> Self {
        Self { choice, tried: OnceCell::new(), turns: Turns::default() }
    }

    /// Gives back, in the background, the room of what attempts brought of an image that nobody goes on with.
    pub fn discard(&self, reference: ImageRef, runtime: &Runtime) {
        let (Mirrors::OfNode(_), Some(store)) = (&self.choice, runtime.content_store()) else { return };
        let (turns, name) = (self.turns.clone(), leases_of(&reference));
        // An attempt that begins from here on waits until this is done.
        let turn = turns.try_take(&name);
        tokio::spawn(async move {
            let _turn = match turn {
                Some(turn) => turn,
                None => turns.take(&name).await,
            };
            release(&store, &reference).await;
        });
    }

    /// What is needed to bring images past a pull, once the runtime was seen to be fit for it.
    async fn ready(
        &self,
        node: &NodeMirrors,
        runtime: &Runtime,
    ) -> Result<(ContentStore, (String, Fitness)), Unkept> {
        let store = runtime.content_store().filter(|_| runtime.kind() == Kind::Containerd);
        let store = store.ok_or_else(|| Unkept::Runtime(runtime.name().to_owned()))?;
        if node.verifiers == Verifiers::Present {
            return Err(Unkept::Verifiers);
        }
        let tried = self.tried.get_or_try_init(|| async {
            let snapshotter = runtime.snapshotter().await?;
            let fitness = runtime.try_out_content(&platform()).await?;
            info!(snapshotter, "images can be brought past a pull");
            Ok::<_, CallError>((snapshotter, fitness))
        });
        Ok((store, tried.await.map_err(Unkept::Trial)?.clone()))
    }
}

/// Brings the image from mirrors. If a digest is given, that is what its name will stand for.
pub(super) async fn fetch(
    start: &Start,
    digest: Option<&str>,
    tools: &Tools,
    send: &impl Fn(Update),
) -> Outcome {
    let task = &start.task;
    let node = match &tools.mirrors.choice {
        Mirrors::OfNode(node) => node,
        Mirrors::Simulated(simulated) => {
            return match simulated(task.reference.clone(), digest.map(str::to_owned)).await {
                Ok(()) => confirm(task, digest, tools, send).await,
                Err((class, text)) => missed(failure(task, class, text)),
            };
        }
    };
    let (store, (snapshotter, fitness)) = match tools.mirrors.ready(node, &tools.runtime).await {
        Ok(ready) => ready,
        Err(Unkept::Trial(error)) if error.is_runtime_away() => return trouble(task, &Trouble::Call(error)),
        Err(unkept) if unkept.may_fall_back() && node.fallback == Fallback::Runtime => {
            warn!(image = %task.reference, reason = unkept.text(), "MirrorOnly is not kept: the runtime pulls");
            return certain(task, registry::fetch(start, tools, send).await);
        }
        Err(unkept) => return Outcome::Failed(unkept.failure()),
    };
    let mirrors = match mirrors(node, task).await {
        Ok(mirrors) => mirrors,
        Err(error) => return trouble(task, &Trouble::Fetch(error)),
    };
    let turns = tools.mirrors.turns.clone();
    let bringer = Bringer { store, snapshotter, mirrors, platform: Platform::native(), turns, fitness };
    match bring(&bringer, &task.reference, digest, send).await {
        Ok(root) => confirm(task, Some(&root), tools, send).await,
        Err(error) => trouble(task, &error),
    }
}

/// What the runtime pulled has to be what was asked for, too.
fn certain(task: &Task, outcome: Outcome) -> Outcome {
    let Outcome::Succeeded { image, .. } = &outcome else { return outcome };
    let Allowed::Mirrors { digest: Some(wanted) } = &task.sources else { return outcome };
    if task.sources.is_met_by(image.digest.as_deref()) {
        return outcome;
    }
    let found = image.digest.as_deref().unwrap_or("an image without a known digest");
    let text = format!("the runtime pulled {found} by its own way, and {wanted} is asked for");
    let advice = "use the policy Default, or name the image by digest".to_owned();
    Outcome::Failed(Failure { advice, ..failure(task, FailureClass::Unknown, text) })
}

/// What no mirror has yet is no failure.
fn missed(failure: Failure) -> Outcome {
    if failure.class == FailureClass::NotFound {
        Outcome::Unserved(failure)
    } else {
        Outcome::Failed(failure)
    }
}

/// What the node's files say, read anew for each attempt: they may be changed at any time.
async fn mirrors(node: &NodeMirrors, task: &Task) -> Result<Asked, FetchError> {
    let settings = Settings { roots: vec![node.directory.clone()], shares_network: node.shares_network };
    let registry = task.reference.registry().to_owned();
    let read = tokio::task::spawn_blocking(move || Hosts::read(&settings, &registry)).await;
    let hosts = read.expect("reading files of hosts does not panic");
    if hosts.mirrors.is_empty() {
        let what = task.reference.full();
        return Err(FetchError::NoMirror { what, why: hosts.why_none() });
    }
    for problem in &hosts.problems {
        warn!(%problem, "a mirror is left out");
    }
    Ok(Asked::new(hosts, node.patience))
}

/// That everything was brought is not enough: the image has to be there under the name that pods will use.
async fn confirm(task: &Task, digest: Option<&str>, tools: &Tools, send: &impl Fn(Update)) -> Outcome {
    send(Update::Pulled);
    let looked = match digest {
        Some(digest) => tools.runtime.takes_over(&task.reference, digest).await,
        None => tools.runtime.image(&task.reference).await,
    };
    match looked {
        Ok(Some(image)) => {
            let found = held(&task.key, &task.reference, &image, &tools.runtime).await;
            let digest = digest.map(str::to_owned).or(found.digest);
            Outcome::Succeeded { image: Held { id: found.id, digest }, was_present: false, results: None }
        }
        Ok(None) => trouble(task, &Trouble::NotTakenOver),
        Err(error) => trouble(task, &Trouble::Call(error)),
    }
}

fn trouble(task: &Task, trouble: &Trouble) -> Outcome {
    if let Trouble::Call(error) = trouble
        && let Some(absence) = absence(error)
    {
        return Outcome::Interrupted(absence);
    }
    let (class, text) = match trouble {
        // What the runtime does not find is neither what mirrors lack nor what the registry lacks.
        Trouble::Call(error) if error.class() == FailureClass::NotFound => {
            (FailureClass::Unknown, error.to_string())
        }
        Trouble::Call(error) => (error.class(), error.to_string()),
        Trouble::Fetch(error) => (error.class(), error.to_string()),
        Trouble::Content(error) => (error.class(), error.to_string()),
        Trouble::NotTakenOver => {
            let text = "everything was brought from mirrors, and the runtime does not show the image";
            (FailureClass::Unknown, text.to_owned())
        }
    };
    let failure = failure(task, class, text);
    match trouble {
        // Their sentences say what to do.
        Trouble::Fetch(_) | Trouble::Content(_) => missed(Failure { advice: String::new(), ..failure }),
        Trouble::Call(_) | Trouble::NotTakenOver => Outcome::Failed(failure),
    }
}

fn failure(task: &Task, class: FailureClass, text: String) -> Failure {
    Failure {
        class,
        text,
        problems: Vec::new(),
        advice: advice(class, &task.reference),
        is_registry_overloaded: false,
        is_final: false,
        fingerprint: None,
    }
}

fn platform() -> prewarm_runtime::Platform {
    let Platform { os, architecture, variant } = Platform::native();
    prewarm_runtime::Platform { os, architecture, variant }
}

impl Unkept {
    /// Whether the flag for it decides. It is for nodes that cannot keep the policy, and not for those where nobody has said yet
    /// that they can.
    fn may_fall_back(&self) -> bool {
        !matches!(self, Self::Verifiers)
    }

    fn text(&self) -> String {
        match self {
            Self::Runtime(name) => format!(
                "MirrorOnly cannot be kept with {name}: content gets into its store by its own pulls alone, and they may ask \
                 the registry"
            ),
            Self::Verifiers => "MirrorOnly is not kept: this node's containerd may have image verifiers, and they see nothing \
                                that comes past a pull"
                .to_owned(),
            Self::Trial(error) => {
                format!("MirrorOnly cannot be kept with this containerd: a trial at its start failed: {error}")
            }
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Verifiers => "if it has none, give the agent --image-verifiers=none",
            Self::Runtime(_) | Self::Trial(_) => {
                "use the policy Default, or let the runtime pull with --mirror-only-fallback=runtime"
            }
        }
    }

    fn failure(&self) -> Failure {
        Failure {
            class: FailureClass::Unknown,
            text: self.text(),
            problems: Vec::new(),
            advice: self.advice().to_owned(),
            is_registry_overloaded: false,
            is_final: false,
            fingerprint: None,
        }
    }
}
