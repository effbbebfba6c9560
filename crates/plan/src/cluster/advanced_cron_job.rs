//! What is to be done for an AdvancedCronJob (kruise R90–R103).
//!
//! ```text
//! ends    ─▶ runs that are over are told and go into the history
//! begun   ─▶ runs that were made since the status was written are written down, and what was skipped before them
//! due     ─▶ the latest run that was missed is made, unless something hinders it
//! ```
//!
//! A run is made before it is written down. Its name follows from its time and it stays until it is written down, so that
//! a controller that dies in between finds it and makes no second one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use prewarm_api::kruise::{
    AdvancedCronJob, AdvancedCronJobStatus, ConcurrencyPolicy, SkippedRuns, TemplateKind,
};
use prewarm_api::names::event::RUN_SCHEDULED;

use crate::cluster::command::Notice;
use crate::condition::{Finding, set_condition, shorten};
use crate::object::Uid;
use crate::schedule::Schedule;
use child::Child;
use due::Skipped;
use hindrance::Hindrance;
use runs::{Fate, Runs};
use timetable::Trouble;

pub mod child;
mod crons;
pub mod due;
pub mod hindrance;
mod history;
mod observe;
mod pass;
mod record;
pub mod run;
pub mod runs;
mod settle;
pub mod timetable;

pub use crons::{Crons, RunKey};

/// So many runs that go on are listed, the latest: more would not fit into an object.
const MOST_ACTIVE: usize = 1000;

/// So many runs of a cron job may go on at once. Runs that never end would otherwise become more with every time of the
/// schedule, and nobody has asked for that.
pub const MOST_UNFINISHED: usize = 100;

/// What a decision is made on.
pub struct Observed<'a> {
    /// The cron job.
    pub cron: &'a AdvancedCronJob,
    /// Its schedule, or why it has none.
    pub schedule: &'a Result<Schedule, Trouble>,
    /// Its runs, by name.
    pub children: &'a BTreeMap<Arc<str>, Child>,
    /// Whether a run is being made.
    pub is_creating: bool,
    /// Why the API server took no run.
    pub refusal: Option<&'a str>,
    /// UIDs of the runs that were taken away for the next one.
    pub replaced: &'a BTreeSet<Uid>,
    /// The time.
    pub now: Timestamp,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The new status, if it differs.
    pub status: Option<AdvancedCronJobStatus>,
    /// The time whose run is to be made.
    pub create: Option<Timestamp>,
    /// Names and UIDs of the runs that make room for the next one.
    pub replace: Vec<(Arc<str>, Uid)>,
    /// Names and UIDs of the runs that the history has no room for.
    pub prune: Vec<(Arc<str>, Uid)>,
    /// When to look again although nothing changes.
    pub wake_at: Option<Timestamp>,
    /// What people hear of once the status is written.
    pub notices: Vec<Notice>,
    /// What became of runs, to be counted once the status is written.
    pub runs: Runs,
}

/// Decides what to do for a cron job.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let cron = observed.cron;
    if cron.metadata.deletion_timestamp.is_some() {
        // The garbage collector takes its runs.
        return Decision::default();
    }
    let mut settled = due::settled_until(cron);
    let mut draft = Draft::new(observed);
    let ends = history::untold(observed, settled);
    for end in &ends {
        draft.notices.extend(end.notice());
        runs::count(&mut draft.runs, Fate::of_end(end));
        draft.find(end.finding());
        if let Some(image) = end.failed_image() {
            draft.status.last_failed_image = Some(image.to_owned());
        }
    }
    if let Some(latest) = draft.write_down_begun(settled) {
        settled = latest;
    }
    let next = go_on(observed, settled);
    for skipped in &next.skipped {
        draft.skip(skipped);
    }
    draft.regard(next.outlook);
    let is_changed = cron.status.as_ref() != Some(&draft.status);
    Decision {
        status: is_changed.then_some(draft.status),
        create: next.create,
        replace: next.replace,
        prune: history::surplus(observed, &ends),
        wake_at: next.wake_at,
        notices: draft.notices,
        runs: draft.runs,
    }
}

/// What happens to the runs that are due.
#[derive(Default)]
struct Next {
    create: Option<Timestamp>,
    replace: Vec<(Arc<str>, Uid)>,
    skipped: Vec<Skipped>,
    outlook: Outlook,
    wake_at: Option<Timestamp>,
}

/// What the status says about the runs to come.
#[derive(Default)]
enum Outlook {
    /// They start when they are due.
    #[default]
    Clear,
    /// The one that is due is being made: what hindered it so far is told until it is there.
    Unsettled,
    /// They do not start.
    Hindered(Hindrance),
}

fn go_on(observed: &Observed<'_>, settled: Timestamp) -> Next {
    let Observed { cron, now, .. } = *observed;
    let hindered = |hindrance| Next { outlook: Outlook::Hindered(hindrance), ..Next::default() };
    let schedule = match observed.schedule {
        Ok(schedule) => schedule,
        Err(trouble) => return hindered(Hindrance::Schedule(trouble.clone())),
    };
    if cron.spec.paused {
        return hindered(Hindrance::Paused);
    }
    if let Some(at) = due::latest(cron, schedule, settled, now) {
        return start(observed, at);
    }
    // Whatever else was due can no longer start.
    let skipped = due::skipped(cron, schedule, settled, just_after(now), 0, now);
    // What happens every so often is counted from the time before, not from whenever somebody looks.
    let before = skipped.iter().map(|skipped| skipped.last).max().unwrap_or(settled);
    let next = timetable::next(schedule, &cron.spec.schedule, before);
    match next.or_else(|_| timetable::next(schedule, &cron.spec.schedule, before.max(now))) {
        Ok(at) => Next { skipped, wake_at: Some(at), ..Next::default() },
        Err(trouble) => Next { skipped, ..hindered(Hindrance::Schedule(trouble)) },
    }
}

/// Starts the run of this time, as far as the runs that go on allow it (kruise R101).
fn start(observed: &Observed<'_>, at: Timestamp) -> Next {
    let mut active = observed.children.values().filter(|child| !child.is_over());
    let outlook = match observed.refusal {
        Some(words) => Outlook::Hindered(Hindrance::Refused(words.to_owned())),
        None => Outlook::Unsettled,
    };
    let policy = policy(observed.cron);
    if policy == ConcurrencyPolicy::Forbid
        && !observed.is_creating
        && let Some(child) = active.next()
    {
        let outlook = Outlook::Hindered(Hindrance::Forbidden(child.name.to_string()));
        return Next { outlook, ..Next::default() };
    }
    let unfinished = observed.children.values().filter(|child| !child.is_over()).count();
    if policy == ConcurrencyPolicy::Allow && !observed.is_creating && unfinished >= MOST_UNFINISHED {
        let outlook = Outlook::Hindered(Hindrance::TooMany(unfinished));
        return Next { outlook, ..Next::default() };
    }
    let replace: Vec<(Arc<str>, Uid)> = if policy == ConcurrencyPolicy::Replace && !observed.is_creating {
        let going = active.filter(|child| !child.is_terminating);
        going.map(|child| (child.name.clone(), child.uid.clone())).collect()
    } else {
        Vec::new()
    };
    let create = (replace.is_empty() && !observed.is_creating).then_some(at);
    Next { create, replace, outlook, ..Next::default() }
}

/// What happens when a run is due and others go on.
pub fn policy(cron: &AdvancedCronJob) -> ConcurrencyPolicy {
    let is_list = cron.spec.template.kind() == Some(TemplateKind::ImageListPullJob);
    let usual = if is_list { ConcurrencyPolicy::Replace } else { ConcurrencyPolicy::Allow };
    cron.spec.concurrency_policy.unwrap_or(usual)
}

/// Times of schedules are whole seconds, and what is asked for ends before the one that is given.
fn just_after(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second().saturating_add(1)).unwrap_or(Timestamp::MAX)
}

/// A status in the making.
struct Draft<'a> {
    observed: &'a Observed<'a>,
    status: AdvancedCronJobStatus,
    notices: Vec<Notice>,
    runs: Runs,
}

impl<'a> Draft<'a> {
    fn new(observed: &'a Observed<'a>) -> Self {
        let cron = observed.cron;
        let mut active: Vec<&Child> = observed.children.values().filter(|child| !child.is_over()).collect();
        active.sort_by_key(|child| (child.scheduled_at, child.name.clone()));
        let namespace = cron.metadata.namespace.as_deref();
        let listed = active.iter().skip(active.len().saturating_sub(MOST_ACTIVE));
        let active: Vec<_> = listed.map(|child| child.reference(namespace)).collect();
        let status = AdvancedCronJobStatus {
            type_: cron.spec.template.kind(),
            active: (!active.is_empty()).then_some(active),
            ..cron.status.clone().unwrap_or_default()
        };
        Self { observed, status, notices: Vec::new(), runs: Runs::default() }
    }

    fn find(&mut self, finding: Finding) {
        let Observed { cron, now, .. } = self.observed;
        let conditions = self.status.conditions.get_or_insert_default();
        set_condition(conditions, finding, cron.metadata.generation, *now);
    }

    /// Writes down the runs that were made since the status was written, and what was skipped before them. Says what the
    /// latest of them is.
    fn write_down_begun(&mut self, settled: Timestamp) -> Option<Timestamp> {
        let Observed { cron, children, schedule, now, .. } = self.observed;
        let times = children.values().filter_map(|child| Some((child.scheduled_at?, child)));
        let mut begun: Vec<(Timestamp, &Child)> = times.filter(|(at, _)| *at > settled).collect();
        begun.sort_by_key(|(at, _)| *at);
        let (latest, _) = *begun.last()?;
        if let Ok(schedule) = schedule {
            let earlier = u64::try_from(begun.len() - 1).unwrap_or(0);
            for skipped in due::skipped(cron, schedule, settled, latest, earlier, *now) {
                self.skip(&skipped);
            }
        }
        for (at, child) in begun {
            runs::count(&mut self.runs, Fate::of_begun(at, child));
            let note = format!("made {} {} for {at}", child.kind.as_str(), child.name);
            self.notices.push(Notice::normal(RUN_SCHEDULED, note));
        }
        self.status.last_schedule_time = Some(Time(latest));
        Some(latest)
    }

    fn skip(&mut self, skipped: &Skipped) {
        let all = self.status.skipped_runs.get_or_insert_default();
        let count = i64::try_from(skipped.count).unwrap_or(i64::MAX);
        match all.iter_mut().find(|runs| runs.reason == skipped.reason) {
            Some(runs) => {
                runs.count = runs.count.saturating_add(count);
                runs.last_time = Time(skipped.last);
            }
            None => all.push(SkippedRuns { reason: skipped.reason, count, last_time: Time(skipped.last) }),
        }
        runs::skip(&mut self.runs, skipped);
        self.notices.push(hindrance::skipped(skipped, self.observed.cron.spec.starting_deadline_seconds));
    }

    fn regard(&mut self, outlook: Outlook) {
        match outlook {
            Outlook::Clear => self.find(hindrance::none()),
            Outlook::Unsettled if hindrance::condition(self.observed.cron).is_none() => {
                self.find(hindrance::none());
            }
            Outlook::Unsettled => {}
            Outlook::Hindered(hindrance) => {
                let finding = hindrance.finding();
                let known = hindrance::condition(self.observed.cron);
                let message = shorten(finding.message.clone());
                if known
                    .is_none_or(|known| known.reason != finding.reason.as_str() || known.message != message)
                {
                    self.notices.extend(hindrance.notice());
                }
                self.find(finding);
            }
        }
    }
}

#[cfg(test)]
mod tests;
