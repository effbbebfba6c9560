//! The story as plain lines, each with the time since the beginning.

use std::time::Instant;

use prewarm_demo::cluster::Cluster;
use prewarm_demo::story::Word;

/// Prints lines.
pub struct Lines {
    start: Instant,
    kubeconfig: String,
}

impl Lines {
    /// Says what there is and how to look at it.
    pub fn begin(cluster: &Cluster) -> Self {
        let kubeconfig = cluster.kubeconfig().display().to_string();
        println!(
            "A cluster of {} nodes in one process. Look at it from another terminal:",
            cluster.nodes.len()
        );
        println!("  kubectl --kubeconfig {kubeconfig} get imagepulljobs,nodeimages -A");
        Self { start: Instant::now(), kubeconfig }
    }

    /// Prints what is said.
    pub fn print(&self, word: &Word) {
        let seconds = self.start.elapsed().as_secs_f64();
        match word {
            Word::Title(text) => println!("\n{seconds:5.1} s  {text}"),
            Word::Said(text) => println!("{seconds:5.1} s    {text}"),
            Word::Ended(text) => println!("{seconds:5.1} s  ✓ {text}"),
        }
    }

    /// Says that the story is over.
    pub fn close(&self, stays: bool) {
        println!();
        if stays {
            println!("The cluster stays until Ctrl-C. Try a job of your own:");
            println!("  kubectl --kubeconfig {} apply -f job.yaml", self.kubeconfig);
        } else {
            println!("That was all; nothing is left behind. `--forever` keeps the cluster.");
        }
    }
}
