//! What a Secret holds, without holding it: enough to tell a changed one from an unchanged one.

use k8s_openapi::api::core::v1::Secret;
use prewarm_credentials::source::fingerprint;
use prewarm_plan::cluster::secret::Content;

/// The type and a fingerprint of the data. The fingerprint means something only within this process.
pub fn of(secret: &Secret) -> Content {
    let data: Vec<(&String, &Vec<u8>)> =
        secret.data.iter().flatten().map(|(key, value)| (key, &value.0)).collect();
    Content { type_: secret.type_.clone().unwrap_or_default(), fingerprint: fingerprint(data) }
}
