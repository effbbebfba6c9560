//! Which mirrors a piece is asked of, once some have sent wrong content.
//!
//! A piece that came whole and wrong from one mirror is proof against it. Of one in which several had a part, each is asked alone,
//! from the beginning: an honest one that broke off is not left for what the next one sent.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use prewarm_mirror::FetchError;

/// Mirrors that are proven to send wrong content, for all pieces of an image.
#[derive(Debug, Default)]
pub(super) struct Liars(Mutex<BTreeSet<String>>);

/// The tries to bring one piece.
pub(super) struct Tries<'a> {
    mirrors: Vec<String>,
    liars: &'a Liars,
    /// The mirror that is asked alone, if one is, and those that are still to be.
    alone: Option<String>,
    suspects: VecDeque<String>,
    /// How the piece came from several.
    mixed: Option<FetchError>,
}

impl Liars {
    fn known(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, liar: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(liar);
    }
}

impl<'a> Tries<'a> {
    pub fn new(mirrors: Vec<String>, liars: &'a Liars) -> Self {
        Self { mirrors, liars, alone: None, suspects: VecDeque::new(), mixed: None }
    }

    /// Whom not to ask in the present try.
    pub fn avoided(&self) -> BTreeSet<String> {
        match &self.alone {
            Some(alone) => self.mirrors.iter().filter(|mirror| *mirror != alone).cloned().collect(),
            None => self.liars.known(),
        }
    }

    /// Whether what a failed try brought may stay for whoever goes on with it.
    pub fn keeps(&self, error: &FetchError) -> bool {
        self.alone.is_none() && !matches!(error, FetchError::Corrupt { .. })
    }

    /// Takes in how a try failed. An error ends the tries: another one promises nothing that is not known. Each further one avoids
    /// a mirror more, or asks one alone that was not asked alone since the last liar was found, so that they come to an end.
    pub fn next(&mut self, error: FetchError) -> Result<(), FetchError> {
        let is_proof = matches!(error.suspects(), [_]);
        if let [liar] = error.suspects() {
            self.liars.add(liar.clone());
        }
        if self.alone.is_some() {
            return self.next_alone();
        }
        if is_proof {
            return Ok(());
        }
        if error.suspects().is_empty() {
            return Err(error.naming(&self.liars.known()));
        }
        let known = self.liars.known();
        self.suspects = error.suspects().iter().filter(|name| !known.contains(*name)).cloned().collect();
        self.mixed = Some(error);
        self.next_alone()
    }

    /// Goes on to the next suspect. After the last one, all are asked that are not proven to lie, if one of them is by then.
    fn next_alone(&mut self) -> Result<(), FetchError> {
        self.alone = self.suspects.pop_front();
        if self.alone.is_some() {
            return Ok(());
        }
        let known = self.liars.known();
        match self.mixed.take() {
            Some(error) if !error.suspects().iter().any(|name| known.contains(name)) => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use prewarm_mirror::client::{Failure, Tried};

    use super::*;

    const ALL: [&str; 3] = ["honest", "liar", "other"];

    fn tries(liars: &Liars) -> Tries<'_> {
        Tries::new(ALL.map(ToOwned::to_owned).to_vec(), liars)
    }

    fn corrupt(from: &[&str]) -> FetchError {
        FetchError::Corrupt { what: "a".into(), from: from.iter().map(|&name| name.to_owned()).collect() }
    }

    fn broke_off(mirror: &str) -> FetchError {
        let failure = Failure::BrokenOff { at: 5 };
        FetchError::Failed { what: "a".into(), tried: vec![Tried { mirror: mirror.to_owned(), failure }] }
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_wrong_piece_that_nobody_sent_ends_the_tries() {
        let liars = Liars::default();
        assert_eq!(tries(&liars).next(corrupt(&[])), Err(corrupt(&[])));
    }

    #[test]
    fn whoever_sent_a_wrong_piece_alone_is_avoided_by_every_piece() {
        let liars = Liars::default();
        let mut first = tries(&liars);
        assert_eq!(first.next(corrupt(&["liar"])), Ok(()));
        assert_eq!(tries(&liars).avoided(), names(&["liar"]));
        let error = first.next(broke_off("honest")).unwrap_err().to_string();
        assert!(error.contains("honest broke off") && error.contains("liar sent other content"), "{error}");
    }

    #[test]
    fn an_honest_mirror_that_broke_off_is_not_left_for_what_a_liar_sent_after_it() {
        let liars = Liars::default();
        let mut tries = tries(&liars);
        assert_eq!(tries.next(corrupt(&["honest", "liar"])), Ok(()));
        assert_eq!(tries.avoided(), names(&["liar", "other"]));
        assert!(!tries.keeps(&broke_off("honest")));
        assert_eq!(tries.next(broke_off("honest")), Ok(()));
        assert_eq!(tries.avoided(), names(&["honest", "other"]));
        assert_eq!(tries.next(corrupt(&["liar"])), Ok(()));
        assert_eq!(tries.avoided(), names(&["liar"]));
        assert!(tries.keeps(&broke_off("honest")));
    }

    #[test]
    fn the_tries_end_if_no_suspect_is_proven_to_lie() {
        let liars = Liars::default();
        let mut tries = tries(&liars);
        assert_eq!(tries.next(corrupt(&["honest", "liar"])), Ok(()));
        assert_eq!(tries.next(broke_off("honest")), Ok(()));
        assert_eq!(tries.next(broke_off("liar")), Err(corrupt(&["honest", "liar"])));
    }
}
