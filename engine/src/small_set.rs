//! Lists and sets that mostly have one element. There are as many of them as
//! files, so they take as little memory as possible.

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
pub enum SmallSet<T> {
    /// One element, or none.
    One(Option<T>),
    /// Several elements.
    Many(Vec<T>),
}

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self::One(None)
    }
}

impl<T: Ord> SmallSet<T> {
    /// Adds an element, unless it is in the set.
    pub fn insert(&mut self, element: T) {
        match self {
            Self::One(one) => match one.take() {
                Some(other) if other != element => {
                    let mut both = vec![other, element];
                    both.sort_unstable();
                    *self = Self::Many(both);
                }
                _ => *one = Some(element),
            },
            Self::Many(many) => {
                if let Err(place) = many.binary_search(&element) {
                    many.reserve_exact(1);
                    many.insert(place, element);
                }
            }
        }
    }

    /// Removes an element, if it is in the set.
    pub fn remove(&mut self, element: &T) {
        match self {
            Self::One(one) => drop(one.take_if(|one| one == element)),
            Self::Many(many) => {
                many.retain(|other| other != element);
                if many.len() < 2 {
                    *self = Self::One(many.pop());
                }
            }
        }
    }

    /// Replaces each element for which `equal` returns an equal one.
    pub(crate) fn replace_all(&mut self, equal: impl Fn(&T) -> Option<T>) {
        let all = match self {
            Self::One(one) => one.as_mut_slice(),
            Self::Many(many) => many,
        };
        for element in all {
            if let Some(equal) = equal(element) {
                *element = equal;
            }
        }
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::One(None))
    }

    /// Iterates over the elements, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        match self {
            Self::One(one) => one.as_slice().iter(),
            Self::Many(many) => many.iter(),
        }
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
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            Self::One(one) => (one, Vec::new()),
            Self::Many(many) => (None, many),
        };
        one.into_iter().chain(many)
    }
}

impl<'a, T: Ord> IntoIterator for &'a SmallSet<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
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
