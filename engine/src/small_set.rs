//! Lists and sets that mostly have one element. There are as many of them as
//! files, so they take as little memory as possible.

use std::ops::Deref;

use smallvec::SmallVec;

/// Appends an element. Allocates memory for this element only, if the list has
/// at most one.
pub(crate) fn push<T>(list: &mut Vec<T>, element: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(more(list.len()));
    }
    list.push(element);
}

/// Returns the number of elements to allocate in addition if the list has
/// `count`.
fn more(count: usize) -> usize {
    1 + count / 2
}

/// A small sorted set. A single element needs no separate allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallSet<T>(SmallVec<[T; 1]>);

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T: Ord> SmallSet<T> {
    /// Adds an element, unless it is in the set.
    pub fn insert(&mut self, element: T) {
        if let Err(place) = self.0.binary_search(&element) {
            self.0.reserve_exact(1);
            self.0.insert(place, element);
        }
    }

    /// Removes an element, if it is in the set.
    pub fn remove(&mut self, element: &T) {
        self.0.retain(|other| other != element);
        self.0.shrink_to_fit();
    }
}

impl<T> Deref for SmallSet<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Ord> FromIterator<T> for SmallSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut all = Self::default();
        elements.into_iter().for_each(|element| all.insert(element));
        all
    }
}

impl<T> IntoIterator for SmallSet<T> {
    type Item = T;
    type IntoIter = smallvec::IntoIter<[T; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A list that is mostly empty. An empty one is as large as a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::box_collection)] // a boxed list is as large as one pointer
pub struct Seldom<T>(Option<Box<Vec<T>>>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Seldom<T> {
    /// Iterates over the elements, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.as_deref().map_or(&[][..], Vec::as_slice).iter()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn push(&mut self, element: T) {
        push(self.0.get_or_insert_default(), element);
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        if let Some(list) = &mut self.0 {
            list.retain(keep);
            if list.is_empty() {
                self.0 = None;
            }
        }
    }
}

impl<T> FromIterator<T> for Seldom<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let list: Vec<T> = elements.into_iter().collect();
        Self((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T> IntoIterator for Seldom<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map_or_else(Vec::new, |list| *list).into_iter()
    }
}
