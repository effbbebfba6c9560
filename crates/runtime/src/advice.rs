//! What a person can do about each class of failure.

use prewarm_api::kruise::FailureClass;
use prewarm_api::reference::ImageRef;

/// One sentence for a message: what to do next.
pub fn advice(class: FailureClass, reference: &ImageRef) -> String {
    let registry = reference.registry();
    match class {
        FailureClass::NotFound => {
            let version = if reference.is_digest() { "digest" } else { "tag" };
            format!("check that {} and its {version} exist in {registry}", reference.name())
        }
        FailureClass::NoPlatform => {
            format!("publish {reference} for this node's platform, or choose other nodes")
        }
        FailureClass::InvalidReference => format!("correct the image reference {reference}"),
        FailureClass::Unauthorized => {
            format!("give a pull secret that {registry} accepts for {}", reference.repository())
        }
        FailureClass::RateLimited => {
            format!("wait, lower the parallelism, or give a pull secret with a higher limit at {registry}")
        }
        FailureClass::Unreachable => format!("check that {registry} runs and can be reached from this node"),
        FailureClass::Tls => format!("check the certificate of {registry} and that this node trusts it"),
        FailureClass::NoSpace => "free space on the node's image filesystem, or choose other nodes".into(),
        FailureClass::TimedOut => {
            format!("raise pullPolicy.timeoutSeconds, or check how fast {registry} is from this node")
        }
        FailureClass::Corrupt => {
            format!("push {reference} again, and check proxies and mirrors between this node and {registry}")
        }
        FailureClass::RuntimeCrash => {
            format!("see why the node's container runtime stops when it pulls {reference}, in its log")
        }
        FailureClass::Unknown => "see the log of the node's container runtime".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_advice_of_its_own() {
        let reference = ImageRef::parse("reg.example:5000/shop/web:v1").unwrap();
        let mut sentences: Vec<String> =
            FailureClass::ALL.iter().map(|class| advice(*class, &reference)).collect();
        sentences.sort();
        sentences.dedup();
        assert_eq!(sentences.len(), FailureClass::ALL.len());
    }

    #[test]
    fn advice_names_the_registry_that_was_asked() {
        let reference = ImageRef::parse("nginx").unwrap();
        let sentence = advice(FailureClass::Unauthorized, &reference);
        assert_eq!(sentence, "give a pull secret that docker.io accepts for library/nginx");
    }
}
