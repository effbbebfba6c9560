//! Whether a program's loop still runs, which a probe that is answered beside the loop would never find out.
//!
//! A probe asks the loop, and the loop answers on its next cycle. So an idle loop is woken by probes alone and needs no
//! timer of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a loop may take to answer. No cycle takes nearly as long, even in the largest cluster.
const PATIENCE: Duration = Duration::from_mins(1);

/// The pulse of one loop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Before its first cycle, a loop has nothing to answer.
    has_begun: AtomicBool,
    /// When the oldest unanswered question was asked.
    asked_at: Mutex<Option<Instant>>,
    question: Notify,
}

impl Pulse {
    /// For the loop: waits until somebody asks.
    pub async fn asked(&self) {
        self.0.question.notified().await;
    }

    /// For the loop: another cycle begins, for whatever reason.
    pub fn beat(&self) {
        self.0.has_begun.store(true, Ordering::Relaxed);
        *self.0.asked_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// For the probe: asks, and fails if the loop has not answered for a long time.
    pub fn check(&self) -> Result<(), String> {
        if !self.0.has_begun.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut asked_at = self.0.asked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = asked_at.get_or_insert_with(Instant::now).elapsed();
        self.0.question.notify_one();
        if waits > PATIENCE {
            return Err(format!("the loop has not run for {} s", waits.as_secs()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_running_loop_is_healthy_however_seldom_it_is_asked() {
        let pulse = Pulse::default();
        let running = pulse.clone();
        tokio::spawn(async move {
            loop {
                running.beat();
                running.asked().await;
            }
        });
        for pause in [1, 0, 1, 20, 3600, 20] {
            tokio::time::sleep(Duration::from_secs(pause)).await;
            assert_eq!(pulse.check(), Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_hangs_is_reported_after_a_minute() {
        let pulse = Pulse::default();
        pulse.beat();
        assert_eq!(pulse.check(), Ok(()));
        tokio::time::sleep(PATIENCE).await;
        assert_eq!(pulse.check(), Ok(()));
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(pulse.check(), Err("the loop has not run for 80 s".to_owned()));
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
