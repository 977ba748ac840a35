//! Finds who wrote the lines that a commit added (HIST-6).
//!
//! - [`git`]: which lines these are, and the contents of their files.
//! - [`note`]: the result as a git note that other tools read.

pub(crate) mod git;
pub(crate) mod note;

use std::collections::BTreeMap;
use std::path::Path;

use imara_diff::{Algorithm, Diff, InternedInput};
use serde::Serialize;
use touchmark_client::Error as ClientError;
use touchmark_client::blocking::Client;
use touchmark_client::proto::history::{Blame, BlameLine, FileBlame};
use touchmark_client::proto::{At, Author, AuthorKind, Evidence, Hash, RelPath};

use crate::blame::{self, blamed};
use crate::hunks::decoded;
use crate::output::Outcome;
use git::{AddedLines, Commit, Repository};

/// A commit, and the authors of the lines that it added.
#[derive(Debug, Serialize)]
pub(crate) struct Attested {
    /// The commit's full hash.
    pub(crate) commit: String,
    /// The first line of its message.
    pub(crate) subject: String,
    /// The files, by path. Files that git does not compare by line are left
    /// out.
    pub(crate) files: Vec<AttestedFile>,
    /// The counts of all files.
    pub(crate) totals: Totals,
}

/// The lines that a commit added to one file.
#[derive(Debug, Serialize)]
pub(crate) struct AttestedFile {
    /// The path in the repository.
    pub(crate) path: RelPath,
    /// The lines, in the order of the file.
    pub(crate) ranges: Vec<AuthorRange>,
    /// Why some of its lines have no author; `None` if all have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}

/// A range of lines with one author.
#[derive(Debug, Serialize)]
pub(crate) struct AuthorRange {
    /// The first line, from 1.
    pub(crate) start: u32,
    /// The last line, inclusive.
    pub(crate) end: u32,
    /// The author.
    pub(crate) author: Author,
    /// The evidence for the author; absent for lines that touchmark has no
    /// record of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<Evidence>,
}

/// Counts of lines, by kind of author.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) lines: u32,
    pub(crate) agents: u32,
    pub(crate) user: u32,
    pub(crate) unknown: u32,
}

impl Totals {
    fn add(&mut self, range: &AuthorRange) {
        let lines = range.end - range.start + 1;
        self.lines += lines;
        *match range.author.kind {
            AuthorKind::Agent => &mut self.agents,
            AuthorKind::User => &mut self.user,
            AuthorKind::Unknown | AuthorKind::Committed => &mut self.unknown,
        } += lines;
    }
}

/// Finds the authors of the lines that a commit added.
pub(crate) fn attest(
    client: &Client,
    repository: &Repository,
    workspace: &Path,
    commit: Commit,
) -> Outcome<Attested> {
    let brought = repository.brought(&commit)?;
    let contents = repository.contents(brought.values().map(|file| file.blob.as_str()))?;
    let mut attested = Attested {
        commit: commit.id,
        subject: commit.subject,
        files: Vec::new(),
        totals: Totals::default(),
    };
    for (path, AddedLines { lines, blob }) in brought {
        let file = repository
            .top()
            .join(&*touchmark_client::proto::native::name(&path));
        let known = match contents.get(&blob) {
            None => Err("its content is too large".to_owned()),
            Some(_) if !file.starts_with(workspace) => Err("it is outside the workspace".into()),
            Some(bytes) => writers(client, &file, bytes, commit.time)?,
        };
        // Git allows no path that this refuses.
        let Ok(path) = RelPath::new(&path) else {
            continue;
        };
        attested.files.push(of_file(path, &lines, known));
    }
    let ranges = attested.files.iter().flat_map(|file| &file.ranges);
    ranges.for_each(|range| attested.totals.add(range));
    Ok(attested)
}

/// The author of a line; `None` if it is not known.
type Writer = Option<(Author, Evidence)>;

/// Returns the author of each line of a committed content, or the reason why
/// there are none.
///
/// Mostly the content is one of the file's versions. Partial commits, and files
/// that git converts (line ends, filters), have contents that no version had.
/// Their lines are looked up in the version that the file had when the commit
/// was made.
fn writers(
    client: &Client,
    file: &Path,
    bytes: &[u8],
    committed: jiff::Timestamp,
) -> Outcome<Result<Vec<Writer>, String>> {
    let same = At::Hash(Hash::of(bytes).to_string());
    // Git stores the time of a commit in whole seconds.
    let then: Option<At> = (committed + jiff::SignedDuration::from_millis(999))
        .to_string()
        .parse()
        .ok();
    let mut cause = String::new();
    for at in [Some(same), then].into_iter().flatten() {
        let ask = FileBlame {
            at: Some(at),
            // A line that is not in the history has no author here.
            commits: Some(false),
            ..FileBlame::new(file)
        };
        match blamed(client, &ask) {
            Ok(blame) if blame.lines.iter().all(|line| line.clock.is_none()) => {
                cause = "no session has named it".into();
            }
            Ok(blame) => return Ok(Ok(aligned(bytes, &blame))),
            Err(ClientError::Daemon(error)) => cause = error.message,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Err(cause))
}

/// Returns the author of each line of a content that equals the blamed version,
/// or nearly so.
fn aligned(bytes: &[u8], blame: &Blame) -> Vec<Writer> {
    let written: Vec<Vec<u8>> = blame.lines.iter().map(text).collect();
    let mut input: InternedInput<&[u8]> = InternedInput::default();
    input.update_before(written.iter().map(|line| without_end(line)));
    let committed = bytes.split_inclusive(|byte| *byte == b'\n');
    input.update_after(committed.map(without_end));
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let mut writers = vec![None; input.after.len()];
    let (mut before, mut after) = (0, 0);
    let ends = std::iter::once((input.before.len(), input.after.len()));
    let hunks = diff.hunks().map(|hunk| {
        let at = |line: u32| line as usize;
        (
            at(hunk.before.start)..at(hunk.before.end),
            at(hunk.after.start)..at(hunk.after.end),
        )
    });
    for (old, new) in hunks.chain(ends.map(|(old, new)| (old..old, new..new))) {
        let same = blame.lines[before..old.start].iter();
        for (writer, line) in writers[after..new.start].iter_mut().zip(same) {
            *writer = Some((line.author.clone(), line.evidence));
        }
        (before, after) = (old.end, new.end);
    }
    writers
}

/// Returns a line's bytes.
fn text(line: &BlameLine) -> Vec<u8> {
    let exact = line.base64.as_deref().and_then(decoded);
    exact.unwrap_or_else(|| line.text.as_bytes().to_vec())
}

/// Removes the line end, since git may store other line ends than the file has.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the lines that a commit added to a file, as ranges by author.
fn of_file(path: RelPath, lines: &[u32], known: Result<Vec<Writer>, String>) -> AttestedFile {
    let (writers, mut cause) = match known {
        Ok(writers) => (writers, None),
        Err(cause) => (Vec::new(), Some(cause)),
    };
    let mut ranges: Vec<AuthorRange> = Vec::new();
    for line in lines {
        let writer = writers.get(*line as usize - 1).cloned().flatten();
        if writer.is_none() && cause.is_none() {
            cause = Some("no version on record has these lines".into());
        }
        let (author, evidence) = match writer {
            Some((author, evidence)) => (author, Some(evidence)),
            None => (Author::UNKNOWN, None),
        };
        match ranges.last_mut() {
            Some(last)
                if last.end + 1 == *line && last.author == author && last.evidence == evidence =>
            {
                last.end = *line;
            }
            _ => ranges.push(AuthorRange {
                start: *line,
                end: *line,
                author,
                evidence,
            }),
        }
    }
    AttestedFile {
        path,
        ranges,
        cause,
    }
}

/// Returns the lines of each agent's session in a file, as ranges.
pub(crate) fn by_session(file: &AttestedFile) -> BTreeMap<&str, Vec<(u32, u32)>> {
    let mut lines: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for range in &file.ranges {
        if let Some(session) = &range.author.session {
            let own = lines.entry(session.as_str()).or_default();
            own.extend(range.start..=range.end);
        }
    }
    let ranges = lines.into_iter();
    ranges
        .map(|(session, lines)| (session, blame::ranges(lines)))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_client::proto::{Clock, SessionId};

    use super::*;

    fn blame(lines: &[(&str, &Author)]) -> Blame {
        let lines = lines.iter().map(|(text, author)| BlameLine {
            text: (*text).to_owned(),
            base64: None,
            author: (*author).clone(),
            time: 0,
            evidence: Evidence::Declared,
            clock: Some(Clock { epoch: 1, n: 1 }),
            edit: None,
            command: None,
            commit: None,
        });
        Blame {
            path: RelPath::new(b"f").unwrap(),
            clock: None,
            hash: Hash::of(b""),
            start: 1,
            lines: lines.collect(),
            cause: None,
        }
    }

    #[test]
    fn lines_that_the_version_has_not_are_nobodys() {
        let agent = Author {
            kind: AuthorKind::Agent,
            session: Some(SessionId::new("s").unwrap()),
            label: None,
        };
        let user = Author {
            kind: AuthorKind::User,
            ..Author::UNKNOWN
        };
        let version = blame(&[("a", &agent), ("b\r", &user), ("c", &agent), ("d", &user)]);
        let said = |committed: &[u8]| {
            let file = of_file(
                RelPath::new(b"f").unwrap(),
                &(1..=u32::try_from(committed.split_inclusive(|b| *b == b'\n').count()).unwrap())
                    .collect::<Vec<_>>(),
                Ok(aligned(committed, &version)),
            );
            let ranges = file.ranges.iter();
            let kinds: Vec<_> = ranges
                .map(|range| (range.start, range.end, range.author.kind))
                .collect();
            (kinds, file.cause.is_some())
        };
        use AuthorKind::{Agent, Unknown, User};
        // Some of the version's lines, with other line ends, and the last
        // without one.
        assert_eq!(said(b"a\nb\nd"), (vec![(1, 1, Agent), (2, 3, User)], false));
        assert_eq!(
            said(b"a\r\nother\nc\n"),
            (vec![(1, 1, Agent), (2, 2, Unknown), (3, 3, Agent)], true)
        );
        assert_eq!(said(b""), (vec![], false));
    }
}
