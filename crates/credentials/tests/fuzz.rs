//! The bodies of the fuzz targets, on their seed inputs and on what they found.

#[path = "../../../fuzz/bodies/docker_config.rs"]
mod docker_config;
#[path = "../../../fuzz/bodies/scrub.rs"]
mod scrub;

#[test]
fn the_body_for_docker_configs_holds() {
    for config in [
        r#"{"auths":{"https://index.docker.io/v1/":{"auth":"Zm9vOmJhcg=="},"docker.io":{"auth":"Zm9vOmJhcg=="}}}"#,
        r#"{"auths":{"reg.example:5000":{"auth":"hunter2hunter2"},"*.io/team":{"password":"hunter2hunter2"}}}"#,
        r#"{"reg.example:5000":{"identitytoken":"hunter2hunter2"},"ghcr.io":["hunter2hunter2"]}"#,
        r#"{"hunter2hunter2 is no host":{"auth":"Zm9vOmJhcg=="}}"#,
        "",
    ] {
        docker_config::check(config.as_bytes());
    }
}

#[test]
fn the_body_for_scrubbing_holds() {
    for text in [
        "hunter2\nfailed: \"hunter2\" %68unter2",
        "****\n***",
        "a***\naa***",
        "%25%\n%25%2525",
        "\\u0041\n\\\\u0041\\u0041",
        "\u{1}\u{10}\\a\n\\zz",
        "abab\nabababab",
        "pä✓s\n✓pä✓sä",
        "ab\n:ab",
        "",
    ] {
        scrub::check(text);
    }
}
