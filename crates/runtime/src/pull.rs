//! Pulls one image.

use std::collections::BTreeMap;

use prewarm_api::names::{PULLING_BY, PULLING_BY_ANNOTATION};
use prewarm_api::reference::ImageRef;
use prewarm_credentials::Credential;

use crate::error::CallError;
use crate::proto::cri::{AuthConfig, ImageSpec, PodSandboxConfig, PodSandboxMetadata, PullImageRequest};
use crate::runtime::Runtime;

/// The pod that pulls claim to be for. CRI-O lets two callers share one download only if they name the same namespace,
/// so it is the same for all pulls.
const SANDBOX_NAMESPACE: &str = "prewarm";
const SANDBOX_NAME: &str = "prewarm";

/// What to pull, and how.
#[derive(Clone, Debug)]
pub struct PullRequest {
    /// The image to pull.
    pub reference: ImageRef,
    /// The credential for the registry. Without one the pull is anonymous.
    pub credential: Option<Credential>,
    /// The labels of the sandbox that the pull claims to be for.
    pub labels: BTreeMap<String, String>,
    /// The annotations of that sandbox. The one that says who pulls is added.
    pub annotations: BTreeMap<String, String>,
}

impl Runtime {
    /// Pulls an image and unpacks it. Dropping the future cancels the pull and discards what was downloaded so far.
    pub async fn pull(&self, request: &PullRequest) -> Result<(), CallError> {
        let _under_way = self.pulls.begin(&request.reference);
        let pulled = self.images_client().pull_image(message(request)).await;
        pulled.map(drop).map_err(|status| CallError::of_pull(&status, request.credential.as_slice()))
    }
}

fn message(request: &PullRequest) -> PullImageRequest {
    let mut annotations = request.annotations.clone();
    annotations.insert(PULLING_BY_ANNOTATION.into(), PULLING_BY.into());
    let metadata = PodSandboxMetadata {
        name: SANDBOX_NAME.into(),
        namespace: SANDBOX_NAMESPACE.into(),
        ..PodSandboxMetadata::default()
    };
    PullImageRequest {
        image: Some(ImageSpec { image: request.reference.full(), ..ImageSpec::default() }),
        auth: request.credential.as_ref().map(auth),
        sandbox_config: Some(PodSandboxConfig {
            metadata: Some(metadata),
            labels: request.labels.clone(),
            annotations,
        }),
    }
}

/// The server's address is included, because the runtime then withholds the credential from any other host, such as a
/// mirror.
fn auth(credential: &Credential) -> AuthConfig {
    AuthConfig {
        username: credential.username.clone(),
        password: credential.password.reveal().to_owned(),
        server_address: server_url(&credential.server_address),
        identity_token: credential.identity_token.reveal().to_owned(),
        registry_token: credential.registry_token.reveal().to_owned(),
    }
}

/// The host as an address. containerd compares the host in the address with the one that it asks; in a bare name it
/// finds no host, and with a port it fails. The public registry has another name than its images.
fn server_url(host: &str) -> String {
    match host {
        "" => String::new(),
        "docker.io" | "index.docker.io" => "https://registry-1.docker.io".into(),
        host if host.contains("://") => host.into(),
        host => format!("https://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use prewarm_credentials::SecretText;

    use super::*;

    #[test]
    fn a_printed_message_shows_no_credential() {
        let credential = Credential {
            username: "robot".into(),
            password: SecretText::new("hunter2".into()),
            server_address: "reg.example".into(),
            ..Credential::default()
        };
        let reference = ImageRef::parse("reg.example/a:1").unwrap();
        let request = PullRequest {
            reference,
            credential: Some(credential),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        };
        let printed = format!("{:?} {request:?}", message(&request));
        assert!(
            printed.contains("reg.example") && !printed.contains("hunter2") && !printed.contains("robot")
        );
    }

    #[test]
    fn a_credential_is_bound_to_the_address_that_the_runtime_contacts() {
        for (host, address) in [
            ("reg.example", "https://reg.example"),
            ("reg.example:5000", "https://reg.example:5000"),
            ("http://reg.example", "http://reg.example"),
            ("docker.io", "https://registry-1.docker.io"),
            ("", ""),
        ] {
            assert_eq!(server_url(host), address);
        }
    }
}
