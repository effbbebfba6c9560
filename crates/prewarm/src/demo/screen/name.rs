//! Image names that are short enough to be read at a glance.

use prewarm_demo::cluster::REGISTRY;

/// Leaves the registry out if it is the demo's own.
pub fn short(image: &str) -> &str {
    image.strip_prefix(REGISTRY).and_then(|rest| rest.strip_prefix('/')).unwrap_or(image)
}

/// The last part of the name, for narrow places.
pub fn shortest(image: &str) -> &str {
    image.rsplit_once('/').map_or(image, |(_, last)| last)
}

/// Splits a reference into its name and its tag or digest.
pub fn tagged(image: &str, tag: &str) -> String {
    let separator = if tag.contains(':') { '@' } else { ':' };
    format!("{}{separator}{tag}", short(image))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_demos_own_registry_is_left_out() {
        assert_eq!(short("registry.demo/shop/web:1.0"), "shop/web:1.0");
        assert_eq!(short("registry.demolition/web"), "registry.demolition/web");
        assert_eq!(shortest("registry.demo/shop/web:1.0"), "web:1.0");
    }

    #[test]
    fn a_digest_is_not_written_as_a_tag() {
        assert_eq!(tagged("registry.demo/shop/web", "1.0"), "shop/web:1.0");
        assert_eq!(tagged("nginx", "sha256:abc"), "nginx@sha256:abc");
    }
}
