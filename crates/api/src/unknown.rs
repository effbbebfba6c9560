//! Fields that a newer version wrote. This one cannot read them, and writes them back as they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The fields of an object that this version does not know, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unknown(BTreeMap<String, Value>);
