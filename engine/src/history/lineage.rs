//! Which file a name stands for after several names have changed together
//! (HIST-9): the file that it stood for before, another one that was moved to
//! it, or a new one. The contents decide.

mod pairs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use touchmark_proto::{Hash, RelPath};

use super::likeness::{HALF, Lines};
use pairs::Pairs;

/// The most files on each side, gone and new, that are compared line by line.
/// If there are more, only files with the same base name are compared.
const MOST: usize = 1_000;

/// The most earlier contents of a name with which a new one is compared. Each
/// comparison reads a content.
const EARLIER: usize = 32;

/// The most files with one content among which the only way to pair them is
/// looked for. It takes the third power of their number.
const MOST_EQUAL: usize = 32;

/// What happened to one name during a burst of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub path: RelPath,
    /// The last content that it had before the burst; `None` if it had none.
    pub earlier: Option<Hash>,
    /// Whether there was a file right before the burst.
    pub is_there: bool,
    /// Whether its last file is continued under another name.
    pub was_moved: bool,
    /// Its versions in the burst, the oldest first.
    pub versions: Vec<Change>,
    /// All contents that it had before the burst, each with the version from
    /// which on the name stood for another file; `None` for contents of its last
    /// file, also of those that the file had under earlier names.
    pub known: Vec<(Hash, Option<u64>)>,
}

/// One version of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The number of the version.
    pub n: u64,
    /// The content; `None` for no file.
    pub hash: Option<Hash>,
    /// The command in whose window it was made; `None` for none.
    pub command: Option<u64>,
    /// The name from which the file came, by an event or an inode. It only
    /// chooses between candidates that are equal otherwise.
    pub hint: Option<RelPath>,
    /// Whether the hint is certain: an undo or a redo has moved the file.
    pub is_certain: bool,
    /// Whether a session has declared it as a change of the file at this name.
    pub is_edit: bool,
}

/// A file that was gone before the burst, so recently that it may have been
/// moved in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its name.
    pub path: RelPath,
    /// Its last content.
    pub last: Hash,
    /// The number of the version with which it was gone.
    pub ends: u64,
    /// The command in whose window it was removed; `None` for none.
    pub command: Option<u64>,
}

/// A name that stands for another file than before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Begins {
    /// The number of the version from which on it does.
    pub version: u64,
    /// The name.
    pub path: RelPath,
    /// The earlier name of the file, and the number of the version from which
    /// on that name does not stand for it any more; `None` for a new file.
    pub from: Option<(RelPath, u64)>,
}

/// The result of [`decide`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// The names that stand for another file than before, by version.
    pub begins: Vec<Begins>,
    /// There were more than 1,000 files on a side, so that files with different
    /// base names were not compared line by line.
    pub is_limited: bool,
}

/// Decides which names stand for another file than before. `text` returns a
/// content, or `None` if it is not stored.
///
/// - A file that an undo or a redo has moved continues under its new name, even
///   if few of its lines are left.
/// - A name that keeps at least half of its lines keeps its file. So does one
///   whose file a session has edited, however few lines are left, and one that
///   has an earlier content again, or at least half of its lines. If another
///   file of the name had that content, the name stands for that one again.
/// - Otherwise it stands for the file that is gone from its name and had the
///   same content, which is not empty. If several had it, the hint decides, then
///   the end of the path. If these are equal too, none is continued.
/// - Otherwise, in the same way, for the one that had the content earlier.
/// - Otherwise for the most similar one, if at least half of both contents is
///   alike.
/// - Otherwise for a new file, if the name was free meanwhile, or its own file
///   was moved. A file that was rewritten in place stays the same file.
/// - What one command removed and another one made is no move, unless the hint
///   says so.
/// - A name that had a file takes no file that was made in the same burst, by the
///   same command or by none, and that no session edited: that is how programs
///   save. Nor does it take the file of a name that has one afterwards: an
///   exchange moves nothing.
/// - A name that is free again takes no file either, if the other name has a
///   file: that was a backup.
pub fn decide(
    names: &[Name],
    gone: &[Gone],
    text: &mut dyn FnMut(&Hash) -> Option<Arc<[u8]>>,
) -> Decided {
    let mut texts = Texts {
        known: BTreeMap::new(),
        text,
    };
    // A file that was rewritten in place may be another one only if one was
    // moved.
    let may_move = !gone.is_empty()
        || names.iter().any(|name| {
            let had = name.is_there || name.versions.iter().any(|one| one.hash.is_some());
            had && name.versions.iter().any(|one| one.hash.is_none())
        });
    let mut stays: Vec<Stay> = Vec::new();
    for name in names {
        of_name(name, may_move, &mut texts, &mut stays);
    }
    stays.extend(gone.iter().map(|gone| Stay {
        path: &gone.path,
        starts: None,
        first: gone.last,
        last: gone.last,
        ends: Some(gone.ends),
        ended: vec![gone.ends],
        by: [None, gone.command],
        was_free: false,
        had_file: false,
        is_known: true,
        returns: None,
        resembles: None,
        was_there: false,
        is_there: false,
        hint: None,
        is_certain: false,
        edited: None,
        known: &[],
    }));
    let mut pairs = Pairs {
        stays: &stays,
        by: BTreeMap::new(),
        taken: BTreeSet::new(),
    };
    let new: Vec<usize> = pairs.all(|stay| stay.starts.is_some() && stay.returns.is_none());
    let old: Vec<usize> = pairs.all(|stay| stay.ends.is_some());
    pairs.certain(&old);
    pairs.same(&new, &old);
    pairs.earlier(&new, &old);
    let is_limited = pairs.similar(&new, &old, &mut texts);
    pairs.drop_backups();
    pairs.drop_saves();
    let began = pairs.all(|stay| stay.starts.is_some());
    let mut begins: Vec<Begins> = began
        .iter()
        .filter_map(|at| {
            let stay = &stays[*at];
            let from = pairs.by.get(at).and_then(|old| {
                let old = &stays[*old];
                Some((old.path.clone(), old.left(stay.starts?)?))
            });
            let earlier = stay.returns.or(stay.resembles);
            let from = from.or(earlier.map(|until| (stay.path.clone(), until)));
            let before = pairs.before(*at);
            let is_moved = before.is_some_and(|before| pairs.taken.contains(&before));
            let is_new = stay.had_file && (stay.was_free && stay.is_known || is_moved);
            (from.is_some() || is_new).then(|| Begins {
                version: stay.starts.unwrap_or_default(),
                path: stay.path.clone(),
                from,
            })
        })
        .collect();
    begins.sort();
    Decided { begins, is_limited }
}

/// The time during which a name stands for one file.
#[derive(Clone, Debug)]
struct Stay<'a> {
    path: &'a RelPath,
    /// The version with which it starts; `None`: before the burst.
    starts: Option<u64>,
    first: Hash,
    last: Hash,
    /// The version with which it ends; `None`: after the burst.
    ends: Option<u64>,
    /// The versions with which it ended, also those after which the file was
    /// back.
    ended: Vec<u64>,
    /// The commands in whose windows it started and ended.
    by: [Option<u64>; 2],
    /// Whether the name was free right before it.
    was_free: bool,
    /// Whether the name had another file at any time before.
    had_file: bool,
    /// Whether it could be compared with the file before.
    is_known: bool,
    /// The version with which the name had ceased to stand for this file; `None`
    /// if it had not.
    returns: Option<u64>,
    /// As `returns`, of a file that is only similar. One that was moved to the
    /// name comes first.
    resembles: Option<u64>,
    /// Whether the name had a file right before the burst.
    was_there: bool,
    /// Whether the name has a file after the burst.
    is_there: bool,
    hint: Option<&'a RelPath>,
    /// As [`Change::is_certain`].
    is_certain: bool,
    /// The last version that a session declared as a change of the file.
    edited: Option<u64>,
    /// The contents that the name had before the burst, as [`Name::known`] has
    /// them, if this is its file of that time.
    known: &'a [(Hash, Option<u64>)],
}

impl Stay<'_> {
    fn end(&mut self, change: &Change) {
        (self.ends, self.by[1]) = (Some(change.n), change.command);
        self.ended.push(change.n);
    }

    /// Returns the end that is next to the version with which another name got
    /// the file: it may have been back since.
    fn left(&self, starts: u64) -> Option<u64> {
        let ends = self.ended.iter().copied();
        ends.min_by_key(|end| (end.abs_diff(starts), *end))
    }
}

/// Adds the files that a name stands for during the burst.
fn of_name<'a>(name: &'a Name, may_move: bool, texts: &mut Texts<'_>, stays: &mut Vec<Stay<'a>>) {
    let own = stays.len();
    let mut is_open = false;
    // A file that has another name now cannot be back.
    let earlier = name.earlier.filter(|_| !name.was_moved);
    let stay = |starts, content, was_free, had_file, is_known, hint| Stay {
        path: &name.path,
        starts,
        first: content,
        last: content,
        ends: None,
        ended: Vec::new(),
        by: [None, None],
        was_free,
        had_file,
        is_known,
        returns: None,
        resembles: None,
        was_there: name.is_there,
        is_there: name.versions.last().is_none_or(|last| last.hash.is_some()),
        hint,
        is_certain: false,
        edited: None,
        known: match starts {
            None => name.known.as_slice(),
            Some(_) => &[],
        },
    };
    if let (true, Some(earlier)) = (name.is_there, name.earlier) {
        stays.push(stay(None, earlier, false, false, true, None));
        is_open = true;
    }
    for change in &name.versions {
        let Some(content) = change.hash else {
            if let (true, Some(last)) = (is_open, stays.last_mut()) {
                last.end(change);
            }
            is_open = false;
            continue;
        };
        let had = name.known.iter().find(|(known, _)| *known == content);
        let had = had
            .filter(|_| content != Hash::of(b""))
            .map(|(_, ended)| *ended);
        let returns = had.flatten();
        // The name may have stood for another file for a while in this burst, as
        // between an undo and its redo.
        let had_it = stays[own..].iter().any(|stay| stay.last == content);
        if let (true, Some(last)) = (is_open, stays.last_mut()) {
            let comes_back = last.starts.is_some() && (had_it || had == Some(None));
            // Another file that the name stood for before may be back.
            let mut ended = name.known.iter().map(|(_, ended)| ended);
            let is_compared = may_move || comes_back || ended.any(Option::is_some);
            if change.is_edit || !is_compared || texts.keeps(&last.last, &content) == Some(true) {
                last.last = content;
                last.edited = change.is_edit.then_some(change.n).or(last.edited);
                continue;
            }
        }
        // The file may be one that the name had before.
        let back = (own..stays.len()).rfind(|at| {
            let keeps = texts.keeps(&stays[*at].last, &content);
            keeps == Some(true)
        });
        if let Some(back) = back {
            stays.truncate(back + 1);
            stays[back].ends = None;
            stays[back].last = content;
            is_open = true;
            continue;
        }
        let before = stays
            .get(own..)
            .and_then(<[Stay<'_>]>::last)
            .map(|last| last.last);
        let keeps = match before.or(earlier) {
            Some(before) => texts.keeps(&before, &content),
            None => Some(false),
        };
        let alike = match (had, keeps) {
            (None, Some(true)) => Some(None),
            (None, _) => {
                let mut known = name.known.iter().take(EARLIER);
                let alike = known.find(|(known, _)| texts.keeps(known, &content) == Some(true));
                alike.map(|(_, ended)| *ended)
            }
            (had, _) => had,
        };
        if keeps == Some(true) || alike == Some(None) {
            // The file from before the burst has an earlier content again, or was
            // removed, and is back.
            let is_first = |stay: &Stay<'_>| stay.starts.is_none();
            let first = stays.get(own).is_some_and(is_first);
            stays.truncate(own + usize::from(first));
            match stays.get_mut(own) {
                Some(first) => (first.last, first.ends) = (content, None),
                None => stays.push(stay(None, content, false, false, true, None)),
            }
            is_open = true;
            continue;
        }
        if let (true, Some(last)) = (is_open, stays.last_mut()) {
            last.end(change);
        }
        let had_file = before.or(name.earlier).is_some();
        let hint = change.hint.as_ref();
        stays.push(stay(
            Some(change.n),
            content,
            !is_open,
            had_file,
            keeps.is_some(),
            hint,
        ));
        if let Some(last) = stays.last_mut() {
            (last.by[0], last.returns) = (change.command, returns);
            (last.resembles, last.is_certain) = (alike.flatten(), change.is_certain);
        }
        is_open = true;
    }
}

/// Contents, as they are compared.
struct Texts<'t> {
    known: BTreeMap<Hash, Option<Arc<Lines>>>,
    text: &'t mut dyn FnMut(&Hash) -> Option<Arc<[u8]>>,
}

impl Texts<'_> {
    fn of(&mut self, hash: &Hash) -> Option<Arc<Lines>> {
        if let Some(known) = self.known.get(hash) {
            return known.clone();
        }
        let lines = (self.text)(hash).map(|text| Arc::new(Lines::of(&text)));
        self.known.insert(*hash, lines.clone());
        lines
    }

    /// Returns whether a file that had one content and has another is the same
    /// file: it has at least half of its lines. `None` if a content is not
    /// stored.
    fn keeps(&mut self, before: &Hash, after: &Hash) -> Option<bool> {
        if before == after {
            return Some(true);
        }
        if *before == Hash::of(b"") {
            return Some(false);
        }
        let (before, after) = (self.of(before)?, self.of(after)?);
        Some(match before.distinctive() {
            0 => before.alike(&after) >= HALF,
            total => before.kept(&after) * 2 >= total,
        })
    }

    /// Returns how many thousandths of two contents are alike; 0 if one of them
    /// is not stored.
    fn alike(&mut self, one: &Hash, other: &Hash) -> u64 {
        match (self.of(one), self.of(other)) {
            (Some(one), Some(other)) => one.alike(&other),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
