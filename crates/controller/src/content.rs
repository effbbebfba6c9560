//! What a Secret holds, without holding it: enough to tell a changed one from an unchanged one.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use prewarm_credentials::docker_config::DecodeError;
use prewarm_credentials::excerpt::{excerpt, wipe};
use prewarm_credentials::source::fingerprint;
use prewarm_plan::cluster::secret::Content;

/// A Secret whose data is overwritten when it is dropped.
pub struct Held(pub Secret);

impl Drop for Held {
    fn drop(&mut self) {
        let values = self.0.data.iter_mut().flat_map(BTreeMap::values_mut);
        values.for_each(|ByteString(bytes)| wipe(bytes));
    }
}

/// The type and a fingerprint of the data. The fingerprint means something only within this process.
pub fn of(Held(secret): &Held) -> Content {
    let data: Vec<(&String, &Vec<u8>)> =
        secret.data.iter().flatten().map(|(key, value)| (key, &value.0)).collect();
    Content { type_: secret.type_.clone().unwrap_or_default(), fingerprint: fingerprint(data) }
}

/// The part of a Secret that agents need for images of these registries: its type, and under its one key the entries for
/// them. It has no metadata.
pub fn part(Held(secret): &Held, registries: &BTreeSet<String>) -> Result<Held, DecodeError> {
    let data = |key: &'static str| Some(secret.data.as_ref()?.get(key)?.0.as_slice());
    let (layout, mut bytes) = excerpt(secret.type_.as_deref().unwrap_or_default(), data, registries)?;
    // The buffer goes as it is: what is left behind is empty.
    let bytes = ByteString(std::mem::take(&mut *bytes));
    Ok(Held(Secret {
        type_: Some(layout.secret_type().to_owned()),
        data: Some([(layout.data_key().to_owned(), bytes)].into()),
        ..Secret::default()
    }))
}
