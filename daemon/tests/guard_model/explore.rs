//! The search: all states that are reached, the nearest first. So the steps to a
//! violation are the fewest.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hash as _, Hasher};

use super::state::State;
use super::{Action, World, properties};

/// What is checked in each state.
pub struct Property {
    pub name: &'static str,
    /// Whether it has to hold in every state, or in at least one.
    pub is_always: bool,
    pub holds: fn(&World, &State) -> bool,
}

/// What a search has found.
pub struct Found {
    pub states: usize,
    pub steps: usize,
    /// The steps to the first state in which a property does not hold that always
    /// has to, or in which one holds that sometimes has to.
    pub paths: BTreeMap<&'static str, Vec<Action>>,
}

/// Explores until a property of this name is found, or all states were.
pub fn explore(world: &World, until: Option<&str>) -> Found {
    let properties = properties::all(&world.setup);
    // Of each state's number, that of the state before it. Two of a million states
    // have the same 64 bits with a probability of one in thirty million.
    let mut seen: HashMap<u64, u64, BuildHasherDefault<Number>> = HashMap::default();
    let mut found = BTreeMap::new();
    let mut steps = 0;
    let mut level: Vec<(u64, State)> = Vec::new();
    for state in world.initial() {
        seen.insert(number(&state), 0);
        level.push((number(&state), state));
    }
    while !level.is_empty() && until.is_none_or(|name| !found.contains_key(name)) {
        let mut next = Vec::new();
        for (from, state) in &level {
            for property in &properties {
                if (property.holds)(world, state) != property.is_always {
                    found.entry(property.name).or_insert(*from);
                }
            }
            for action in world.actions(state) {
                if let Some(to) = world.next(state, action) {
                    let number = number(&to);
                    if let Entry::Vacant(entry) = seen.entry(number) {
                        entry.insert(*from);
                        next.push((number, to));
                    }
                }
            }
        }
        steps += usize::from(!next.is_empty());
        level = next;
    }
    let path = |(name, end)| (name, path(world, &seen, end));
    Found {
        states: seen.len(),
        steps,
        paths: found.into_iter().map(path).collect(),
    }
}

/// Returns the steps to a state.
fn path(
    world: &World,
    seen: &HashMap<u64, u64, BuildHasherDefault<Number>>,
    end: u64,
) -> Vec<Action> {
    let mut numbers = vec![end];
    while let Some(before) = numbers.last().map(|last| seen[last])
        && before != 0
    {
        numbers.push(before);
    }
    let mut numbers = numbers.into_iter().rev();
    let first = numbers.next();
    let mut initial = world.initial().into_iter();
    let mut state = initial.find(|state| Some(number(state)) == first).unwrap();
    let mut path = Vec::new();
    for wanted in numbers {
        let actions = world.actions(&state).into_iter();
        let mut nexts = actions.filter_map(|action| Some((action, world.next(&state, action)?)));
        let (action, next) = nexts.find(|(_, next)| number(next) == wanted).unwrap();
        path.push(action);
        state = next;
    }
    path
}

fn number(state: &State) -> u64 {
    let mut hasher = Number::default();
    state.hash(&mut hasher);
    let mixed = (hasher.0 ^ hasher.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// A hasher that is fast without optimisation. A number has its own bits.
#[derive(Default)]
pub struct Number(u64);

impl Hasher for Number {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_usize(usize::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_usize(value as usize);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write_usize(&mut self, value: usize) {
        let mixed = self.0.rotate_left(5) ^ value as u64;
        self.0 = mixed.wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_usize(value.cast_unsigned());
    }
}
