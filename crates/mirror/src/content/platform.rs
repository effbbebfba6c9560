//! Platforms, and which ones containerd accepts on a node, in the order of its `platforms` package.

use std::fmt;

use serde::Deserialize;

use super::ContentError;

/// The oldest variant of 32-bit ARM that containerd tries.
const OLDEST_ARM: u32 = 5;

/// An operating system and a processor, normalised as containerd does it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "Raw")]
pub struct Platform {
    pub os: String,
    pub architecture: String,
    /// Empty for the usual one: v8 of arm64, v1 of amd64.
    pub variant: String,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: String,
}

impl From<Raw> for Platform {
    fn from(raw: Raw) -> Self {
        Self::new(&raw.os, &raw.architecture, &raw.variant)
    }
}

impl Platform {
    /// A platform of these words.
    pub fn new(os: &str, architecture: &str, variant: &str) -> Self {
        let (architecture, variant) = normalised(&architecture.to_lowercase(), &variant.to_lowercase());
        let os = if os.is_empty() { "linux".to_owned() } else { os.to_lowercase() };
        Self { os, architecture, variant }
    }

    /// The platform that this program was built for, which is the node's.
    pub fn native() -> Self {
        Self::new("linux", std::env::consts::ARCH, "")
    }

    /// The platform in an image's config.
    pub fn of_config(config: &[u8]) -> Result<Self, ContentError> {
        serde_json::from_slice(config).map_err(|e| ContentError::Unreadable(e.to_string()))
    }

    /// An error if a node of this platform does not run images for the other one.
    pub fn accept(&self, image: &Self) -> Result<(), ContentError> {
        match self.rank(image) {
            Some(_) => Ok(()),
            None => Err(ContentError::OtherPlatform {
                is: Box::new(image.clone()),
                wanted: Box::new(self.clone()),
            }),
        }
    }

    /// How well an image for `other` fits a node of this platform: 0 is best, none is not at all.
    pub fn rank(&self, other: &Self) -> Option<usize> {
        self.accepted().iter().position(|accepted| accepted == other)
    }

    /// What containerd accepts, the best first.
    fn accepted(&self) -> Vec<Self> {
        let of = |architecture: &str, variant: &str| Self::new(&self.os, architecture, variant);
        let mut accepted = vec![self.clone()];
        let number = self.variant.trim_start_matches('v').parse::<u32>().ok();
        match self.architecture.as_str() {
            "amd64" => {
                let lower = (1..number.unwrap_or(1)).rev();
                accepted.extend(lower.map(|number| of("amd64", &format!("v{number}"))));
                accepted.push(of("386", ""));
            }
            "arm" => accepted.extend(arm(number.unwrap_or(0)).map(|number| of("arm", &format!("v{number}")))),
            "arm64" => {
                let highest = number.unwrap_or(8);
                accepted.push(of("arm", &format!("v{highest}")));
                accepted.extend(arm(highest).map(|number| of("arm", &format!("v{number}"))));
            }
            _ => {}
        }
        accepted
    }
}

/// The variants of 32-bit ARM below this one, the highest first.
fn arm(number: u32) -> impl Iterator<Item = u32> {
    (OLDEST_ARM..number).rev()
}

fn normalised(architecture: &str, variant: &str) -> (String, String) {
    let (architecture, variant) = match (architecture, variant) {
        ("i386" | "x86" | "386", _) => ("386", ""),
        ("x86_64" | "x86-64" | "amd64", "v1" | "1") => ("amd64", ""),
        ("x86_64" | "x86-64", variant) => ("amd64", variant),
        ("aarch64" | "arm64", "8" | "v8") => ("arm64", ""),
        ("aarch64", variant) => ("arm64", variant),
        ("armhf", _) | ("arm", "" | "7") => ("arm", "v7"),
        ("armel", _) | ("arm", "6") => ("arm", "v6"),
        ("arm", "5") => ("arm", "v5"),
        ("arm", "8") => ("arm", "v8"),
        other => other,
    };
    (architecture.to_owned(), variant.to_owned())
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = prewarm_api::text::cut(&format!("{}/{}", self.os, self.architecture), 60);
        f.write_str(&prewarm_api::text::plain(&words))?;
        if self.variant.is_empty() {
            return Ok(());
        }
        write!(f, "/{}", prewarm_api::text::plain(&prewarm_api::text::cut(&self.variant, 20)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Platform {
        let mut words = text.split('/').chain(["", ""]);
        let mut word = || words.next().unwrap();
        Platform::new(word(), word(), word())
    }

    #[test]
    fn a_node_accepts_what_containerd_accepts_in_its_order() {
        let table = [
            ("linux/amd64", "linux/amd64 linux/386"),
            ("linux/amd64/v3", "linux/amd64/v3 linux/amd64/v2 linux/amd64 linux/386"),
            ("linux/arm64", "linux/arm64 linux/arm/v8 linux/arm/v7 linux/arm/v6 linux/arm/v5"),
            ("linux/aarch64/v8", "linux/arm64 linux/arm/v8 linux/arm/v7 linux/arm/v6 linux/arm/v5"),
            ("linux/arm/v6", "linux/arm/v6 linux/arm/v5"),
            ("linux/s390x", "linux/s390x"),
        ];
        for (node, accepted) in table {
            let words: Vec<String> = read(node).accepted().iter().map(ToString::to_string).collect();
            assert_eq!(words.join(" "), accepted, "{node}");
        }
    }

    #[test]
    fn names_of_the_same_processor_are_one() {
        assert_eq!(read("Linux/x86_64"), read("linux/amd64/v1"));
        assert_eq!(read("linux/aarch64"), read("linux/arm64/v8"));
        assert_eq!(read("linux/armhf"), read("linux/arm"));
        assert_eq!(read("linux/amd64").rank(&read("windows/amd64")), None);
        assert_eq!(read("linux/amd64").rank(&read("unknown/unknown")), None);
    }

    #[test]
    fn an_image_for_another_processor_is_refused_by_its_config() {
        let config = br#"{"architecture":"arm64","os":"linux","rootfs":{}}"#;
        let error = read("linux/amd64").accept(&Platform::of_config(config).unwrap()).unwrap_err();
        assert!(error.to_string().contains("linux/arm64") && error.to_string().contains("linux/amd64"));
    }
}
