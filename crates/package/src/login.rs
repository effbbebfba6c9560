//! Who pushes: named by variables, or logged in by `docker login` or `podman login` before.

use std::path::PathBuf;
use std::{env, fs};

use prewarm_api::reference::ImageRef;
use prewarm_credentials::docker_config::Layout;
use prewarm_credentials::{DockerConfig, Keyring};
use prewarm_image::push::Login;

use crate::place::Place;

/// Named by these, whoever it is comes first.
pub const USER: &str = "REGISTRY_USER";
pub const PASSWORD: &str = "REGISTRY_PASSWORD";

/// The login for a place, if there is any.
pub fn find(place: &Place) -> Option<Login> {
    if let (Ok(user), Ok(password)) = (env::var(USER), env::var(PASSWORD)) {
        return Some(Login { user, password });
    }
    files().iter().find_map(|file| of_config(&fs::read(file).ok()?, place))
}

/// Where such programs keep their logins.
fn files() -> Vec<PathBuf> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from);
    let docker = variable("DOCKER_CONFIG").or_else(|| Some(env::home_dir()?.join(".docker")));
    let podman = variable("XDG_RUNTIME_DIR").map(|directory| directory.join("containers/auth.json"));
    let named = variable("REGISTRY_AUTH_FILE");
    [named, docker.map(|directory| directory.join("config.json")), podman].into_iter().flatten().collect()
}

fn of_config(bytes: &[u8], place: &Place) -> Option<Login> {
    let mut keyring = Keyring::default();
    keyring.add(DockerConfig::decode(Layout::Json, bytes).ok()?);
    let image = ImageRef::parse(&place.to_string()).ok()?;
    let credential = keyring.matching(&image).into_iter().find(|found| !found.password.is_empty())?;
    Some(Login { user: credential.username, password: credential.password.reveal().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_of_docker_is_taken_for_its_registry_alone() {
        let config =
            br#"{"auths": {"registry.example": {"auth": "cm9ib3Q6aHVudGVyMg=="}}, "credsStore": "x"}"#;
        let login = |place: &str| of_config(config, &place.parse().unwrap());
        let found = login("registry.example/prewarm/prewarm:1").unwrap();
        assert_eq!((found.user.as_str(), found.password.as_str()), ("robot", "hunter2"));
        assert!(login("another.example/prewarm/prewarm:1").is_none());
        assert!(of_config(b"no config", &"registry.example/prewarm:1".parse().unwrap()).is_none());
    }
}
