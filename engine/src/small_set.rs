//! Lists and sets that mostly hold one element, and of which there are as
//! many as files: no room to spare, no tree for a single leaf.

use std::collections::VecDeque;

/// Appends, and takes room for this element only where there is at most one.
pub(crate) fn push<T>(list: &mut Vec<T>, element: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(more(list.len()));
    }
    list.push(element);
}

/// The same of a list that is shortened at its front.
pub(crate) fn push_back<T>(list: &mut VecDeque<T>, element: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(more(list.len()));
    }
    list.push_back(element);
}

/// Room for how many more elements is taken where there are so many.
fn more(count: usize) -> usize {
    1 + count / 2
}

/// A small set, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallSet<T>(Vec<T>);

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Ord> SmallSet<T> {
    /// Takes an element in, unless it is there.
    pub fn insert(&mut self, element: T) {
        if let Err(place) = self.0.binary_search(&element) {
            self.0.reserve_exact(1);
            self.0.insert(place, element);
        }
    }

    /// Takes an element out, if it is there.
    pub fn remove(&mut self, element: &T) {
        if let Ok(place) = self.0.binary_search(element) {
            self.0.remove(place);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<T: Ord> FromIterator<T> for SmallSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut all = Self::default();
        for element in elements {
            all.insert(element);
        }
        all
    }
}

impl<T> IntoIterator for SmallSet<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a SmallSet<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
