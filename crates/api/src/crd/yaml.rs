//! Writes a definition as YAML.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The definition as the YAML of its file, with sorted keys: the same types always give the same bytes.
pub fn to_yaml(crd: &CustomResourceDefinition) -> String {
    let mut value = serde_json::to_value(crd).expect("a definition is JSON");
    whole_numbers(&mut value);
    serde_saphyr::to_string(&value).expect("JSON is YAML")
}

/// Writes `minimum: 0` instead of `0.0`: the client's types hold every bound as a float, but the server returns whole
/// numbers as such.
fn whole_numbers(value: &mut Value) {
    /// Above this, a float cannot distinguish neighbouring whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT) {
                #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}
