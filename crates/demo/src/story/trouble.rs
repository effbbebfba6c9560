//! Why a story did not end as announced.

use std::fmt;

use crate::cluster::StartError;

/// Why a story did not end as announced.
#[derive(Debug)]
pub struct Trouble {
    scene: Option<&'static str>,
    text: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scene {
            Some(scene) => write!(formatter, "the scene {scene} did not end as announced: {}", self.text),
            None => formatter.write_str(&self.text),
        }
    }
}

impl std::error::Error for Trouble {}

impl Trouble {
    pub fn new(text: impl Into<String>) -> Self {
        Self { scene: None, text: text.into() }
    }

    pub(super) fn in_scene(self, scene: &'static str) -> Self {
        Self { scene: Some(scene), ..self }
    }
}

impl From<kube::Error> for Trouble {
    fn from(error: kube::Error) -> Self {
        Self::new(format!("the API answers: {error}"))
    }
}

impl From<StartError> for Trouble {
    fn from(error: StartError) -> Self {
        Self::new(error.to_string())
    }
}
