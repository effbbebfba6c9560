//! Where an image is pushed to.

use std::fmt;
use std::str::FromStr;

/// `HOST/REPOSITORY:TAG`, with everything in it: a place to write to is never guessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub name: String,
    pub tag: String,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("{text:?} is no HOST/REPOSITORY:TAG, such as registry.example/prewarm/prewarm:0.1.0");
        let (host, rest) = text.split_once('/').ok_or_else(wanted)?;
        let (name, tag) = rest.rsplit_once(':').ok_or_else(wanted)?;
        if [host, name, tag].iter().any(|part| part.is_empty()) || tag.contains('/') {
            return Err(wanted());
        }
        Ok(Self { host: host.to_owned(), name: name.to_owned(), tag: tag.to_owned() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}:{}", self.host, self.name, self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_host_a_repository_and_a_tag() {
        let place: Place = "127.0.0.1:5000/tools/prewarm:0.1.0".parse().unwrap();
        let parts = (place.host.as_str(), place.name.as_str(), place.tag.as_str());
        assert_eq!(parts, ("127.0.0.1:5000", "tools/prewarm", "0.1.0"));
        for text in
            ["prewarm", "registry.example/prewarm", "registry.example:5000/prewarm", "/a:b", "a/:b", "a/b:"]
        {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains("HOST/REPOSITORY:TAG"), "{error}");
        }
    }
}
