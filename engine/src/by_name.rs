//! A map in the order of names, for as many entries as there are files. It
//! consists of sorted lists of some dozen entries, since the nodes of a tree
//! are half empty. Callers mostly look up one name and then the next, so the
//! place of the last one is remembered.

use std::sync::atomic::{AtomicUsize, Ordering};

use touchmark_proto::RelPath;

/// The maximum number of entries of a list. A list that would become longer is
/// split.
const FULL: usize = 64;

/// A map from paths to values, in the order of the paths.
#[derive(Debug)]
pub struct ByName<V> {
    /// Sorted lists of entries. No list is empty.
    lists: Vec<Vec<(RelPath, V)>>,
    len: usize,
    last: Last,
}

/// Where a path was last found. It only saves comparisons, so it may be wrong.
#[derive(Debug, Default)]
struct Last {
    list: AtomicUsize,
    at: AtomicUsize,
}

impl<V> Default for ByName<V> {
    fn default() -> Self {
        Self {
            lists: Vec::new(),
            len: 0,
            last: Last::default(),
        }
    }
}

impl<V: Clone> Clone for ByName<V> {
    fn clone(&self) -> Self {
        Self {
            lists: self.lists.clone(),
            len: self.len,
            last: Last::default(),
        }
    }
}

impl<V> ByName<V> {
    /// Returns the index of the list and the place in it where a path is, or
    /// where it has to be inserted.
    fn place(&self, path: &RelPath) -> (usize, Result<usize, usize>) {
        if let Some((list, at)) = self.near_last(path) {
            return (list, Ok(at));
        }
        let place = self.search(path);
        if let (list, Ok(at)) = place {
            self.remember(list, at);
        }
        place
    }

    /// Returns the place of a path if it is the last one found or the one after
    /// it.
    fn near_last(&self, path: &RelPath) -> Option<(usize, usize)> {
        let list = self.last.list.load(Ordering::Relaxed);
        let at = self.last.at.load(Ordering::Relaxed);
        let is_at = |list: usize, at: usize| {
            let known = self.lists.get(list).and_then(|list| list.get(at));
            known.is_some_and(|(known, _)| known == path)
        };
        let next = match self.lists.get(list)?.len() > at + 1 {
            true => (list, at + 1),
            false => (list + 1, 0),
        };
        if is_at(next.0, next.1) {
            self.remember(next.0, next.1);
            return Some(next);
        }
        is_at(list, at).then_some((list, at))
    }

    fn remember(&self, list: usize, at: usize) {
        self.last.list.store(list, Ordering::Relaxed);
        self.last.at.store(at, Ordering::Relaxed);
    }

    fn search(&self, path: &RelPath) -> (usize, Result<usize, usize>) {
        // Paths that are inserted in order come after all others.
        if let Some(list) = self.lists.last()
            && list.last().is_some_and(|(last, _)| last < path)
        {
            return (self.lists.len() - 1, Err(list.len()));
        }
        let later = |list: &Vec<(RelPath, V)>| list.first().is_some_and(|(first, _)| first > path);
        let list = self.lists.partition_point(|list| !later(list));
        let list = list.saturating_sub(1);
        let found = match self.lists.get(list) {
            Some(list) => list.binary_search_by(|(known, _)| known.cmp(path)),
            None => Err(0),
        };
        (list, found)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether there is an entry for a path.
    pub fn contains_key(&self, path: &RelPath) -> bool {
        self.place(path).1.is_ok()
    }

    /// Returns the stored path and its value, or `None`.
    pub fn get_key_value(&self, path: &RelPath) -> Option<(&RelPath, &V)> {
        let (list, found) = self.place(path);
        let (known, value) = self.lists.get(list)?.get(found.ok()?)?;
        Some((known, value))
    }

    /// Returns the value of a path, or `None`.
    pub fn get(&self, path: &RelPath) -> Option<&V> {
        self.get_key_value(path).map(|(_, value)| value)
    }

    /// Returns the value of a path to change it, or `None`.
    pub fn get_mut(&mut self, path: &RelPath) -> Option<&mut V> {
        let (list, found) = self.place(path);
        let (_, value) = self.lists.get_mut(list)?.get_mut(found.ok()?)?;
        Some(value)
    }

    /// Sets the value of a path. Returns the previous one, or `None`.
    pub fn insert(&mut self, path: RelPath, value: V) -> Option<V> {
        let (at, found) = self.place(&path);
        let Some(list) = self.lists.get_mut(at) else {
            self.lists.push(vec![(path, value)]);
            self.len += 1;
            return None;
        };
        let place = match found {
            Ok(known) => {
                let known = list.get_mut(known);
                return known.map(|(_, known)| std::mem::replace(known, value));
            }
            Err(place) => place,
        };
        self.len += 1;
        if list.len() < FULL {
            if list.len() == list.capacity() {
                list.reserve_exact(8);
            }
            list.insert(place, (path, value));
        } else if place == FULL {
            // Entries inserted in order leave full lists behind.
            self.lists.insert(at + 1, vec![(path, value)]);
        } else {
            let mut rest = list.split_off(FULL / 2);
            list.shrink_to_fit();
            match place.checked_sub(FULL / 2) {
                Some(place) => rest.insert(place, (path, value)),
                None => list.insert(place, (path, value)),
            }
            self.lists.insert(at + 1, rest);
        }
        None
    }

    /// Removes a path. Returns its value, or `None`.
    pub fn remove(&mut self, path: &RelPath) -> Option<V> {
        let (at, found) = self.place(path);
        let list = self.lists.get_mut(at)?;
        let (_, value) = list.remove(found.ok()?);
        self.len -= 1;
        let left = list.len();
        if left == 0 {
            self.lists.remove(at);
        } else if left < FULL / 4 {
            // Short neighbouring lists are merged, so that there are not too
            // many lists.
            let next = self.lists.get(at + 1);
            if next.is_some_and(|next| next.len() + left <= FULL / 2) {
                let mut next = self.lists.remove(at + 1);
                if let Some(list) = self.lists.get_mut(at) {
                    list.append(&mut next);
                }
            }
        }
        Some(value)
    }

    /// Iterates over all entries, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&RelPath, &V)> {
        let all = self.lists.iter().flatten();
        all.map(|(path, value)| (path, value))
    }

    /// Iterates over the entries from a path on, in order; over all without
    /// one.
    pub fn iter_from(&self, path: Option<&RelPath>) -> impl Iterator<Item = (&RelPath, &V)> {
        let (list, found) = path.map_or((0, Ok(0)), |path| self.place(path));
        let skipped = found.unwrap_or_else(|place| place);
        let lists = self.lists.get(list..).unwrap_or_default();
        let all = lists.iter().flatten().skip(skipped);
        all.map(|(path, value)| (path, value))
    }

    /// Iterates over all entries, in order, to change their values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&RelPath, &mut V)> {
        let all = self.lists.iter_mut().flatten();
        all.map(|(path, value)| (&*path, value))
    }

    /// Iterates over all paths, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &RelPath> {
        self.iter().map(|(path, _)| path)
    }
}

impl<V: PartialEq> PartialEq for ByName<V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for ByName<V> {}

impl<V> FromIterator<(RelPath, V)> for ByName<V> {
    fn from_iter<I: IntoIterator<Item = (RelPath, V)>>(all: I) -> Self {
        let mut map = Self::default();
        for (path, value) in all {
            map.insert(path, value);
        }
        map
    }
}

impl<V> IntoIterator for ByName<V> {
    type Item = (RelPath, V);
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<(RelPath, V)>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.lists.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map_in_the_order_of_names(
            steps in prop::collection::vec((0..400_u32, any::<bool>()), 0..1_500),
            in_order in 0..400_u32,
        ) {
            let name = |number: u32| RelPath::new(format!("{number:04}").as_bytes()).unwrap();
            let mut map: ByName<u32> = (0..in_order).map(|at| (name(at), at)).collect();
            let mut model: BTreeMap<RelPath, u32> = (0..in_order).map(|at| (name(at), at)).collect();
            for (value, (number, insert)) in (0..).zip(steps) {
                let path = name(number);
                match insert {
                    true => prop_assert_eq!(
                        map.insert(path.clone(), value),
                        model.insert(path.clone(), value)
                    ),
                    false => prop_assert_eq!(map.remove(&path), model.remove(&path)),
                }
                prop_assert_eq!(map.get(&path), model.get(&path));
                prop_assert_eq!(map.len(), model.len());
            }
            prop_assert!(map.iter().eq(model.iter()));
            let from = name(in_order / 2);
            prop_assert!(map.iter_from(Some(&from)).eq(model.range(from.clone()..)));
            prop_assert!(map.lists.iter().all(|list| !list.is_empty() && list.len() <= FULL));
        }
    }
}
