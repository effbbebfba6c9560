//! Where the bytes of an image come from. A task says what is allowed, the plan chooses for each attempt, and the agent's
//! worker carries the choice out.

/// Where a task's image may come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// From the image's registry.
    #[default]
    Registry,
}

/// Where one attempt gets the image from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The runtime asks the image's registry, by the mirrors that it is configured with.
    Registry,
}

/// Chooses where the next attempt of a task gets its image from.
pub const fn choose(allowed: Allowed) -> Source {
    match allowed {
        Allowed::Registry => Source::Registry,
    }
}
