//! Named checks: a process is well while none of them fails (kruise D50).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Succeeds, or says what is wrong.
type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
/// A word about a process that is well, such as whether it leads.
type Remark = Arc<dyn Fn() -> String + Send + Sync>;

/// Checks by name. Clones share them.
#[derive(Clone, Default)]
pub struct Checks {
    named: Arc<RwLock<BTreeMap<&'static str, Check>>>,
    remark: Option<Remark>,
}

impl Checks {
    /// Adds a check, or replaces an earlier one with the same name. It must return at once.
    pub fn register(
        &self,
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.named.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(check));
    }

    /// Adds this remark to the answer while no check fails.
    #[must_use]
    pub fn with_remark(mut self, remark: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.remark = Some(Arc::new(remark));
        self
    }

    /// The remark for an answer while no check fails, if there is one.
    pub fn remark(&self) -> Option<String> {
        self.remark.as_ref().map(|remark| remark()).filter(|remark| !remark.is_empty())
    }

    /// Removes the check with that name, if there is one.
    pub fn unregister(&self, name: &str) {
        self.named.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// The failing checks with their reasons, sorted by name.
    pub fn failing(&self) -> Vec<(&'static str, String)> {
        // The lock is released first, so that a check may register another.
        let named = self.named.read().unwrap_or_else(PoisonError::into_inner).clone();
        named.into_iter().filter_map(|(name, check)| check().err().map(|reason| (name, reason))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(reason: &'static str) -> impl Fn() -> Result<(), String> {
        move || Err(reason.to_owned())
    }

    #[test]
    fn without_checks_nothing_fails() {
        assert_eq!(Checks::default().failing(), []);
    }

    #[test]
    fn failing_checks_are_named_and_others_are_not() {
        let checks = Checks::default();
        checks.register("watch", fails("not synced"));
        checks.register("loop", || Ok(()));
        checks.register("disk", fails("gone"));
        assert_eq!(checks.failing(), [("disk", "gone".to_owned()), ("watch", "not synced".to_owned())]);
    }

    #[test]
    fn a_check_is_replaced_by_name_and_can_be_removed() {
        let checks = Checks::default();
        checks.register("watch", fails("not synced"));
        checks.clone().register("watch", fails("lost"));
        assert_eq!(checks.failing(), [("watch", "lost".to_owned())]);
        checks.unregister("watch");
        checks.unregister("never there");
        assert_eq!(checks.failing(), []);
    }
}
