//! How `HEAD` moved, from git's log of it, and which files each move changed.
//!
//! The log may have been part of a copy of the repository, so it is untrusted
//! input. It only says where to look: contents decide.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::Stdio;

use gix_index::hash::ObjectId;
use rustix::fs::OFlags;

use super::blobs::Changed;
use crate::git::files::directories;
use crate::git::git;
use crate::system::open::patient;

/// The most bytes of the log that are read, the newest.
const MOST: u64 = 1 << 20;

/// The most files of one move.
const MOST_FILES: usize = 200_000;

/// One move of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// The id of the commit before; `None` for the first one.
    pub(crate) before: Option<String>,
    /// The id of the commit after.
    pub(crate) id: String,
    /// In whole seconds since 1970.
    pub(crate) second: u64,
    /// What git says about it, such as `checkout: moving from main to x`.
    pub(crate) why: String,
}

/// The kinds of moves, as far as they matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A switch, or another checkout of a commit. Forced, it destroys what is
    /// not committed.
    Switch,
    /// Another way from one whole state to another: a pull, merge, rebase or
    /// cherry-pick.
    Carries,
    /// A commit, a reset, a revert, and what is not known.
    Other,
}

impl Move {
    pub(super) fn kind(&self) -> Kind {
        let word = self.why.split([' ', ':']).next().unwrap_or_default();
        match word {
            "checkout" => Kind::Switch,
            "pull" | "merge" | "rebase" | "cherry-pick" => Kind::Carries,
            _ => Kind::Other,
        }
    }

    /// Returns which files the move changed; `None` if git cannot tell.
    pub(super) fn changed(&self, top: &Path) -> Option<Changed> {
        let before = self.before.as_ref()?;
        let mut git = git(top)
            .args(["diff-tree", "-r", "-z", "--raw", "--no-renames"])
            .args(["--no-abbrev", "--no-ext-diff", before, &self.id])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut listed = Vec::new();
        // More is not read, so git ends by itself.
        let most = MOST_FILES as u64 * 256;
        let read = git.stdout.take()?.take(most).read_to_end(&mut listed);
        let ended = git.wait();
        read.ok()?;
        if !ended.ok()?.success() {
            return None;
        }
        Some(parsed(&listed))
    }
}

/// Returns the paths in the output of `diff-tree --raw -z`, each with its blobs.
fn parsed(listed: &[u8]) -> Changed {
    let mut fields = listed.split(|byte| *byte == 0);
    let mut changed = Changed::new();
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let mut words = head.split(|byte| *byte == b' ').skip(2);
        let mut id = || {
            let id = ObjectId::from_hex(words.next()?).ok()?;
            (!id.is_null()).then_some(id)
        };
        let both = (id(), id());
        changed.insert(path.to_vec(), both);
    }
    changed
}

/// Returns the moves in the log of `HEAD` in this git directory, oldest first.
/// There are none if git keeps no log (`core.logAllRefUpdates`).
pub(super) fn moves(own: &Path) -> Vec<Move> {
    let bytes = newest(&own.join("logs/HEAD"), MOST).unwrap_or_default();
    // The last line may be incomplete. The next look finds it.
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .filter_map(|line| parsed_line(line.strip_suffix(b"\n")?))
        .collect()
}

/// Returns the moves of `HEAD` in the repository that a workspace is in.
pub(crate) fn moves_in(root: &Path) -> Vec<Move> {
    let top = super::place::top_of(&root.join("any"));
    let own = top.and_then(|(top, _)| directories(&top));
    own.map_or_else(Vec::new, |(own, _)| moves(&own))
}

/// Reads the last bytes of a regular file that is not a link.
pub(super) fn newest(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = patient()
        .custom_flags(flags.bits().cast_signed())
        .read(true)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("no file"));
    }
    file.seek(SeekFrom::Start(found.len().saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the move in a line of the log; `None` for anything else.
pub(super) fn parsed_line(line: &[u8]) -> Option<Move> {
    let tab = line.iter().position(|byte| *byte == b'\t');
    let (head, why) = match tab {
        Some(tab) => (&line[..tab], &line[tab + 1..]),
        None => (line, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let mut words = head.split(' ');
    let (before, id) = (words.next()?, words.next()?);
    let is_id = |word: &str| {
        matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if !is_id(before) || !is_id(id) {
        return None;
    }
    let is_first = before.bytes().all(|byte| byte == b'0');
    Some(Move {
        before: (!is_first).then(|| before.to_owned()),
        id: id.to_owned(),
        second: head.rsplit(' ').nth(1)?.parse().ok()?,
        why: String::from_utf8_lossy(why).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_line_of_the_log_is_a_move() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let line = format!("{a} {b} Some One <one@x> 1795629904 +0000\tpull -q . up: Fast-forward");
        let found = parsed_line(line.as_bytes()).unwrap();
        assert_eq!((found.before, &*found.id), (Some(a.clone()), &*b));
        assert_eq!(
            (found.second, &*found.why),
            (1_795_629_904, "pull -q . up: Fast-forward")
        );
        let kind = |why: &str| {
            let line = format!("{a} {b} S <o@x> 17 +0000\t{why}");
            parsed_line(line.as_bytes()).unwrap().kind()
        };
        assert_eq!(kind("pull -q . up: Fast-forward"), Kind::Carries);
        assert_eq!(kind("rebase (pick): one"), Kind::Carries);
        assert_eq!(kind("checkout: moving from a to b"), Kind::Switch);
        for why in [
            "commit (amend): x",
            "reset: moving to HEAD",
            "revert: x",
            "",
        ] {
            assert_eq!(kind(why), Kind::Other, "{why}");
        }
        assert_eq!(parsed_line(b"no line of such a log"), None);
    }
}
