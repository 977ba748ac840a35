//! What an agent's command has taken away of the uncommitted work of others
//! (HOOK-7): found when the command has ended, told to the model and shown to
//! its user, with the command that brings it back.

mod committed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use touchmark_engine::ranges::RangeSet;
use touchmark_engine::recall::command_number;
use touchmark_engine::text::lines;
use touchmark_engine::text::missing::{SeenText, missing};
use touchmark_engine::{Fact, VersionFact};
use touchmark_proto::commands::CommandRow;
use touchmark_proto::quoting::{quoted, restore_command};
use touchmark_proto::writes::RecoveryItem;
use touchmark_proto::{Clock, FileMode, Hash, RelPath, SessionId};

use super::daemon_handle::DaemonHandle;
use super::notice;
use crate::context::{Context, aside};
use crate::git::WorkTree;
use crate::links::absolute;
use crate::past::top_of;
use crate::store::{Reader, StoreError};
use committed::{Committed, OfFile};

/// The most files of one command that are looked at.
const MOST_FILES: usize = 256;

/// The most files that one notice names.
const NAMED: usize = 8;

/// The most versions of a file in which the session's own lines are looked for.
const VERSIONS: usize = 64;

/// What one command took away.
#[derive(Debug, Default)]
struct Wiped {
    /// The files, each with the command that brings its lines back; `None` if
    /// its content or its name cannot be in one.
    files: Vec<(RelPath, usize, Option<String>)>,
    /// How many files are in the stash that the command made.
    stashed: usize,
    /// Whether git did not say in time what commits have.
    is_unsure: bool,
    /// Whether the command removed ignored files.
    has_ignored: bool,
    /// Contents that ignored files had which are gone now (SCOPE-10). What a
    /// command overwrites of them is mostly what programs make again.
    kept: Vec<RecoveryItem>,
    /// What is recorded.
    facts: Vec<Fact>,
}

/// A content, and the lines of it that its version added.
type Written = (Arc<[u8]>, RangeSet);

/// Files of one work tree, and their names in the repository.
type OfTree = (Vec<Gone>, Vec<Vec<u8>>);

/// A file that a command changed.
struct Changed {
    path: RelPath,
    /// The first and the last version that the command made.
    first: u64,
    last: u64,
    /// The content before the command.
    before: Hash,
    /// The content after the command; `None` for no file.
    after: Option<Hash>,
    /// The version before.
    replaced: Option<u64>,
}

/// A file with lines that are gone.
struct Gone {
    file: Changed,
    old: Arc<[u8]>,
    after: Option<Arc<[u8]>>,
    own: Vec<Written>,
    /// Less than half of it is left.
    is_most: bool,
}

/// Returns what a command took away of the uncommitted work of others, and
/// records it. If git does not answer in time, it is told with the next event.
pub(super) async fn told(
    daemon: &DaemonHandle,
    session: &SessionId,
    row: &CommandRow,
    patience: Duration,
) -> Option<String> {
    if row.versions == 0 {
        // Ignored files that were removed make no version.
        return Wiped::of(&daemon.cx, row).text(row);
    }
    let cx = daemon.cx.at_leisure();
    let found = find(cx.clone(), session.clone(), row.clone());
    let mut found = tokio::spawn(found);
    if let Ok(found) = tokio::time::timeout(patience, &mut found).await {
        let mut found = found.ok()?;
        cx.inside.record(found.facts());
        return found.text(row);
    }
    let (memory, session, row) = (Arc::clone(&daemon.memory), session.clone(), row.clone());
    tokio::spawn(async move {
        if let Ok(mut found) = found.await {
            cx.inside.record(found.facts());
            memory.say_later(&cx.inside, &session, found.text(&row));
        }
    });
    None
}

/// Returns what a command has taken away of the uncommitted work of others.
async fn find(cx: Context, session: SessionId, row: CommandRow) -> Wiped {
    let mut wiped = Wiped::of(&cx, &row);
    let (Ok(log), Some(command)) = (cx.log(), command_number(&row.command)) else {
        return wiped;
    };
    let workspace = Arc::clone(&cx.workspace);
    let (begun, begun_at) = (row.begun, row.begun_at);
    let found = aside(move || {
        let gone = {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            gone(&log, &session, command, begun.n).unwrap_or_default()
        };
        let mut by_top: BTreeMap<Option<PathBuf>, OfTree> = BTreeMap::new();
        for one in gone {
            let (top, own) = match top_of(&absolute(&workspace.root, &one.file.path)) {
                Some((top, own)) => (Some(top), own),
                None => (None, Vec::new()),
            };
            let (files, names) = by_top.entry(top).or_default();
            files.push(one);
            names.push(own);
        }
        for (top, (files, names)) in by_top {
            let tree = top.and_then(|top| WorkTree::at(&top, &workspace.places));
            let committed = tree.map(|tree| Committed::of(&tree, &names, begun_at / 1_000));
            wiped.is_unsure |= matches!(committed, Some(None));
            let committed = committed.flatten().unwrap_or_default();
            for (nth, one) in files.iter().enumerate() {
                wiped.add(one, committed.files.get(nth), &session, begun.epoch);
            }
        }
        wiped
    });
    found.await.unwrap_or_default()
}

/// Returns whether a command removes ignored files, which no look has read.
fn removes_ignored(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let clean = words.iter().position(|word| *word == "clean");
    clean.is_some_and(|clean| {
        let flags = words[clean..].iter();
        let is_flag = |word: &&str| word.starts_with('-') && !word.starts_with("--");
        let flags: String = flags.filter(|word| is_flag(word)).copied().collect();
        words[..clean].contains(&"git") && flags.contains(['x', 'X']) && !flags.contains('n')
    })
}

/// Returns the files of which a command has taken away lines that its session
/// had not written.
fn gone(
    log: &Reader,
    session: &SessionId,
    command: u64,
    begun: u64,
) -> Result<Vec<Gone>, StoreError> {
    let mut files: BTreeMap<RelPath, Changed> = BTreeMap::new();
    let mut moved: BTreeSet<Hash> = BTreeSet::new();
    for record in log.versions_after(begun)? {
        let Fact::Version(version) = record.fact else {
            continue;
        };
        // What later proves to be another author's is not the command's.
        if let Some(amended) = version.amends {
            if !version.author.is(session) {
                files.retain(|_, known| known.first != amended);
            }
            continue;
        }
        let modes = [version.held.mode, version.mode_before];
        if version.command != Some(command) || modes.into_iter().flatten().any(FileMode::is_link) {
            continue;
        }
        if let Some(known) = files.get_mut(&version.path) {
            (known.last, known.after) = (record.n, version.held.hash);
            continue;
        }
        if files.len() == MOST_FILES {
            continue;
        }
        let Some(before) = version.before.filter(|_| version.from.is_none()) else {
            moved.extend(version.held.hash);
            continue;
        };
        let file = Changed {
            path: version.path.clone(),
            first: record.n,
            last: record.n,
            before,
            after: version.held.hash,
            replaced: None,
        };
        files.insert(version.path, file);
    }
    let mut found = Vec::new();
    for mut file in files.into_values() {
        // What has another name now is not gone.
        if file.after == Some(file.before) || (file.after.is_none() && moved.contains(&file.before))
        {
            continue;
        }
        let (Some(old), Ok(after)) = (
            log.content(&file.before)?,
            file.after.map(|after| log.content(&after)).transpose(),
        ) else {
            continue;
        };
        let after = match after {
            Some(None) => continue,
            after => after.flatten(),
        };
        let mut own = Vec::new();
        for record in log.history(&file.path, Some(file.first), VERSIONS)? {
            file.replaced = file.replaced.or(Some(record.n));
            if let Fact::Version(version) = &record.fact
                && version.author.is(session)
            {
                own.extend(written(log, version)?);
            }
        }
        // Git is not asked about what the session has written itself.
        let seen = own.iter().map(|(text, lines)| SeenText { text, lines });
        let seen: Vec<SeenText<'_>> = seen.collect();
        let later: Vec<&[u8]> = after.as_deref().into_iter().collect();
        if missing(&seen, &old, &later).is_some_and(|left| left.is_empty()) {
            continue;
        }
        let is_most = after.as_ref().is_none_or(|after| is_other(&old, after));
        found.push(Gone {
            file,
            old,
            after,
            own,
            is_most,
        });
    }
    Ok(found)
}

/// Returns the content of a version, and the lines that it added.
fn written(log: &Reader, version: &VersionFact) -> Result<Option<Written>, StoreError> {
    let Some(hash) = version.held.hash else {
        return Ok(None);
    };
    let before = match version.before {
        Some(before) => log.content(&before)?,
        None => Some([].into()),
    };
    let (Some(before), Some(after)) = (before, log.content(&hash)?) else {
        return Ok(None);
    };
    let added = lines::added(&before, &after).unwrap_or_default();
    Ok(Some((after, added.into_iter().collect())))
}

/// Returns whether less than half of the words of a text are left in another.
/// A formatter keeps them.
fn is_other(old: &[u8], new: &[u8]) -> bool {
    let (old, new) = (words(old), words(new));
    let all: usize = old.values().sum();
    let left = old.iter().map(|(word, count)| {
        let there = new.get(word).copied().unwrap_or_default();
        there.min(*count)
    });
    left.sum::<usize>() * 2 < all
}

/// Returns the words of a text, with how often each occurs.
fn words(text: &[u8]) -> BTreeMap<&[u8], usize> {
    let mut all: BTreeMap<&[u8], usize> = BTreeMap::new();
    for word in text.split(u8::is_ascii_whitespace) {
        if !word.is_empty() {
            *all.entry(word).or_default() += 1;
        }
    }
    all
}

impl Wiped {
    /// Returns what is known of ignored files.
    fn of(cx: &Context, row: &CommandRow) -> Self {
        let workspace = &cx.workspace;
        let mut kept = match row.witnessed {
            true => workspace.guard.ignored_since(row.begun_at),
            false => Vec::new(),
        };
        kept.retain(|item| {
            let place = absolute(&workspace.root, &item.path);
            place.symlink_metadata().is_err()
        });
        Self {
            has_ignored: removes_ignored(row.label.as_deref().unwrap_or_default()),
            kept,
            ..Self::default()
        }
    }

    /// Adds a file if the lines that were removed from it are uncommitted work
    /// of others.
    fn add(&mut self, one: &Gone, committed: Option<&OfFile>, session: &SessionId, epoch: u64) {
        let none = OfFile::default();
        let committed = committed.unwrap_or(&none);
        if committed.has(&one.old) {
            return;
        }
        // A tool that changes lines here and there, such as a formatter, takes
        // no work away.
        let by_git = one.after.as_ref().is_some_and(|after| committed.has(after));
        if one.after.is_some() && !by_git && !one.is_most {
            return;
        }
        let whole = RangeSet::whole();
        let own = one.own.iter().map(|(text, lines)| SeenText { text, lines });
        let texts = committed.texts.iter().map(|text| SeenText {
            text,
            lines: &whole,
        });
        let mut seen: Vec<SeenText<'_>> = own.chain(texts).collect();
        let later: Vec<&[u8]> = one.after.as_deref().into_iter().collect();
        let gone = missing(&seen, &one.old, &later);
        if gone.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        for (stashed, is_new) in &committed.stashed {
            seen.push(SeenText {
                text: stashed,
                lines: &whole,
            });
            let is_there = match &gone {
                Some(_) => missing(&seen, &one.old, &later).is_some_and(|left| left.is_empty()),
                None => stashed[..] == one.old[..],
            };
            if is_there {
                self.stashed += usize::from(*is_new);
                return;
            }
        }
        let count = gone.iter().flatten();
        let count = count
            .map(|range| (range.end - range.start + 1) as usize)
            .sum();
        let file = &one.file;
        let clock = Clock {
            epoch,
            n: file.replaced.unwrap_or(file.first.saturating_sub(1)),
        };
        self.files
            .push((file.path.clone(), count, restore_command(&file.path, clock)));
        self.facts.push(Fact::Lost {
            session: session.clone(),
            path: file.path.clone(),
            version: clock.n,
            by: file.last,
            seen: Vec::new(),
            lines: Some(match gone {
                Some(ranges) => ranges.into_iter().collect(),
                None => whole,
            }),
        });
    }

    /// Takes what is recorded.
    fn facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.facts)
    }

    /// Returns the text for the model, and for its user; `None` if nothing was
    /// taken away.
    fn text(&self, row: &CommandRow) -> Option<String> {
        let mut texts = Vec::new();
        if !self.files.is_empty() {
            let rows = self.files.iter().take(NAMED).map(|(path, lines, back)| {
                let size = match lines {
                    0 => String::new(),
                    lines => format!("{}; ", notice::count(*lines, "line")),
                };
                let back = match back {
                    Some(back) => format!("`{back}` brings it back"),
                    None => format!("`touchmark undo --command {}` brings it back", row.command),
                };
                format!("{} ({size}{back})", quoted(&path.to_string_lossy(), 200))
            });
            let rows: Vec<String> = rows.collect();
            let more = match self.files.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(
                    "; and {more} more files: `touchmark undo --command {}` brings back all",
                    row.command
                ),
            };
            texts.push(format!(
                "While this command ran, uncommitted work of others was removed: {}{more}.",
                rows.join("; ")
            ));
            if self.is_unsure {
                texts.push("Git did not answer in time: a commit may have this work.".to_owned());
            }
        }
        if self.stashed > 0 {
            texts.push(format!(
                "While this command ran, uncommitted work of others in {} was put into a stash: `git stash pop` brings it back.",
                notice::count(self.stashed, "file")
            ));
        }
        if !self.kept.is_empty() {
            let rows = self.kept.iter().take(NAMED).map(|item| {
                let path = quoted(&item.path.to_string_lossy(), 200);
                format!(
                    "{path} (`touchmark recovered restore {}` brings it back)",
                    item.id
                )
            });
            let rows: Vec<String> = rows.collect();
            let more = match self.kept.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!("; and {more} more files: `touchmark recovered` lists all"),
            };
            texts.push(format!(
                "While this command ran, ignored files were removed: {}{more}.",
                rows.join("; ")
            ));
        }
        if self.has_ignored {
            let which = match self.kept.is_empty() {
                true => "Ignored files",
                false => "Other ignored files",
            };
            texts.push(format!(
                "{which} that this command removed cannot be brought back, except those that a session had read."
            ));
        }
        (!texts.is_empty()).then(|| texts.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatter_leaves_the_words() {
        let old = b"if a { b }\nelse { c }\n";
        assert!(!is_other(old, b"if a {\n  b\n} else {\n  c\n}\n"));
        assert!(!is_other(old, b"if a { x }\nelse { c }\n"));
        assert!(is_other(old, b"while d { e }\n"));
        assert!(is_other(old, b""));
        assert!(!is_other(b"", b"a"));
    }

    #[test]
    fn a_clean_may_remove_ignored_files() {
        for command in ["git clean -fdx", "cd a && git -C b clean -f -X"] {
            assert!(removes_ignored(command), "{command}");
        }
        for command in [
            "git clean -fd",
            "make clean -x",
            "rm -rf x",
            "git clean --exclude=x -f",
            "git clean -ndx",
        ] {
            assert!(!removes_ignored(command), "{command}");
        }
    }
}
