//! A pull from the registry for everybody who wants the image: which credentials are shown, and for whom it counts. Whom to
//! ask for next, and what follows from an answer, is decided in `plan::agent::asking`.

use std::time::Duration;

use prewarm_api::kruise::FailureClass;
use prewarm_credentials::{Credential, CredentialRequest, Found};
use prewarm_plan::agent::asking::{Asking, Question};
use prewarm_plan::agent::runtime::Absence;
use prewarm_plan::agent::task::Task;
use prewarm_plan::agent::worklist::{Failure, Outcome, Start};
use prewarm_runtime::{CallError, PullRequest};
use tokio::time::{Instant, sleep, timeout};

use super::refusal::{Complaint, failure};
use super::{Tools, Update, absence};
use crate::look::held;
use crate::secrets;

/// How often an attempt that somebody else's cancellation ended is repeated at once: on CRI-O, callers share a pull.
const MAX_INTERRUPTIONS: u32 = 3;
/// Once the image has arrived, all other parties together are asked for within this time, or within half of what is left
/// of the attempt's: whoever brought the image does not wait for them longer.
const VERIFICATION_TIME: Duration = Duration::from_mins(1);
/// How often a registry that cannot be reached is asked for one of these parties.
const VERIFICATION_TRIES: u32 = 3;
/// The pause before it is asked once more.
const VERIFICATION_PAUSE: Duration = Duration::from_secs(1);

/// The runtime is away, which is nobody's failure.
struct RuntimeAway(Absence);

/// One pull, and what is known about it.
pub(super) struct Pull<'a> {
    pub(super) task: &'a Task,
    pub(super) tools: &'a Tools,
    pub(super) request: &'a CredentialRequest,
    pub(super) found: &'a Found,
    /// Every credential once, by the number that it is asked with.
    pub(super) credentials: Vec<&'a Credential>,
    /// The members of each party that is asked for.
    pub(super) members: Vec<Vec<usize>>,
}

/// Has the runtime ask the registry until it has the image, and then for everybody else who wants it.
pub(super) async fn fetch(start: &Start, tools: &Tools, send: &impl Fn(Update)) -> Outcome {
    let began = Instant::now();
    let request = secrets::request(&start.task);
    let found = tools.credentials.credentials(&request).await;
    let (pull, mut asking) = Pull::new(&start.task, tools, &request, &found);
    while !asking.is_accepted() {
        let Some(question) = asking.next_question() else { return pull.refused(asking) };
        if let Err(RuntimeAway(absence)) = pull.ask(&mut asking, question, 1).await {
            return Outcome::Interrupted(absence);
        }
    }
    send(Update::Pulled);
    let left = start.timeout.saturating_sub(began.elapsed()) / 2;
    if let Err(RuntimeAway(absence)) = pull.verify(&mut asking, left.min(VERIFICATION_TIME)).await {
        return Outcome::Interrupted(absence);
    }
    pull.confirm(asking).await
}

/// The runtime could not even say whether it has the image.
pub(super) fn not_looked(task: &Task, error: &CallError) -> Outcome {
    if let Some(absence) = absence(error) {
        return Outcome::Interrupted(absence);
    }
    Outcome::Failed(failure(task, Complaint::of(error, &Found::default()), Vec::new(), 0))
}

impl<'a> Pull<'a> {
    fn new(
        task: &'a Task,
        tools: &'a Tools,
        request: &'a CredentialRequest,
        found: &'a Found,
    ) -> (Self, Asking<Complaint>) {
        let mut credentials: Vec<&Credential> = Vec::new();
        let mut number = |credential: &'a Credential| {
            credentials.iter().position(|known| *known == credential).unwrap_or_else(|| {
                credentials.push(credential);
                credentials.len() - 1
            })
        };
        let of_node: Vec<usize> = found.credentials.iter().map(&mut number).collect();
        let mut own: Vec<Vec<usize>> =
            found.parties.iter().map(|party| party.credentials.iter().map(&mut number).collect()).collect();
        let mut members: Vec<Vec<usize>> = found.parties.iter().map(|party| party.members.clone()).collect();
        let is_alone = |member: &usize| !members.iter().flatten().any(|known| known == member);
        let without: Vec<usize> = (0..request.beneficiaries.len()).filter(is_alone).collect();
        if !without.is_empty() || members.is_empty() {
            own.push(Vec::new());
            members.push(without);
        }
        (Self { task, tools, request, found, credentials, members }, Asking::new(own, of_node))
    }

    /// Asks once, and if the registry cannot be reached, up to this often.
    async fn ask(
        &self,
        asking: &mut Asking<Complaint>,
        question: Question,
        tries: u32,
    ) -> Result<(), RuntimeAway> {
        let credential = question.key.map(|number| self.credentials[number]);
        let mut answer = self.pull_as(credential).await;
        for _ in 1..tries {
            if !answer.as_ref().is_err_and(|error| error.class() == FailureClass::Unreachable) {
                break;
            }
            sleep(VERIFICATION_PAUSE).await;
            answer = self.pull_as(credential).await;
        }
        match answer {
            Ok(()) => asking.accept(question),
            // Only here the runtime was at work on the image.
            Err(error) if error.is_cut_off() => return Err(RuntimeAway(Absence::Stopped)),
            Err(error) => match absence(&error) {
                Some(absence) => return Err(RuntimeAway(absence)),
                None => asking.refuse(question, error.class(), Complaint::of(&error, self.found)),
            },
        }
        Ok(())
    }

    /// Asks for everybody for whom the pull does not count yet. The image is there, so no layer is fetched again.
    async fn verify(&self, asking: &mut Asking<Complaint>, time: Duration) -> Result<(), RuntimeAway> {
        let all = async {
            while let Some(question) = asking.next_question() {
                self.ask(asking, question, VERIFICATION_TRIES).await?;
            }
            Ok(())
        };
        if let Ok(done) = timeout(time, all).await {
            return done;
        }
        asking.give_up(&Complaint {
            class: FailureClass::TimedOut,
            text: format!("the registry was not asked for this job within {} s", time.as_secs()),
            is_registry_overloaded: false,
        });
        Ok(())
    }

    async fn pull_as(&self, credential: Option<&Credential>) -> Result<(), CallError> {
        let request = PullRequest {
            reference: self.task.reference.clone(),
            credential: credential.cloned(),
            labels: self.task.labels.clone(),
            annotations: self.task.annotations.clone(),
        };
        let mut interruptions = 0;
        loop {
            match self.tools.runtime.pull(&request).await {
                Err(error) if error.is_interrupted() && interruptions < MAX_INTERRUPTIONS => {
                    interruptions += 1;
                }
                answer => return answer,
            }
        }
    }

    /// A runtime's answer is not enough: the image has to be there under the name that pods will use.
    async fn confirm(&self, asking: Asking<Complaint>) -> Outcome {
        match self.tools.runtime.image(&self.task.reference).await {
            Ok(Some(image)) => Outcome::Succeeded {
                image: held(&self.task.key, &self.task.reference, &image, &self.tools.runtime).await,
                was_present: false,
                results: self.results(asking),
            },
            Ok(None) => Outcome::Failed(Failure {
                text: "the runtime says that it pulled the image, and then does not have it".to_owned(),
                problems: self.problems(FailureClass::Unknown),
                advice: "look at the runtime's log, and whether something removes images on this node"
                    .to_owned(),
                ..failure(self.task, Complaint::unknown(), Vec::new(), self.found.fingerprint)
            }),
            Err(error) => {
                if let Some(absence) = absence(&error) {
                    return Outcome::Interrupted(absence);
                }
                let complaint = Complaint::of(&error, self.found);
                let problems = self.problems(complaint.class);
                Outcome::Failed(failure(self.task, complaint, problems, self.found.fingerprint))
            }
        }
    }
}
