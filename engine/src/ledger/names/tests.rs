//! Compares [`Names`] with a slow model, which keeps for each file who has used
//! which name.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// An operation on names. Names and sessions are numbers.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// A session uses a name: one of a file's names, or a new one.
    Use(u8, u8, u8),
    /// Two files are found to be one.
    Join(u8, u8),
    /// A name leaves its file: alone, or with every second one of its names.
    Part(u8, bool),
    /// A session releases one of several names, or the file.
    LetGo(u8, u8),
}

/// For each file, by its name: the uses in order, each with the session and the
/// name used.
#[derive(Debug, Default)]
struct Model(BTreeMap<u8, Vec<(u8, u8)>>);

impl Model {
    fn file_of(&self, name: u8) -> Option<u8> {
        let used = |uses: &[(u8, u8)]| uses.iter().any(|(_, by)| *by == name);
        let own = self.0.contains_key(&name).then_some(name);
        own.or_else(|| {
            self.0
                .iter()
                .find(|(_, uses)| used(uses))
                .map(|(file, _)| *file)
        })
    }

    fn holders(&self, file: u8) -> BTreeSet<u8> {
        self.0[&file].iter().map(|(session, _)| *session).collect()
    }
}

fn path(name: u8) -> RelPath {
    RelPath::new(format!("n{name}").as_bytes()).unwrap()
}

fn session(number: u8) -> SessionId {
    SessionId::new(&format!("s{number}")).unwrap()
}

fn op() -> impl Strategy<Value = Op> {
    let (name, who) = (|| 0..8_u8, || 0..3_u8);
    prop_oneof![
        4 => (who(), name(), name()).prop_map(|(who, name, of)| Op::Use(who, name, of)),
        2 => (name(), name()).prop_map(|(one, other)| Op::Join(one, other)),
        2 => (name(), any::<bool>()).prop_map(|(name, all)| Op::Part(name, all)),
        1 => (who(), name()).prop_map(|(who, name)| Op::LetGo(who, name)),
    ]
}

/// Applies an operation to both.
fn apply(names: &mut Names, model: &mut Model, op: Op, n: u64) {
    match op {
        Op::Use(who, name, of) => {
            let file = match (model.file_of(name), model.file_of(of)) {
                (Some(file), _) => file,
                (None, Some(file)) => file,
                (None, None) => name,
            };
            let uses = model.0.entry(file).or_default();
            let held = uses.iter().any(|(session, _)| *session == who);
            uses.retain(|used| *used != (who, name));
            uses.push((who, name));
            names.use_name(&session(who), &path(name), &path(file), held);
        }
        Op::Join(one, other) => {
            let (Some(file), Some(gone)) = (model.file_of(one), model.file_of(other)) else {
                return;
            };
            if file == gone {
                return;
            }
            let of = |file| {
                model
                    .holders(file)
                    .into_iter()
                    .map(session)
                    .collect::<Vec<_>>()
            };
            let (joining, known) = (of(gone), of(file));
            let uses = model.0.remove(&gone).unwrap();
            model.0.get_mut(&file).unwrap().extend(uses);
            names.join(&path(gone), &path(file), (&joining, &known));
        }
        Op::Part(name, all) => {
            let Some(file) = model.file_of(name).filter(|file| *file != name) else {
                return;
            };
            let uses = model.0.remove(&file).unwrap();
            let leaves = |by: u8| by == name || (all && by != file);
            let (leave, stay): (Vec<_>, Vec<_>) = uses.iter().partition(|(_, by)| leaves(*by));
            let mut leaving: Vec<u8> = leave.iter().map(|(_, by)| *by).collect();
            leaving.sort_by_key(|by| (*by != name, *by));
            leaving.dedup();
            let leaving: Vec<RelPath> = leaving.into_iter().map(path).collect();
            for who in 0..3 {
                let of = |uses: &[(u8, u8)]| uses.iter().any(|(session, _)| *session == who);
                let expected = match (of(&leave), of(&stay)) {
                    (true, true) => Parting::Both,
                    (true, false) => Parting::Leaves,
                    _ => Parting::Stays,
                };
                let parting = names.parting(&session(who), &path(file), &leaving);
                assert_eq!(parting, expected, "s{who}");
            }
            names.part(&path(file), &leaving, n);
            model.0.insert(name, leave);
            if stay.is_empty() {
                names.forget(&path(file));
            } else {
                model.0.insert(file, stay);
            }
        }
        Op::LetGo(who, name) => {
            let Some(file) = model.file_of(name) else {
                return;
            };
            let uses = model.0.get_mut(&file).unwrap();
            let own = uses.iter().filter(|(session, _)| *session == who);
            if own.clone().count() > 1 && own.clone().any(|(_, by)| *by == name) {
                assert!(names.uses_another(&session(who), &path(name), &path(file)));
                uses.retain(|used| *used != (who, name));
                names.let_go(&session(who), &path(name), &path(file));
            } else {
                uses.retain(|(session, _)| *session != who);
                if uses.is_empty() {
                    model.0.remove(&file);
                    names.forget(&path(file));
                }
                names.release(&session(who), &path(file));
            }
        }
    }
}

fn compare(names: &Names, model: &Model) {
    for name in 0..8 {
        let file = model.file_of(name).unwrap_or(name);
        assert_eq!(*names.file_of(&path(name)), path(file), "n{name}");
    }
    for (file, uses) in &model.0 {
        let others: BTreeSet<RelPath> = uses.iter().map(|(_, by)| path(*by)).collect();
        let mut known: BTreeSet<RelPath> = names.others_of(&path(*file)).cloned().collect();
        assert!(!known.contains(&path(*file)));
        known.insert(path(*file));
        assert!(others.is_subset(&known), "{others:?} {known:?}");
        assert!(known.len() <= others.len() + 1);
        for who in model.holders(*file) {
            let own: Vec<RelPath> = uses
                .iter()
                .filter(|(session, _)| *session == who)
                .map(|(_, by)| path(*by))
                .collect();
            let last = names.last_used(&session(who), &path(*file)).clone();
            assert_eq!(Some(&last), own.last(), "n{file} s{who}");
            let used = names.used(&session(who), &path(*file));
            assert_eq!(used.unwrap_or(&[path(*file)]), own, "n{file} s{who}");
        }
    }
    let all: BTreeSet<RelPath> = model
        .0
        .values()
        .flatten()
        .map(|(_, by)| path(*by))
        .collect();
    assert!(
        names.others().all(|name| all.contains(name)),
        "nobody uses it"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn names_are_what_their_uses_say(ops in prop::collection::vec(op(), 0..40)) {
        let (mut names, mut model) = (Names::default(), Model::default());
        for (n, op) in (1..).zip(ops) {
            apply(&mut names, &mut model, op, n);
            compare(&names, &model);
        }
    }
}
