//! What is said of those whom the registry refused: why, what was wrong with their credentials, and what to do about it.

use prewarm_api::kruise::FailureClass;
use prewarm_credentials::scrub::scrub;
use prewarm_credentials::{Beneficiary, Credential, Found, Party};
use prewarm_plan::agent::asking::Asking;
use prewarm_plan::agent::state::{OwnerResult, Refusal};
use prewarm_plan::agent::task::Task;
use prewarm_plan::agent::worklist::{Failure, Outcome};
use prewarm_runtime::{CallError, advice};

use super::registry::Pull;

/// At most this many Secrets are named that have nothing for an image.
const MAX_UNMATCHED: usize = 3;

/// Why somebody was refused, without any credential.
#[derive(Clone, Debug)]
pub(super) struct Complaint {
    pub(super) class: FailureClass,
    pub(super) text: String,
    pub(super) is_registry_overloaded: bool,
}

impl Pull<'_> {
    /// How it ended for each job, unless it counts for whoever asks.
    pub(super) fn results(&self, asking: Asking<Complaint>) -> Option<Vec<OwnerResult>> {
        if asking.is_for_all() {
            return None;
        }
        let mut results = Vec::new();
        for (number, result) in asking.results().into_iter().enumerate() {
            let refusal = result.err().map(|complaint| self.refusal(number, &complaint));
            for &member in &self.members[number] {
                if let Beneficiary::Job(job) = &self.request.beneficiaries[member]
                    && let Some(uid) = job.uid.clone()
                {
                    results.push(OwnerResult { uid, refusal: refusal.clone() });
                }
            }
        }
        results.sort_by(|one, other| one.uid.cmp(&other.uid));
        Some(results)
    }

    fn refusal(&self, party: usize, complaint: &Complaint) -> Refusal {
        let mut problems = self.found.problems.clone();
        problems.extend(
            self.found.parties.get(party).into_iter().flat_map(|party| self.of_party(party, complaint.class)),
        );
        let reference = self.task.reference.full();
        let advice = advice(complaint.class, &self.task.reference);
        Refusal::new(&reference, complaint.class, &complaint.text, &problems, &advice)
    }

    /// Nobody was accepted: the attempt failed as it did for the first party.
    pub(super) fn refused(&self, asking: Asking<Complaint>) -> Outcome {
        let complaint = asking.results().into_iter().find_map(Result::err).unwrap_or_else(Complaint::unknown);
        let problems = self.problems(complaint.class);
        Outcome::Failed(failure(self.task, complaint, problems, self.found.fingerprint))
    }

    /// What was wrong with credentials, as far as everybody who reads it may know: what concerns the Secrets of one
    /// namespace is nobody else's business.
    pub(super) fn problems(&self, class: FailureClass) -> Vec<String> {
        let mut problems = self.found.problems.clone();
        let namespace = |beneficiary: &Beneficiary| match beneficiary {
            Beneficiary::Person => None,
            Beneficiary::Job(job) => job.namespace.clone(),
        };
        let mut namespaces = self.request.beneficiaries.iter().map(namespace);
        let first = namespaces.next();
        if namespaces.all(|other| Some(other) == first) {
            problems.extend(self.found.parties.iter().flat_map(|party| self.of_party(party, class)));
        }
        problems
    }

    fn of_party(&self, party: &Party, class: FailureClass) -> Vec<String> {
        let mut problems = party.problems.clone();
        let is_without = party.credentials.is_empty() && self.found.credentials.is_empty();
        if is_without && matches!(class, FailureClass::Unauthorized | FailureClass::NotFound) {
            let registry = self.task.reference.registry();
            let useless = party.unmatched.iter().take(MAX_UNMATCHED);
            problems.extend(useless.map(|secret| format!("secret {secret} has no entry for {registry}")));
        }
        problems
    }
}

impl Complaint {
    pub(super) fn of(error: &CallError, found: &Found) -> Self {
        let shown = found.parties.iter().flat_map(|party| &party.credentials).chain(&found.credentials);
        let shown: Vec<Credential> = shown.cloned().collect();
        Self {
            class: error.class(),
            text: scrub(&error.to_string(), &shown),
            is_registry_overloaded: error.is_registry_overloaded(),
        }
    }

    pub(super) fn unknown() -> Self {
        Self { class: FailureClass::Unknown, text: String::new(), is_registry_overloaded: false }
    }
}

pub(super) fn failure(task: &Task, complaint: Complaint, problems: Vec<String>, fingerprint: u64) -> Failure {
    Failure {
        class: complaint.class,
        text: complaint.text,
        problems,
        advice: advice(complaint.class, &task.reference),
        is_registry_overloaded: complaint.is_registry_overloaded,
        is_final: complaint.class == FailureClass::InvalidReference,
        fingerprint: Some(fingerprint),
    }
}
