//! For whom a pull counts. The owners of a task that have the same credentials are one party. A pull that the registry let
//! through for one party says nothing about the others, unless it took no credential, or one of the node itself. So each
//! party is asked for with its own credentials: the first that is accepted brings the image, and the others then cost a
//! question to the registry and no bytes (kruise S7, W30).
//!
//! ```text
//! party   credentials      asked, and the answer                           the result
//! red     1, node's, none  1: refused, node's: refused, none: refused      refused
//! blue    2, node's, none  2: accepted, the image arrives                  counts
//! green   3, node's, none  3: refused; node's and none are known           refused
//! ```
//!
//! What a credential got is remembered within one attempt, so none is shown twice. A credential that causes trouble ends
//! its own party only: nobody can keep others away with logins of their own.

use std::collections::BTreeMap;

use prewarm_api::kruise::FailureClass;

/// A credential by its place in the caller's list; `None` is none at all.
pub type Key = Option<usize>;

/// One question to the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    party: usize,
    /// With what it is asked.
    pub key: Key,
}

/// All questions of one attempt. `E` says why somebody was refused.
#[derive(Clone, Debug)]
pub struct Asking<E> {
    parties: Vec<Party<E>>,
    /// The credentials that are nobody's own.
    common: Vec<Key>,
    /// What each credential got.
    known: BTreeMap<Key, Result<(), E>>,
    is_accepted: bool,
}

#[derive(Clone, Debug)]
struct Party<E> {
    keys: Vec<Key>,
    /// The first refusal is the one worth telling: it is of the credential that fits best.
    refusal: Option<E>,
    result: Option<Result<(), E>>,
}

impl<E: Clone> Asking<E> {
    /// Asks for parties with these credentials, each in the order in which they are tried; those of the node come next,
    /// and none at all last: a stale Secret must not keep a public image away (kruise W32).
    pub fn new(parties: Vec<Vec<usize>>, of_node: Vec<usize>) -> Self {
        let common: Vec<Key> = of_node.into_iter().map(Some).chain([None]).collect();
        let party = |own: Vec<usize>| {
            let keys = own.into_iter().map(Some).chain(common.iter().copied()).collect();
            Party { keys, refusal: None, result: None }
        };
        let parties = parties.into_iter().map(party).collect();
        Self { parties, common, known: BTreeMap::new(), is_accepted: false }
    }

    /// The next question, if there is one left.
    pub fn next_question(&mut self) -> Option<Question> {
        let known = &self.known;
        for (number, party) in self.parties.iter_mut().enumerate().filter(|(_, party)| party.result.is_none())
        {
            if let Some(key) = party.next(known) {
                return Some(Question { party: number, key });
            }
        }
        None
    }

    /// The registry accepted what was asked.
    pub fn accept(&mut self, question: Question) {
        self.is_accepted = true;
        self.known.insert(question.key, Ok(()));
        self.parties[question.party].result = Some(Ok(()));
        if self.common.contains(&question.key) {
            // It would have accepted the same from everybody.
            self.parties.iter_mut().for_each(|party| party.result = Some(Ok(())));
        }
    }

    /// It did not, for a reason of this class.
    pub fn refuse(&mut self, question: Question, class: FailureClass, error: E) {
        match scope(class) {
            Scope::Credential => drop(self.known.insert(question.key, Err(error))),
            Scope::Registry if !self.is_accepted => self.give_up(&error),
            Scope::Party | Scope::Registry => {
                let party = &mut self.parties[question.party];
                party.result = Some(Err(party.refusal.take().unwrap_or(error)));
            }
        }
    }

    /// Whoever has no result has this one.
    pub fn give_up(&mut self, error: &E) {
        let open = self.parties.iter_mut().filter(|party| party.result.is_none());
        open.for_each(|party| party.result = Some(Err(error.clone())));
    }

    /// Whether the registry accepted anything, so that the image is on the node.
    pub fn is_accepted(&self) -> bool {
        self.is_accepted
    }

    /// Whether something was accepted that is nobody's own, so that the image counts for whoever asks.
    pub fn is_for_all(&self) -> bool {
        self.common.iter().any(|key| matches!(self.known.get(key), Some(Ok(()))))
    }

    /// How it ended for each party.
    ///
    /// # Panics
    /// If there is something left to ask.
    pub fn results(self) -> Vec<Result<(), E>> {
        let result = |party: Party<E>| party.result.expect("there is nothing left to ask");
        self.parties.into_iter().map(result).collect()
    }
}

impl<E: Clone> Party<E> {
    /// The first credential of which it is not known what it gets. Without one, the party has its result.
    fn next(&mut self, known: &BTreeMap<Key, Result<(), E>>) -> Option<Key> {
        for key in &self.keys {
            match known.get(key) {
                None => return Some(*key),
                Some(Ok(())) => {
                    self.result = Some(Ok(()));
                    return None;
                }
                Some(Err(error)) => drop(self.refusal.get_or_insert_with(|| error.clone())),
            }
        }
        self.result = Some(Err(self.refusal.clone().expect("asking without a credential is always tried")));
        None
    }
}

enum Scope {
    /// Another credential may be accepted. Registries hide what one may not see, so "not found" is one of these.
    Credential,
    /// It may lie in the credential, but is no refusal: an account has its own rate limit, and a login can be such that a
    /// registry or a runtime stumbles over it.
    Party,
    /// It lies in the registry, the image or the node.
    Registry,
}

fn scope(class: FailureClass) -> Scope {
    match class {
        FailureClass::Unauthorized | FailureClass::NotFound => Scope::Credential,
        FailureClass::RateLimited | FailureClass::Unknown => Scope::Party,
        FailureClass::NoPlatform
        | FailureClass::InvalidReference
        | FailureClass::Unreachable
        | FailureClass::Tls
        | FailureClass::NoSpace
        | FailureClass::TimedOut
        | FailureClass::Corrupt
        | FailureClass::RuntimeCrash => Scope::Registry,
    }
}

#[cfg(test)]
mod tests;
