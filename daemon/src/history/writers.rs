//! The author that is shown for each line.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_engine::history::{Hunk, Kind, Step};
use touchmark_proto::history::{BlameLine, DiffHunk, DiffLine, LineKind};
use touchmark_proto::{Author, Evidence, SessionId, Version};

use super::{Chain, clock};
use crate::past::committed::Committed;

/// The author of each version, as far as it is known. A change whose content is
/// not stored counts as part of the next newer version, whose author is then
/// named only if all of these changes are by that author (HIST-2).
pub(super) struct Writers<'a> {
    chain: &'a Chain,
    known: Vec<bool>,
    /// For each version, whether git brought the lines that it was the first to
    /// have.
    from_git: Vec<bool>,
}

/// The author of one version.
pub(super) struct Writer<'a> {
    pub(super) version: &'a Version,
    pub(super) author: Author,
    pub(super) evidence: Evidence,
    pub(super) is_known: bool,
}

impl Writer<'_> {
    /// Returns what `file/blame` says about a line beside its text. `of` is the
    /// commit that the line belongs to, with the session that a note of the
    /// commit names.
    pub(super) fn line(&self, of: Option<(&Committed, Option<&SessionId>)>) -> BlameLine {
        let known = Some(self.version).filter(|_| self.is_known);
        BlameLine {
            text: String::new(),
            base64: None,
            author: of.map_or_else(
                || self.author.clone(),
                |(_, by)| by.map_or(Author::COMMITTED, |by| Author::agent(by.clone())),
            ),
            time: of.map_or(self.version.time, |(of, _)| of.time),
            evidence: of.map_or(self.evidence, |_| Evidence::Commit),
            commit: of.map(|(of, _)| of.commit.clone()),
            clock: clock(self.version),
            edit: known.and_then(|version| version.edit.clone()),
            command: known.and_then(|version| version.command.clone()),
        }
    }
}

impl<'a> Writers<'a> {
    pub(super) fn of(chain: &'a Chain) -> Self {
        let mut known = Vec::with_capacity(chain.versions.len());
        let mut before: Vec<&Author> = Vec::new();
        for (at, (version, step)) in chain.versions.iter().zip(&chain.steps).enumerate() {
            let is_own = before.iter().all(|author| **author == version.author);
            known.push(is_own && !chain.is_carried(at) && !chain.is_mixed(at));
            match step {
                Step::NotKept => before.push(&version.author),
                _ => before.clear(),
            }
        }
        let from_git = (0..known.len()).map(|at| chain.is_from_git(at)).collect();
        Self {
            chain,
            known,
            from_git,
        }
    }

    /// Returns the author of a line that a version was the first to have. Lines
    /// that git brought are not from who ran it (HIST-8).
    pub(super) fn of_line(&self, step: usize) -> Writer<'a> {
        let mut writer = self.of_step(step);
        if self.from_git.get(step) == Some(&true) {
            writer.author = Author::UNKNOWN;
            writer.evidence = Evidence::Gap;
            writer.is_known = false;
        }
        writer
    }

    pub(super) fn of_step(&self, step: usize) -> Writer<'a> {
        let version = self.chain.version(step);
        // What the user has said is known.
        let is_known = self.known.get(step).copied().unwrap_or(true);
        Writer {
            version,
            author: match is_known {
                true => version.author.clone(),
                false => Author::UNKNOWN,
            },
            evidence: match is_known {
                true => version.evidence,
                false => Evidence::Gap,
            },
            is_known,
        }
    }

    pub(super) fn hunk(&self, hunk: Hunk<'_>) -> DiffHunk {
        let lines = hunk.lines.into_iter().map(|compared| {
            let writer = match compared.kind {
                Kind::Context => self.of_line(compared.step),
                Kind::Added | Kind::Removed => self.of_step(compared.step),
            };
            let (text, base64, no_newline) = line(compared.text);
            DiffLine {
                kind: match compared.kind {
                    Kind::Context => LineKind::Context,
                    Kind::Added => LineKind::Added,
                    Kind::Removed => LineKind::Removed,
                },
                text,
                base64,
                no_newline,
                author: writer.author,
                time: writer.version.time,
                evidence: writer.evidence,
                clock: clock(writer.version),
            }
        });
        DiffHunk {
            old_start: hunk.old_start,
            old_lines: hunk.old_lines,
            new_start: hunk.new_start,
            new_lines: hunk.new_lines,
            lines: lines.collect(),
        }
    }
}

/// Returns a line as it is sent: its text without the line feed; its bytes, if
/// they are not UTF-8; `Some(true)` if it has no line feed.
pub(crate) fn line(bytes: &[u8]) -> (String, Option<String>, Option<bool>) {
    let (bytes, no_newline) = match bytes.strip_suffix(b"\n") {
        Some(bytes) => (bytes, None),
        None => (bytes, Some(true)),
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None, no_newline),
        Err(_) => (
            String::from_utf8_lossy(bytes).into_owned(),
            Some(STANDARD.encode(bytes)),
            no_newline,
        ),
    }
}
