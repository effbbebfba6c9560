//! Whether a program's loop still turns, which a probe that is answered beside the loop would never find out.
//!
//! A probe asks the loop, and the loop answers when it comes round. An idle loop is thus woken by probes alone, and not by a
//! clock of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// So long a loop may take to answer. No pass over the largest cluster takes nearly as long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The pulse of one loop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Before it turns for the first time, a loop has nothing to answer.
    has_begun: AtomicBool,
    /// The oldest question that is not answered.
    asked_at: Mutex<Option<Instant>>,
    question: Notify,
}

impl Pulse {
    /// For the loop: waits until somebody asks.
    pub async fn asked(&self) {
        self.0.question.notified().await;
    }

    /// For the loop: it has come round, for whatever reason.
    pub fn beat(&self) {
        self.0.has_begun.store(true, Ordering::Relaxed);
        *self.0.asked_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// For the probe: asks, and complains if a question has not been answered for long.
    pub fn check(&self) -> Result<(), String> {
        if !self.0.has_begun.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut asked_at = self.0.asked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = asked_at.get_or_insert_with(Instant::now).elapsed();
        self.0.question.notify_one();
        if waits > PATIENCE {
            return Err(format!("the loop has not turned for {} s", waits.as_secs()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_turns_is_well_however_seldom_it_is_asked() {
        let pulse = Pulse::default();
        let turning = pulse.clone();
        tokio::spawn(async move {
            loop {
                turning.beat();
                turning.asked().await;
            }
        });
        for pause in [1, 0, 1, 20, 3600, 20] {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            assert_eq!(pulse.check(), Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_hangs_is_found_after_a_minute() {
        let pulse = Pulse::default();
        pulse.beat();
        assert_eq!(pulse.check(), Ok(()));
        tokio::time::sleep(PATIENCE).await;
        assert_eq!(pulse.check(), Ok(()));
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(pulse.check(), Err("the loop has not turned for 80 s".to_owned()));
        pulse.beat();
        assert_eq!(pulse.check(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_has_not_begun_has_nothing_to_answer() {
        let pulse = Pulse::default();
        assert_eq!(pulse.check(), Ok(()));
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(pulse.check(), Ok(()));
    }
}
