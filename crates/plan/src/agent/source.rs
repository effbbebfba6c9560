//! Where the bytes of an image come from. A task says what is allowed, the plan chooses for each attempt, and the agent's
//! worker carries the choice out.

/// Where a task's image may come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// From the image's registry.
    #[default]
    Registry,
    /// From the node's mirrors, and never from the registry itself (ofen A11).
    Mirrors {
        /// What the tag has to stand for; whatever the mirrors say if nothing.
        digest: Option<String>,
    },
}

/// Where one attempt gets the image from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The runtime asks the image's registry, by the mirrors that it is configured with.
    Registry,
    /// The agent asks the node's mirrors.
    Mirrors {
        /// What the tag has to stand for; whatever the mirrors say if nothing.
        digest: Option<String>,
    },
}

impl Allowed {
    /// Whether an image that stands for this digest under the task's name is what is asked for. One of which no digest is known is
    /// not, if there has to be a certain one: bringing it again costs little, because its content is there.
    pub fn is_met_by(&self, digest: Option<&str>) -> bool {
        match self {
            Self::Registry | Self::Mirrors { digest: None } => true,
            Self::Mirrors { digest: Some(wanted) } => digest == Some(wanted),
        }
    }
}

/// Chooses where the next attempt of a task gets its image from.
pub fn choose(allowed: &Allowed) -> Source {
    match allowed {
        Allowed::Registry => Source::Registry,
        Allowed::Mirrors { digest } => Source::Mirrors { digest: digest.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_certain_digest_rejects_what_the_node_has() {
        let certain = Allowed::Mirrors { digest: Some("sha256:1".into()) };
        assert!(certain.is_met_by(Some("sha256:1")));
        assert!(!certain.is_met_by(Some("sha256:2")) && !certain.is_met_by(None));
        for any in [Allowed::Registry, Allowed::Mirrors { digest: None }] {
            assert!(any.is_met_by(Some("sha256:2")) && any.is_met_by(None));
        }
    }
}
