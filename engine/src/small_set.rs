//! Lists and sets that mostly hold one element, and of which there are as
//! many as files: no room to spare, no tree for a single leaf.

/// Appends, and takes room for this element only where there is at most one.
pub(crate) fn push<T>(list: &mut Vec<T>, element: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(more(list.len()));
    }
    list.push(element);
}

/// Room for how many more elements is taken where there are so many.
fn more(count: usize) -> usize {
    1 + count / 2
}

/// A small set, sorted. One element takes no room beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmallSet<T> {
    /// One element, or none.
    One(Option<T>),
    /// Several.
    Many(Vec<T>),
}

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self::One(None)
    }
}

impl<T: Ord> SmallSet<T> {
    /// Takes an element in, unless it is there.
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

    /// Takes an element out, if it is there.
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

    /// Has an equal element stand in the place of each for which there is one.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::One(None))
    }

    /// All, in order.
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

/// A list that is mostly empty, and then takes no more room than a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::box_collection)] // so that it is one word
pub struct Seldom<T>(Option<Box<Vec<T>>>);

impl<T> Default for Seldom<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Seldom<T> {
    /// All, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.as_deref().map_or(&[][..], Vec::as_slice).iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// Whether there is none.
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
