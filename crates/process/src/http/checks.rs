//! Named checks: everything is well while none of them fails (kruise D50).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Says nothing if all is well, or else why not.
type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;
/// Says what kind of well it is, if there are several.
type Remark = Arc<dyn Fn() -> String + Send + Sync>;

/// Checks by name. Clones share them.
#[derive(Clone, Default)]
pub struct Checks {
    named: Arc<RwLock<BTreeMap<&'static str, Check>>>,
    remark: Option<Remark>,
}

impl Checks {
    /// Asks this check from here on, instead of an earlier one of that name. It must answer at once.
    pub fn register(
        &self,
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.named.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(check));
    }

    /// While all is well, says this about it.
    #[must_use]
    pub fn with_remark(mut self, remark: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.remark = Some(Arc::new(remark));
        self
    }

    /// What is said while all is well, if anything.
    pub fn remark(&self) -> Option<String> {
        self.remark.as_ref().map(|remark| remark())
    }

    /// Asks the check of that name no more.
    pub fn unregister(&self, name: &str) {
        self.named.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// The checks that fail, in the order of their names, each with its reason.
    pub fn failing(&self) -> Vec<(&'static str, String)> {
        // Asked outside the lock, so that a check may register another.
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
    fn without_checks_all_is_well() {
        assert_eq!(Checks::default().failing(), []);
    }

    #[test]
    fn the_failing_ones_of_several_are_named() {
        let checks = Checks::default();
        checks.register("watch", fails("not synced"));
        checks.register("loop", || Ok(()));
        checks.register("disk", fails("gone"));
        assert_eq!(checks.failing(), [("disk", "gone".to_owned()), ("watch", "not synced".to_owned())]);
    }

    #[test]
    fn a_check_is_replaced_by_its_name_and_can_be_taken_away() {
        let checks = Checks::default();
        checks.register("watch", fails("not synced"));
        checks.clone().register("watch", fails("lost"));
        assert_eq!(checks.failing(), [("watch", "lost".to_owned())]);
        checks.unregister("watch");
        checks.unregister("never there");
        assert_eq!(checks.failing(), []);
    }
}
