//! ImagePrefetches and NodeImageSets on the embedded API, with the real controller and agents, in paused time.
//!
//! `C…`, `R…`, `A…` and `W…` are those of `docs/spec/ofen.md`; `docs/compatibility.md` says which test shows which case.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod life;
mod rollout;
mod states;
mod support;
