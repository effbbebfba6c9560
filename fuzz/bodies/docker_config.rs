//! What holds for every docker config that anyone puts into a Secret. The fuzz target and the tests share it.

use prewarm_api::reference::ImageRef;
use prewarm_credentials::Keyring;
use prewarm_credentials::keyring::MAX_CANDIDATES;

/// No problem is told in more words than fit into a status.
const MAX_PROBLEM_BYTES: usize = 2048;
/// A text that stands for a secret: it may appear in a config, but never in a sentence about it.
const SECRET: &str = "hunter2hunter2";

/// Reads the bytes as both types of Secrets, and asks for images of the registries that tests use.
pub fn check(bytes: &[u8]) {
    for secret_type in ["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"] {
        let mut keyring = Keyring::default();
        let problems = keyring.add_secret("pull", secret_type, |_| Some(bytes));
        for problem in &problems {
            assert!(problem.starts_with("secret pull "), "{problem}");
            assert!(problem.len() <= MAX_PROBLEM_BYTES, "{problem}");
            assert!(!problem.contains(SECRET) || is_in_a_key(bytes), "{problem}");
        }
        for image in ["nginx", "reg.example:5000/team/app", "ghcr.io/team/app"] {
            check_image(&keyring, &image.parse().expect("the images are references"));
        }
    }
}

fn check_image(keyring: &Keyring, image: &ImageRef) {
    let found = keyring.matching(image);
    assert!(found.len() <= MAX_CANDIDATES);
    for (place, credential) in found.iter().enumerate() {
        assert_eq!(credential.server_address, image.registry());
        assert!(!credential.is_empty());
        assert!(!found[..place].contains(credential), "offered twice");
    }
}

/// Whether the text that stands for a secret was put where a registry's name belongs.
fn is_in_a_key(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.match_indices(SECRET).any(|(place, _)| {
        let rest = &text[place..];
        rest.find('"').is_some_and(|quote| rest[quote + 1..].trim_start().starts_with(':'))
    })
}
