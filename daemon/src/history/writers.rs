//! Who wrote which line, as it is told.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_engine::history::{Hunk, Kind, Step};
use touchmark_proto::history::{DiffHunk, DiffLine, LineKind};
use touchmark_proto::{Author, Evidence, Version};

use super::{Chain, clock};

/// Who wrote each version, as far as that can be told: what was between two
/// versions and is not kept counts with the newer, whose author is only named
/// if all of them are his (HIST-2).
pub(super) struct Writers<'a> {
    versions: &'a [Version],
    known: Vec<bool>,
}

/// Who wrote one of them.
pub(super) struct Writer<'a> {
    pub(super) version: &'a Version,
    pub(super) author: Author,
    pub(super) evidence: Evidence,
    pub(super) is_known: bool,
}

impl<'a> Writers<'a> {
    pub(super) fn of(chain: &'a Chain) -> Self {
        let mut known = Vec::with_capacity(chain.versions.len());
        let mut before: Vec<&Author> = Vec::new();
        for (version, step) in chain.versions.iter().zip(&chain.steps) {
            known.push(before.iter().all(|author| **author == version.author));
            match step {
                Step::NotKept => before.push(&version.author),
                _ => before.clear(),
            }
        }
        Self {
            versions: &chain.versions,
            known,
        }
    }

    pub(super) fn of_step(&self, step: usize) -> Writer<'a> {
        let version = &self.versions[step];
        let is_known = self.known[step];
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
            let writer = self.of_step(compared.step);
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

/// A line as it travels: without its line feed; its bytes, where they are not
/// UTF-8; whether it has no line feed.
pub(super) fn line(bytes: &[u8]) -> (String, Option<String>, Option<bool>) {
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
