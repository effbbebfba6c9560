//! The generated definitions on a real API server: verdicts, defaults, columns, both versions, and clusters that
//! already have objects.

#[path = "real_admission/corpus.rs"]
mod corpus;
#[path = "real_admission/definitions.rs"]
mod definitions;
#[path = "real_admission/judge.rs"]
mod judge;
#[path = "real_admission/loosen.rs"]
mod loosen;
#[path = "real_admission/stored.rs"]
mod stored;

use corpus::{
    every_object_of_the_corpus_gets_its_verdict_from_the_server,
    what_the_server_stores_has_the_defaults_that_validate_fills_in,
};
use definitions::{
    a_trip_through_the_old_version_loses_nothing,
    kubectl_applies_the_definitions_without_a_word_and_a_second_time_changes_nothing,
    kubectl_explains_every_kind_in_every_version, the_oldest_served_kubernetes_takes_the_definitions,
    the_server_prints_the_usual_columns,
};
use prewarm_testkit::real_tests;
use stored::objects_stored_under_looser_rules_keep_taking_other_writes;

real_tests! {
    every_object_of_the_corpus_gets_its_verdict_from_the_server,
    what_the_server_stores_has_the_defaults_that_validate_fills_in,
    kubectl_applies_the_definitions_without_a_word_and_a_second_time_changes_nothing,
    the_oldest_served_kubernetes_takes_the_definitions,
    kubectl_explains_every_kind_in_every_version,
    the_server_prints_the_usual_columns,
    a_trip_through_the_old_version_loses_nothing,
    objects_stored_under_looser_rules_keep_taking_other_writes,
}
