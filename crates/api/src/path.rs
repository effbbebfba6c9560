//! The path to a value in an object, as errors, the corpus and `prewarm lint` use it.

use std::fmt;

/// One step down from an object or list to something inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A field of an object, or a key of a map.
    Field(String),
    /// A place in a list, counted from zero.
    Index(usize),
}

/// The path from the root of an object to one of its values, such as `spec.images[3]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// The object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// The steps from the root on.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The path of a field or map key of the value at this path.
    #[must_use]
    pub fn field(&self, name: impl Into<String>) -> Self {
        self.then(Step::Field(name.into()))
    }

    /// The path of a list item of the value at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// The path that a dotted path such as `template.spec` leads to from here. An empty one leads to this path itself.
    #[must_use]
    pub fn below(&self, dotted: &str) -> Self {
        dotted.split('.').filter(|name| !name.is_empty()).fold(self.clone(), |path, name| path.field(name))
    }

    /// The path of the value that contains this one. The root contains itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        let mut steps = self.0.clone();
        steps.pop();
        Self(steps)
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(step);
        Self(steps)
    }
}

/// A path under construction while an object is walked. It costs nothing until the path is needed, which is rare.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trail<'a> {
    Root,
    Field(&'a Trail<'a>, &'a str),
    Index(&'a Trail<'a>, usize),
}

impl Trail<'_> {
    /// The path so far.
    pub(crate) fn path(&self) -> FieldPath {
        match self {
            Self::Root => FieldPath::root(),
            Self::Field(holder, name) => holder.path().field(*name),
            Self::Index(holder, index) => holder.path().index(*index),
        }
    }

    /// Whether this is the root.
    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                // A key with dots or brackets could be mistaken for several steps.
                Step::Field(name) if name.is_empty() || name.contains(['.', '[', ']', '/', ':']) => {
                    write!(f, "[{name}]")?;
                }
                Step::Field(name) if position == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_printed_as_by_the_server() {
        let path = FieldPath::root().field("spec").field("images").index(3);
        assert_eq!(path.to_string(), "spec.images[3]");
    }

    #[test]
    fn a_map_key_with_dots_is_in_brackets() {
        let path = FieldPath::root().below("spec.images").field("reg.example:5000/a").field("tags").index(0);
        assert_eq!(path.to_string(), "spec.images[reg.example:5000/a].tags[0]");
    }
}
