//! The story as plain lines, each with the time since the start.

use std::time::{Duration, Instant};

use prewarm_demo::cluster::Cluster;
use prewarm_demo::story::{Message, Trouble};
use tokio::sync::mpsc;

use super::Ending;

/// What the texts about a cluster contain.
pub struct About {
    /// The number of nodes at the start.
    pub nodes: usize,
    /// The path of the kubeconfig.
    pub kubeconfig: String,
    /// Whether the cluster stays after the story.
    pub stays: bool,
}

impl About {
    pub fn of(cluster: &Cluster, stays: bool) -> Self {
        let kubeconfig = cluster.kubeconfig().display().to_string();
        Self { nodes: cluster.nodes.len(), kubeconfig, stays }
    }

    /// The first lines: what there is, and how to look at it.
    pub fn opening(&self) -> String {
        let Self { nodes, kubeconfig, .. } = self;
        format!(
            "A cluster of {nodes} nodes in one process. Look at it from another terminal:\n  \
             kubectl --kubeconfig {kubeconfig} get imagepulljobs,imageprefetches,nodeimages -A\n"
        )
    }

    /// The last line.
    pub fn closing(&self) -> String {
        if self.stays {
            let kubeconfig = &self.kubeconfig;
            return format!(
                "\nThe cluster stays until Ctrl-C. Try a job of your own:\n  \
                 kubectl --kubeconfig {kubeconfig} apply -f job.yaml\n"
            );
        }
        "\nThat was all; nothing is left behind. `--forever` keeps the cluster.\n".to_owned()
    }
}

/// A line of the story with the time since the start.
pub fn line(word: &Message, at: Duration) -> String {
    let seconds = at.as_secs_f64();
    match word {
        Message::Title(text) => format!("\n{seconds:5.1} s  {text}\n"),
        Message::Said(text) => format!("{seconds:5.1} s    {text}\n"),
        Message::Ended(text) => format!("{seconds:5.1} s  ✓ {text}\n"),
    }
}

/// Prints the lines of the story as they come.
pub async fn follow(
    about: &About,
    story: impl Future<Output = Result<(), Trouble>>,
    words: mpsc::UnboundedReceiver<Message>,
    stopped: impl Future<Output = ()>,
) -> Ending {
    let played = async {
        print!("{}", about.opening());
        let (result, ()) = tokio::join!(story, print_all(words));
        if result.is_ok() {
            print!("{}", about.closing());
        }
        if result.is_ok() && about.stays {
            std::future::pending::<()>().await;
        }
        result
    };
    tokio::select! {
        result = played => Ending::Over(result),
        () = stopped => Ending::Stopped,
    }
}

async fn print_all(mut words: mpsc::UnboundedReceiver<Message>) {
    let start = Instant::now();
    while let Some(word) = words.recv().await {
        print!("{}", line(&word, start.elapsed()));
    }
}
