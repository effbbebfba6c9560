//! The objects of a resource at one revision, in order. Nothing is copied: an earlier state is the current one with a
//! few objects laid over it.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;
use std::vec::IntoIter;

use super::{Key, Stored};

/// The objects that differ from the current ones: their earlier state, or none if they did not exist.
pub(super) type Overlay<'a> = BTreeMap<&'a Key, Option<&'a Arc<Stored>>>;

/// The objects of a resource at one revision.
#[derive(Debug)]
pub struct View<'a> {
    present: &'a BTreeMap<Key, Arc<Stored>>,
    overlay: Overlay<'a>,
}

impl<'a> View<'a> {
    pub(super) fn new(present: &'a BTreeMap<Key, Arc<Stored>>, overlay: Overlay<'a>) -> Self {
        Self { present, overlay }
    }

    /// The objects after `after` and in `namespace`, each if given. The cost depends on what is yielded, not on how
    /// many objects there are.
    pub fn objects(
        &self,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        let first = Key { namespace: namespace.unwrap_or_default().to_owned(), name: String::new() };
        let start = match after {
            Some(after) if namespace.is_none() || *after > first => Bound::Excluded(after),
            _ if namespace.is_some() => Bound::Included(&first),
            _ => Bound::Unbounded,
        };
        let merged = Merged {
            present: self.present.range::<Key, _>((start, Bound::Unbounded)).peekable(),
            overlay: self
                .overlay
                .range::<Key, _>((start, Bound::Unbounded))
                .map(|(key, object)| (*key, *object))
                .collect::<Vec<LaidOver<'_>>>()
                .into_iter()
                .peekable(),
        };
        merged.take_while(move |object| namespace.is_none_or(|namespace| object.key.namespace == namespace))
    }
}

type LaidOver<'a> = (&'a Key, Option<&'a Arc<Stored>>);

/// Both in one order. If both have a key, the overlay counts.
struct Merged<'a> {
    present: Peekable<Range<'a, Key, Arc<Stored>>>,
    overlay: Peekable<IntoIter<LaidOver<'a>>>,
}

impl<'a> Iterator for Merged<'a> {
    type Item = &'a Arc<Stored>;

    fn next(&mut self) -> Option<&'a Arc<Stored>> {
        loop {
            let Some((laid_over, _)) = self.overlay.peek() else {
                return self.present.next().map(|(_, object)| object);
            };
            match self.present.peek() {
                Some((key, _)) if key < laid_over => return self.present.next().map(|(_, object)| object),
                Some((key, _)) if key == laid_over => drop(self.present.next()),
                _ => {}
            }
            if let Some((_, Some(object))) = self.overlay.next() {
                return Some(object);
            }
        }
    }
}
