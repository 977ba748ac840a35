#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;

const A: &str = "alpha\nbeta\ngamma\ndelta\n";
const B: &str = "one\ntwo\nthree\nfour\n";
/// More than half of [`A`].
const A2: &str = "alpha\nbeta\ngamma\nother\n";
/// A quarter of [`A`].
const A3: &str = "alpha\nnew 1\nnew 2\nnew 3\nnew 4\n";

fn path(name: &str) -> RelPath {
    RelPath::new(name.as_bytes()).unwrap()
}

fn hash(text: &str) -> Hash {
    Hash::of(text.as_bytes())
}

/// A world in which versions are made one after another.
#[derive(Default)]
struct World {
    names: Vec<Name>,
    gone: Vec<Gone>,
    texts: BTreeMap<Hash, String>,
    n: u64,
    command: Option<u64>,
}

impl World {
    /// What follows is made by another command.
    fn by(mut self, command: u64) -> Self {
        self.command = Some(command);
        self
    }

    fn name(&mut self, name: &str) -> &mut Name {
        let at = self.names.iter().position(|one| one.path == path(name));
        let at = at.unwrap_or_else(|| {
            self.names.push(Name {
                path: path(name),
                earlier: None,
                is_there: false,
                was_moved: false,
                versions: Vec::new(),
                known: Vec::new(),
            });
            self.names.len() - 1
        });
        &mut self.names[at]
    }

    fn text(&mut self, text: &str) -> Hash {
        self.texts.insert(hash(text), text.to_owned());
        hash(text)
    }

    /// There was a file before the burst.
    fn had(mut self, name: &str, text: &str) -> Self {
        let hash = self.text(text);
        let name = self.name(name);
        (name.earlier, name.is_there) = (Some(hash), true);
        self
    }

    /// There was a file long before the burst.
    fn had_once(mut self, name: &str, text: &str) -> Self {
        let hash = self.text(text);
        self.name(name).earlier = Some(hash);
        self
    }

    /// Its file had another content before, perhaps under another name.
    fn had_before(mut self, name: &str, text: &str) -> Self {
        let hash = self.text(text);
        self.name(name).known.push((hash, None));
        self
    }

    fn gone(mut self, name: &str, text: &str, ends: u64) -> Self {
        let last = self.text(text);
        self.gone.push(Gone {
            path: path(name),
            last,
            ends,
            command: None,
        });
        self
    }

    /// A version: a content, or `None` for no file.
    fn then(self, name: &str, text: Option<&str>) -> Self {
        self.hinted(name, text, None)
    }

    fn hinted(mut self, name: &str, text: Option<&str>, hint: Option<&str>) -> Self {
        let hash = text.map(|text| self.text(text));
        self.n += 1;
        let change = Change {
            is_certain: false,
            is_edit: false,
            n: self.n,
            hash,
            command: self.command,
            hint: hint.map(path),
        };
        self.name(name).versions.push(change);
        self
    }

    fn decided(&self) -> Decided {
        let mut text = |hash: &Hash| Some(Arc::from(self.texts.get(hash)?.as_bytes()));
        decide(&self.names, &self.gone, &mut text)
    }

    /// Returns each name that stands for another file: the version, the name,
    /// and the earlier name.
    fn told(&self) -> Vec<(u64, String, String)> {
        let begins = self.decided().begins.into_iter();
        let told = begins.map(|one| {
            let from = one
                .from
                .map_or("new".to_owned(), |(from, until)| format!("{from}<{until}"));
            (one.version, one.path.to_string_lossy(), from)
        });
        told.collect()
    }
}

fn row(version: u64, name: &str, from: &str) -> (u64, String, String) {
    (version, name.to_owned(), from.to_owned())
}

#[test]
fn a_moved_file_continues_under_its_new_name() {
    let moved = World::default()
        .had("a", A)
        .then("b", Some(A))
        .then("a", None);
    assert_eq!(moved.told(), [row(1, "b", "a<2")]);
    // In several steps, and with a change on the way.
    let world = World::default()
        .had("a", A)
        .then("a", None)
        .then("b", Some(A));
    let world = world
        .then("b", Some(A2))
        .then("b", None)
        .then("d/c", Some(A2));
    assert_eq!(world.told(), [row(2, "b", "a<1"), row(5, "d/c", "b<4")]);
    // The name had another file.
    let over = World::default()
        .had("a", A)
        .had("b", B)
        .then("b", Some(A))
        .then("a", None);
    assert_eq!(over.told(), [row(1, "b", "a<2")]);
    // It was gone a little earlier.
    let before = World::default().gone("a", A, 7).then("b", Some(A));
    assert_eq!(before.told(), [row(1, "b", "a<7")]);
    // It was changed at the same time.
    let changed = World::default()
        .had("a", A)
        .then("a", None)
        .then("b", Some(A2));
    assert_eq!(changed.told(), [row(2, "b", "a<1")]);
    let too_much = World::default()
        .had("a", A)
        .then("a", None)
        .then("b", Some(A3));
    assert_eq!(too_much.told(), []);
}

#[test]
fn a_name_that_keeps_half_of_its_lines_keeps_its_file() {
    // A backup: the old file goes to the backup, a new one gets the name.
    let backup = World::default()
        .had("f", A)
        .hinted("f~", Some(A), Some("f"));
    let backup = backup.then("f", None).then("f", Some(A2));
    assert_eq!(backup.told(), []);
    // A safe write.
    let safe = World::default().had("f", A).then("f.tmp", Some(A2));
    let safe = safe
        .hinted("f", Some(A2), Some("f.tmp"))
        .then("f.tmp", None);
    assert_eq!(safe.told(), []);
    let all_new = World::default().had("f", A).then("f.tmp", Some(B));
    let all_new = all_new
        .hinted("f", Some(B), Some("f.tmp"))
        .then("f.tmp", None);
    assert_eq!(all_new.told(), [], "a save that rewrites the whole file");
    // A command moves a file over `f` that it did not write.
    let over = World::default().had("f", A).then("g", Some(B)).by(1);
    let over = over.then("f", Some(B)).then("g", None);
    assert_eq!(over.told(), [row(2, "f", "g<3")]);
    // An exchange of two versions of a file.
    let exchange = World::default().had("f", A).had("g", A2);
    assert_eq!(exchange.then("f", Some(A2)).then("g", Some(A)).told(), []);
    // An exchange of two files that are not alike, while another was removed.
    let exchange = World::default().gone("x", "x\n", 7).had("f", A).had("g", B);
    let exchange = exchange.then("f", Some(B)).then("g", Some(A));
    assert_eq!(exchange.told(), []);
    // What one removed and another made.
    let others = World::default().had("a", A).then("a", None);
    assert_eq!(others.by(2).then("b", Some(A)).told(), []);
    // A copy.
    let copy = World::default().had("a", A).then("b", Some(A));
    assert_eq!(copy.told(), []);
    // It was rewritten in place, and nothing was moved.
    assert_eq!(World::default().had("f", A).then("f", Some(B)).told(), []);
}

#[test]
fn a_file_that_was_removed_and_newly_written_is_another_one() {
    let world = World::default()
        .had("f", A)
        .then("f", None)
        .then("f", Some(B));
    assert_eq!(world.told(), [row(2, "f", "new")]);
    let long_ago = World::default().had_once("f", A).then("f", Some(B));
    assert_eq!(long_ago.told(), [row(1, "f", "new")]);
    let mut back = World::default().had_once("f", A).then("f", Some(A2));
    assert_eq!(back.told(), [], "it is back");
    // It has a content from long ago again, that of the last file of the name
    // or that of an earlier one.
    let mut again = World::default().had_once("f", A).then("f", Some(B));
    again.name("f").known = vec![(hash(B), None)];
    assert_eq!(again.told(), []);
    again.name("f").known = vec![(hash(B), Some(7))];
    assert_eq!(again.told(), [row(1, "f", "f<7")]);
    let mut in_place = World::default().had("f", A).then("f", Some(B));
    in_place.name("f").known = vec![(hash(B), Some(7))];
    assert_eq!(in_place.told(), [row(1, "f", "f<7")]);
    back.name("f").was_moved = true;
    assert_eq!(back.told(), [row(1, "f", "new")], "it has another name");
    // It was moved, and another file got the name.
    let split = World::default()
        .had("f", A)
        .then("g", Some(A))
        .then("f", None);
    assert_eq!(
        split.then("f", Some(B)).told(),
        [row(1, "g", "f<2"), row(3, "f", "new")]
    );
    let in_place = World::default().had("f", A).had("h", B).then("h", None);
    let in_place = in_place.then("g", Some(A)).then("f", Some(B));
    assert_eq!(in_place.told(), [row(2, "g", "f<3"), row(3, "f", "h<1")]);
    // The contents are not stored.
    let mut unknown = World::default()
        .had("f", A)
        .then("f", None)
        .then("f", Some(B));
    unknown.texts.clear();
    assert_eq!(unknown.told(), []);
}

#[test]
fn an_earlier_file_of_a_name_may_be_back_with_changes() {
    // As by `git checkout .` and an edit in one command.
    let known = |mut world: World| {
        world.text(A);
        world.name("f").known = vec![(hash(B), None), (hash(A), Some(7))];
        world.told()
    };
    let in_place = || World::default().had("f", B);
    let back = known(in_place().then("f", Some(A2)));
    assert_eq!(back, [row(1, "f", "f<7")]);
    let removed = in_place().then("f", None).then("f", Some(A2));
    assert_eq!(known(removed), [row(2, "f", "f<7")]);
    assert_eq!(known(in_place().then("f", Some(A3))), []);
    // An undo brings it back, and a redo takes it away again.
    let redone = in_place().then("f", Some(A)).then("f", Some(B));
    assert_eq!(known(redone), []);
    let emptied = in_place().then("f", Some("")).then("f", Some(A));
    assert_eq!(known(emptied.then("f", Some(B))), []);
    // A file that was moved to the name comes first.
    let moved = in_place().had("g", A2).then("g", None);
    let moved = known(moved.then("f", Some(A2)));
    assert_eq!(moved, [row(2, "f", "g<1")]);
}

#[test]
fn a_moved_file_may_have_an_earlier_content_again() {
    // An undo takes the move and the changes since back at once.
    let moved = World::default().had("f", B).had_before("f", A);
    let back = moved.then("g", Some(A)).then("f", None);
    assert_eq!(back.told(), [row(1, "g", "f<2")]);
    // It is not known which of two files had it.
    let two = World::default().had("f", B).had_before("f", A);
    let two = two.had("e", A3).had_before("e", A);
    let two = two.then("g", Some(A)).then("f", None).then("e", None);
    assert_eq!(two.told(), []);
    let empty = World::default().had("f", B).had_before("f", "");
    assert_eq!(empty.then("g", Some("")).then("f", None).told(), []);
}

#[test]
fn what_an_undo_has_moved_is_moved_whatever_it_has_changed() {
    let moved = |is_certain| {
        let world = World::default().had("g", A).hinted("f", Some(B), Some("g"));
        let mut world = world.then("g", None);
        world.name("f").versions[0].is_certain = is_certain;
        world.told()
    };
    assert_eq!(moved(false), []);
    assert_eq!(moved(true), [row(1, "f", "g<2")]);
    // A command moves it on.
    let on = World::default().had("g", A).hinted("f", Some(A), Some("g"));
    let mut on = on.then("g", None).by(7).then("f", None).then("h", Some(A));
    on.name("f").versions[0].is_certain = true;
    assert_eq!(on.told(), [row(1, "f", "g<2"), row(4, "h", "f<3")]);
}

#[test]
fn a_file_that_was_moved_several_times_in_one_burst_is_followed() {
    let first = World::default()
        .had("f", A)
        .then("g", Some(A))
        .then("f", None);
    let on = first.then("h", Some(A)).then("g", None);
    assert_eq!(on.told(), [row(1, "g", "f<2"), row(3, "h", "g<4")]);
    // Two copies of a file that was removed: it may be either.
    let copies = World::default().had("f", A).then("g", Some(A));
    let copies = copies.then("h", Some(A)).then("f", None);
    assert_eq!(copies.told(), []);
}

#[test]
fn a_file_that_a_session_has_edited_stays_the_file_of_its_name() {
    // A copy of `f` is first seen in the same burst, and another file has left.
    let edited = |is_edit| {
        let world = World::default().had("f", A).gone("e", "x\ny\n", 1);
        let mut world = world.then("copy", Some(A)).then("f", Some(B));
        world.name("f").versions[0].is_edit = is_edit;
        world.told()
    };
    assert_eq!(edited(false), [row(1, "copy", "f<2"), row(2, "f", "new")]);
    assert_eq!(edited(true), []);
}

#[test]
fn a_file_that_a_session_has_edited_since_was_not_moved_before() {
    // `g`, much like `f`, is first seen. Then `f` is edited and removed.
    let removed = |is_edit| {
        let world = World::default().had("f", A).then("g", Some(A));
        let mut world = world.then("f", Some(A2)).then("f", None);
        world.name("f").versions[0].is_edit = is_edit;
        world.told()
    };
    assert_eq!(removed(false), [row(1, "g", "f<3")]);
    assert_eq!(removed(true), []);
}

#[test]
fn of_equal_contents_the_hint_and_the_end_of_the_path_decide() {
    let two = |world: World| {
        let world = world.had("d/a/init", A).had("d/b/init", A);
        world.then("d/a/init", None).then("d/b/init", None)
    };
    let moved = two(World::default())
        .then("e/a/init", Some(A))
        .then("e/b/init", Some(A));
    let right = [
        row(3, "e/a/init", "d/a/init<1"),
        row(4, "e/b/init", "d/b/init<2"),
    ];
    assert_eq!(moved.told(), right);
    let hinted = two(World::default()).hinted("x", Some(A), Some("d/b/init"));
    assert_eq!(hinted.told(), [row(3, "x", "d/b/init<2")]);
    let either = two(World::default()).then("x", Some(A));
    assert_eq!(either.told(), [], "it may be either");
    // An empty file says nothing.
    let empty = World::default()
        .had("a", "")
        .then("a", None)
        .then("b", Some(""));
    assert_eq!(empty.told(), []);
    // A hint alone decides nothing.
    let hint = World::default()
        .had("a", A)
        .then("a", None)
        .hinted("b", Some(B), Some("a"));
    assert_eq!(hint.told(), []);
}

#[test]
fn too_many_files_are_compared_by_their_base_names_only() {
    let text = |at: usize| {
        (0..6)
            .map(|line| format!("{at} {line}\n"))
            .collect::<String>()
    };
    let mut world = World::default();
    for at in 0..=MOST {
        world = world
            .had(&format!("d/{at}"), &text(at))
            .then(&format!("d/{at}"), None);
    }
    for at in 0..=MOST {
        let to = if at == 3 {
            "e/else".to_owned()
        } else {
            format!("e/{at}")
        };
        world = world.then(&to, Some(&(text(at) + "more\n")));
    }
    let decided = world.decided();
    assert!(decided.is_limited);
    assert_eq!(decided.begins.len(), MOST);
    assert!(!decided.begins.iter().any(|one| one.path == path("e/else")));
}

/// Decides slowly, for names that each have at most one version: the moved
/// files are tried in all orders of pairs.
fn slowly(names: &[Name], text: &dyn Fn(&Hash) -> String) -> Vec<(RelPath, Option<RelPath>)> {
    let lines = |hash: &Hash| -> Vec<String> { text(hash).lines().map(str::to_owned).collect() };
    let common = |one: &Hash, other: &Hash| {
        let mut rest = lines(other);
        let found = lines(one).into_iter().filter(|line| {
            let at = rest.iter().position(|other| other == line);
            at.map(|at| rest.remove(at)).is_some()
        });
        found.collect::<Vec<_>>()
    };
    let keeps = |one: &Hash, other: &Hash| {
        one == other || !lines(one).is_empty() && common(one, other).len() * 2 >= lines(one).len()
    };
    let after = |name: &Name| {
        name.versions
            .last()
            .map_or(name.earlier.filter(|_| name.is_there), |one| one.hash)
    };
    let is_same = |name: &Name| matches!((name.earlier, after(name)), (Some(one), Some(other)) if keeps(&one, &other));
    let moves = names
        .iter()
        .any(|name| name.is_there && after(name).is_none());
    let new: Vec<&Name> = names
        .iter()
        .filter(|name| {
            let is_open = after(name).is_some() && !is_same(name) && !name.versions.is_empty();
            is_open && (moves || !name.is_there)
        })
        .collect();
    let gone = |name: &&Name| moves && name.is_there && !is_same(name) && !name.versions.is_empty();
    let old: Vec<&Name> = names.iter().filter(gone).collect();
    let weight = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    let mut fits: Vec<(bool, usize, &Name, &Name)> = Vec::new();
    for new in &new {
        let is_exchange = |old: &Name| new.is_there && after(old).is_some();
        let others = old.iter().filter(|old| old.path != new.path);
        for old in others.filter(|old| !is_exchange(old)) {
            let (before, now) = (old.earlier.unwrap(), after(new).unwrap());
            let longer = weight(&lines(&before)).max(weight(&lines(&now)));
            let common = weight(&common(&before, &now)) * 1_000;
            let alike = common.checked_div(longer).unwrap_or(0);
            fits.push((before == now && !lines(&now).is_empty(), alike, *new, *old));
        }
    }
    let mut from: BTreeMap<RelPath, RelPath> = BTreeMap::new();
    let mut taken: BTreeSet<RelPath> = BTreeSet::new();
    let exact: Vec<_> = fits.iter().filter(|fit| fit.0).collect();
    for (_, _, new, old) in &exact {
        let others = exact
            .iter()
            .filter(|(_, _, one, other)| (one.path == new.path) != (other.path == old.path));
        if others.count() == 0 {
            from.insert(new.path.clone(), old.path.clone());
            taken.insert(old.path.clone());
        }
    }
    while let Some((_, _, new, old)) = fits
        .iter()
        .filter(|(is_exact, alike, new, old)| {
            !is_exact
                && *alike >= 500
                && !from.contains_key(&new.path)
                && !taken.contains(&old.path)
        })
        // The first of the best ones, as the names are ordered.
        .rev()
        .max_by_key(|fit| fit.1)
    {
        from.insert(new.path.clone(), old.path.clone());
        taken.insert(old.path.clone());
    }
    let mut begins = Vec::new();
    for name in new {
        let of = from.get(&name.path).cloned();
        let is_new = name.earlier.is_some() && (!name.is_there || taken.contains(&name.path));
        if of.is_some() || is_new {
            begins.push((name.path.clone(), of));
        }
    }
    begins.sort();
    begins
}

proptest! {
    #[test]
    fn it_decides_as_a_slow_model_does(
        names in proptest::collection::vec(
            (
                proptest::option::of(proptest::collection::vec(0_u8..9, 0..5)),
                any::<bool>(),
                proptest::option::of(proptest::option::of(proptest::collection::vec(0_u8..9, 0..5))),
            ),
            1..6,
        ),
    ) {
        let text = |lines: &Vec<u8>| lines.iter().map(|line| format!("line {line}\n")).collect::<String>();
        let mut world = World::default();
        for (at, (before, is_there, after)) in names.iter().enumerate() {
            let name = format!("n{at}");
            if let Some(before) = before {
                world = match is_there {
                    true => world.had(&name, &text(before)),
                    false => world.had_once(&name, &text(before)),
                };
            }
            let is_there = before.is_some() && *is_there;
            match after {
                // A version changes something.
                Some(None) if !is_there => {}
                Some(after) => world = world.then(&name, after.as_ref().map(text).as_deref()),
                None => {}
            }
        }
        let texts = |hash: &Hash| world.texts.get(hash).cloned().unwrap();
        let mut told: Vec<_> = world.decided().begins.into_iter().map(|one| (one.path, one.from.map(|from| from.0))).collect();
        told.sort();
        prop_assert_eq!(told, slowly(&world.names, &texts));
    }
}

#[test]
fn a_backup_that_is_gone_again_takes_no_file() {
    // As an editor saves: the file is renamed, written anew, and the backup is
    // removed. Less than half of the lines are kept.
    let save = |world: World| {
        let world = world.then("f", Some(A3));
        world
            .hinted("f~", Some(A), Some("f"))
            .then("f~", None)
            .then("f", Some(A3))
    };
    assert_eq!(save(World::default().had("f", A)).told(), []);
    let declared = World::default().had("f", B).then("f", Some(A));
    assert_eq!(save(declared).told(), []);
    // A file that was moved on is not gone.
    let moved = save(World::default().had("f", A)).then("g", Some(A));
    assert_eq!(
        moved.told(),
        [
            (1, "f".into(), "new".into()),
            (2, "f~".into(), "f<1".into()),
            (5, "g".into(), "f~<3".into())
        ]
    );
}
