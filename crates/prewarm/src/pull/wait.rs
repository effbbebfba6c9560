//! Waits until every node of a job has finished, and shows which nodes do not have the image.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};
use prewarm_api::kruise::NodeImage;
use tokio::time::{Instant, timeout_at};

use super::progress::Bars;
use crate::answer::{Answer, Exit};
use crate::jobs::{Failure, Job, JobName, Jobs, failures};
use crate::operation::stop_signal;
use crate::reach::{Cluster, Narrow, Reader};
use crate::show::{Cell, Column, Look, Tone, counted, table};

/// Bars are drawn again at least this often, because they show times.
pub(super) const RENEW: Duration = Duration::from_secs(1);
/// A year stands for no limit.
pub(super) const NO_LIMIT: Duration = Duration::from_hours(24 * 365);

const COLUMNS: [Column; 4] =
    [Column::new("NODE"), Column::new("IMAGE"), Column::new("REASON"), Column::new("MESSAGE")];

enum End {
    /// The job is over; this is its last state.
    Over(Job),
    /// The job was deleted before it was over.
    Gone,
    /// The time was up.
    Late(Option<Job>),
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Waits, shows the progress, and returns the result.
pub async fn until_over(
    cluster: &Cluster,
    made: &DynamicObject,
    limit: Option<Duration>,
) -> anyhow::Result<Answer> {
    let namespace = made.namespace().unwrap_or_default();
    let mut reader = Reader::following(cluster.clone());
    let jobs = Jobs::read(&mut reader, Some(&namespace)).await?;
    let stopped = stop_signal()?;
    let end = tokio::select! {
        end = follow(&jobs, made, &mut reader, limit) => end?,
        () = stopped => End::Interrupted,
    };
    let name = made.name_any();
    match end {
        End::Over(job) => result(cluster, &job).await,
        End::Gone => Ok(Answer::failed(format!("error: the job {name} was deleted before it was over\n"))),
        End::Late(job) => {
            let far = job.map(|job| job.status()).unwrap_or_default();
            let missing = far.desired.saturating_sub(far.succeeded);
            Ok(Answer::failed(format!(
                "error: the time is up and {missing} of {} nodes do not have the image; the job continues: `prewarm explain \
                 {name} -n {namespace}` explains why\n",
                far.desired
            )))
        }
        End::Interrupted => Ok(Answer::failed(format!(
            "interrupted; the job continues: `prewarm status {name} -n {namespace}` shows it\n"
        ))),
    }
}

async fn follow(
    jobs: &Jobs,
    made: &DynamicObject,
    reader: &mut Reader,
    limit: Option<Duration>,
) -> anyhow::Result<End> {
    let end = Instant::now() + limit.unwrap_or(NO_LIMIT);
    let name: JobName = made.name_any().parse().map_err(anyhow::Error::msg)?;
    let (mut bars, mut last) = (Bars::default(), None);
    loop {
        let Some(job) = jobs.named(&name).into_iter().find(|job| job.metadata().uid == made.metadata.uid)
        else {
            // A job that is deleted as soon as it is over may be gone before its end was observed.
            return Ok(last.filter(|job: &Job| job.ended_at().is_some()).map_or(End::Gone, End::Over));
        };
        bars.show(&job, Timestamp::now());
        if job.ended_at().is_some() {
            bars.close();
            return Ok(End::Over(job));
        }
        last = Some(job);
        if timeout_at(end, reader.changed_within(RENEW)).await.is_err() {
            bars.close();
            return Ok(End::Late(last));
        }
    }
}

/// Shows which nodes do not have the image.
async fn result(cluster: &Cluster, job: &Job) -> anyhow::Result<Answer> {
    let status = job.status();
    let warnings = lines("warning", &unknown_nodes(job));
    if status.failed == 0 && warnings.is_empty() && refused(job).is_empty() {
        let stdout = match status.desired {
            0 => "no node is selected, so there was nothing to pull\n".to_owned(),
            _ => format!("{} on {}\n", images(job), everywhere(job)),
        };
        return Ok(Answer::done(stdout));
    }
    let nodes: Vec<NodeImage> = cluster.list(&Api::all(cluster.client.clone()), &Narrow::default()).await?;
    let failures: Vec<Failure> = job.parts().iter().flat_map(|part| failures(part, &nodes)).collect();
    let rows = failures.iter().map(|failure| {
        let reason = failure.class.map_or("-".to_owned(), |class| format!("{class:?}"));
        let name = failure.node.clone();
        vec![
            name.into(),
            failure.image.clone().into(),
            Cell::toned(reason, Tone::Bad),
            failure.message.clone().into(),
        ]
    });
    let refused = lines("error", &refused(job));
    let look = Look::of(crate::show::Format::Table);
    let count = format!("error: {} of {} pulls failed\n", status.failed, status.desired);
    let count = if status.failed > 0 { count } else { String::new() };
    Ok(Answer {
        stdout: table(&COLUMNS, rows, look),
        stderr: warnings + &refused + &count,
        exit: Exit::Findings,
    })
}

fn lines(label: &str, texts: &[String]) -> String {
    texts.iter().flat_map(|text| [label, ": ", text, "\n"]).collect()
}

fn images(job: &Job) -> String {
    match job.images().as_slice() {
        [one] => format!("{one} is"),
        many => format!("{} are", counted(many.len(), "image")),
    }
}

fn everywhere(job: &Job) -> String {
    let most = job.parts().iter().filter_map(|part| part.status.as_ref()).map(|status| status.desired).max();
    counted(usize::try_from(most.unwrap_or_default()).unwrap_or_default(), "node")
}

/// Node names in the selector that no node has.
fn unknown_nodes(job: &Job) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for condition in job.parts().iter().filter_map(|part| part.status.as_ref()?.conditions.as_ref()).flatten()
    {
        let is_trouble =
            condition.type_ == prewarm_api::names::condition::NODES_FOUND && condition.status == "False";
        if is_trouble && !notes.contains(&condition.message) {
            notes.push(condition.message.clone());
        }
    }
    notes
}

/// Images of a list for which no job could be made.
fn refused(job: &Job) -> Vec<String> {
    let Job::List(list, children) = job else { return Vec::new() };
    let failed =
        list.status.as_ref().and_then(|status| status.failed_image_statuses.clone()).unwrap_or_default();
    let has_job = |name: &Option<String>| {
        name.as_ref().is_some_and(|name| children.iter().any(|child| child.name_any() == *name))
    };
    let orphans = failed.into_iter().filter(|image| !has_job(&image.image_pull_job));
    orphans
        .map(|image| format!("{}: {}", image.name.unwrap_or_default(), image.message.unwrap_or_default()))
        .collect()
}
