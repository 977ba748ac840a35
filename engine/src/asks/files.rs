//! `file/*`: what sessions have read, and what their copies are worth.

use base64::Engine as _;
use touchmark_proto::daemon::Done;
use touchmark_proto::events::Happening;
use touchmark_proto::files::{
    FileHistory, FileInvalidate, FileList, FileMention, FileRead, FileReadResult, FileReadText,
    FileRecords, FileStates, FileStatus, FileText, FileUntrack, Source, TextEncoding, Verdict,
};
use touchmark_proto::{
    Author, Change, Error, ErrorCode, ErrorData, FileState, Hash, LineRange, Millis, RelPath,
    Reply, RequestId, SessionId,
};

use super::{done, path_cursor, show, show_authors};
use crate::cursor::write_path;
use crate::effect::{Answer, Effect, LinesWanted, Marks, Recall};
use crate::engine::Engine;
use crate::input::Found;
use crate::pending::{Pending, Step};
use crate::record::Fact;

/// A read about to be recorded.
struct Reading<'a> {
    session: &'a SessionId,
    path: &'a RelPath,
    /// `None` where it cannot be tied to a content (SEEN-1).
    hash: Option<Hash>,
    lines: u32,
    range: Option<LineRange>,
    source: Source,
    step: Option<u64>,
}

/// A read as it was recorded.
struct Recorded {
    verdict: Verdict,
    read_count: u32,
    message: Option<String>,
    changed_by: Option<Vec<Author>>,
    since: Option<Millis>,
    change: Option<Change>,
    texts: Option<(Option<Hash>, Option<Hash>)>,
}

impl Engine {
    pub(super) fn file_read(&mut self, pending: &mut Pending, ask: &FileRead) -> Step {
        let path = match self.resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        if ask.range.is_some_and(|range| !range.is_valid()) {
            return Step::Done(Err(wrong_range()));
        }
        if let Some(step) = self.read_first(pending, &path) {
            return step;
        }
        if ask.hash.is_none()
            && let Some(error) = self.unusable(&path, pending)
        {
            return Step::Done(Err(error));
        }
        let now = self.current(&path, pending.found.get(&path));
        if ask.hash.is_none() && now.held.hash.is_none() && now.trouble.is_none() {
            return Step::Done(Err(not_found(&path)));
        }
        // The daemon's own hash speaks for the reader only if the file did
        // not change between the request and it (SEEN-1).
        let hash = ask.hash.or_else(|| {
            now.held
                .hash
                .filter(|_| now.trouble.is_none() && !self.changed_meanwhile(pending, &path))
        });
        let lines = if ask.hash.is_none() || ask.hash == now.held.hash {
            now.held.lines
        } else {
            ask.total_lines
                .or_else(|| ask.text.as_deref().map(count_lines))
                .unwrap_or(now.held.lines)
        };
        let lines = match (ask.range, ask.hash == now.held.hash || ask.hash.is_none()) {
            // A range that reaches beyond what is known of another content
            // says that it has at least those lines.
            (Some(range), false) => lines.max(range.end),
            _ => lines,
        };
        self.ensure_session(&ask.session);
        self.begin_log(&path, pending);
        let recorded = self.record_read(&Reading {
            session: &ask.session,
            path: &path,
            hash,
            lines,
            range: ask.range,
            source: ask.source.unwrap_or(Source::ReadTool),
            step: ask.step,
        });
        Step::Done(Ok(Answer {
            lines: recorded
                .texts
                .filter(|_| recorded.change.is_some())
                .map(|(old, new)| LinesWanted { index: 0, old, new })
                .into_iter()
                .collect(),
            reply: Reply::FileRead(FileReadResult {
                verdict: recorded.verdict,
                read_count: recorded.read_count,
                hash,
                line_count: lines,
                message: recorded.message,
                changed_by: recorded.changed_by,
                since: recorded.since,
                change: recorded.change,
            }),
            previews: Vec::new(),
        }))
    }

    pub(super) fn file_read_text(&mut self, pending: &mut Pending, ask: &FileReadText) -> Step {
        let path = match self.resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        if ask.range.is_some_and(|range| !range.is_valid()) {
            return Step::Done(Err(wrong_range()));
        }
        let track = ask.track != Some(false);
        let with_bytes = pending
            .found
            .get(&path)
            .is_some_and(|outcome| outcome.bytes.is_some());
        if !with_bytes {
            // A repeat needs no text, so nothing is read for it.
            if let Some(step) = self.read_first(pending, &path) {
                return step;
            }
            let now = self.current(&path, pending.found.get(&path));
            let repeat = track
                && !ask.force
                && now.trouble.is_none()
                && now.held.hash.is_some()
                && self.verdict(
                    &ask.session,
                    &path,
                    now.held.hash,
                    ask.range,
                    now.held.lines,
                ) == Verdict::Repeat;
            if !repeat {
                if let Some(error) = self.unusable(&path, pending) {
                    return Step::Done(Err(error));
                }
                if now.held.hash.is_none() && now.trouble.is_none() {
                    return Step::Done(Err(not_found(&path)));
                }
                if pending.rechecked {
                    return Step::Done(Err(Error::path(
                        ErrorCode::Unreadable,
                        &path,
                        format!("{} changes faster than it can be read", show(&path)),
                    )
                    .hint("ask again when its writer has paused")));
                }
                pending.rechecked = true;
                return Step::Read(vec![path], true);
            }
            let reading = Reading {
                session: &ask.session,
                path: &path,
                hash: now.held.hash,
                lines: now.held.lines,
                range: ask.range,
                source: Source::ReadTool,
                step: ask.step,
            };
            let recorded = self.record_read(&reading);
            return done(Reply::FileReadText(FileText {
                verdict: recorded.verdict,
                text: None,
                message: recorded.message,
                hash: now.held.hash,
                line_count: now.held.lines,
                range: ask.range,
                truncated: false,
                encoding: TextEncoding::Utf8,
            }));
        }
        let Some((content, bytes)) =
            pending
                .found
                .get(&path)
                .and_then(|outcome| match (&outcome.found, &outcome.bytes) {
                    (Found::File(content), Some(bytes)) => Some((*content, bytes.clone())),
                    _ => None,
                })
        else {
            return Step::Done(Err(not_found(&path)));
        };
        let cut = match cut(&bytes, ask.range, content.lines, self.config.read_text) {
            Ok(cut) => cut,
            Err(error) => {
                return Step::Done(Err(error.with(ErrorData {
                    path: Some(path),
                    limit: Some(self.config.read_text),
                    size: Some(content.size),
                    ..ErrorData::default()
                })));
            }
        };
        let mut answer = FileText {
            verdict: Verdict::First,
            text: Some(cut.text),
            message: None,
            hash: Some(content.hash),
            line_count: content.lines,
            range: cut.range,
            truncated: cut.truncated,
            encoding: cut.encoding,
        };
        if track {
            self.ensure_session(&ask.session);
            self.begin_log(&path, pending);
            let whole = cut
                .range
                .is_none_or(|range| range.start == 1 && range.end >= content.lines);
            let recorded = self.record_read(&Reading {
                session: &ask.session,
                path: &path,
                hash: Some(content.hash),
                lines: content.lines,
                range: cut.range.filter(|_| !whole),
                source: Source::ReadTool,
                step: ask.step,
            });
            answer.verdict = recorded.verdict;
            answer.message = recorded
                .message
                .filter(|_| recorded.verdict != Verdict::Repeat);
        }
        done(Reply::FileReadText(answer))
    }

    pub(super) fn file_mention(&mut self, pending: &mut Pending, ask: &FileMention) -> Step {
        let path = match self.resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        if ask.range.is_some_and(|range| !range.is_valid()) {
            return Step::Done(Err(wrong_range()));
        }
        if let Some(step) = self.read_first(pending, &path) {
            return step;
        }
        if let Some(error) = self.unusable(&path, pending) {
            return Step::Done(Err(error));
        }
        self.ensure_session(&ask.session);
        self.begin_log(&path, pending);
        let now = self.current(&path, None);
        match ask.hash {
            Some(hash) => {
                let lines = if Some(hash) == now.held.hash {
                    now.held.lines
                } else {
                    ask.range
                        .map_or(now.held.lines, |range| range.end.max(now.held.lines))
                };
                self.record_read(&Reading {
                    session: &ask.session,
                    path: &path,
                    hash: Some(hash),
                    lines,
                    range: ask.range,
                    source: Source::FileMentioned,
                    step: ask.step,
                });
            }
            None => {
                self.hold(&ask.session, &path, Source::FileMentioned, ask.step);
            }
        }
        done(Reply::FileMention(self.file_state(
            &ask.session,
            &path,
            None,
        )))
    }

    pub(super) fn file_invalidate(&mut self, ask: &FileInvalidate) -> Step {
        let path = match ask.path.as_ref().map(|path| self.resolve(path)).transpose() {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        self.ensure_session(&ask.session);
        self.record(Fact::Invalidated {
            session: ask.session.clone(),
            path,
        });
        done(Reply::FileInvalidate(Done {}))
    }

    pub(super) fn file_status(&mut self, pending: &mut Pending, ask: &FileStatus) -> Step {
        self.ensure_session(&ask.session);
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let named = ask.paths.is_some();
        let from: Option<usize> = ask
            .cursor
            .as_deref()
            .filter(|_| named)
            .and_then(|cursor| cursor.parse().ok());
        let cursor = match path_cursor(ask.cursor.as_deref().filter(|_| !named)) {
            Ok(cursor) => cursor,
            Err(error) => return Step::Done(Err(error)),
        };
        let paths: Vec<RelPath> = match &ask.paths {
            Some(named) => {
                let mut paths = Vec::with_capacity(named.len());
                for path in named {
                    match self.resolve(path) {
                        Ok(path) => paths.push(path),
                        Err(error) => return Step::Done(Err(error)),
                    }
                }
                paths
            }
            None => self
                .state
                .sessions
                .get(&ask.session)
                .map(|session| session.files.keys().cloned().collect())
                .unwrap_or_default(),
        };
        if pending.verify && !pending.rechecked && !paths.is_empty() {
            pending.rechecked = true;
            return Step::Read(paths, false);
        }
        // Tracked when the question came, and let go since.
        let unknown: Vec<RelPath> = paths
            .iter()
            .filter(|path| {
                !self.state.paths.contains_key(*path) && !pending.found.contains_key(*path)
            })
            .cloned()
            .collect();
        if !unknown.is_empty() {
            return Step::Read(unknown, false);
        }
        if ask.paths.is_some() {
            for path in &paths {
                self.name_copy(&ask.session, path);
            }
        }
        let mut files: Vec<FileState> = Vec::new();
        let mut more = None;
        for (index, path) in paths.iter().enumerate() {
            // Named paths keep their order and their repeats, so the cursor
            // counts them; all others go by name.
            let seen_already = if named {
                from.is_some_and(|from| index < from)
            } else {
                cursor.as_ref().is_some_and(|cursor| path <= cursor)
            };
            if seen_already {
                continue;
            }
            if files.len() == limit {
                more = if named {
                    Some(index.to_string())
                } else {
                    files.last().map(|file| write_path(&file.path))
                };
                break;
            }
            let file = self.file_state(&ask.session, path, pending.found.get(path));
            if ask.state.is_empty() || ask.state.contains(&file.state) {
                files.push(file);
            }
        }
        done(Reply::FileStatus(FileStates { files, more }))
    }

    pub(super) fn file_list(&mut self, pending: &mut Pending, ask: &FileList) -> Step {
        self.ensure_session(&ask.session);
        if let Some(paths) = self.verify_paths(pending, &ask.session) {
            return Step::Read(paths, false);
        }
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let cursor = match path_cursor(ask.cursor.as_deref()) {
            Ok(cursor) => cursor,
            Err(error) => return Step::Done(Err(error)),
        };
        let paths: Vec<RelPath> = self
            .state
            .sessions
            .get(&ask.session)
            .map(|session| session.files.keys().cloned().collect())
            .unwrap_or_default();
        let mut files = Vec::new();
        let mut previews = Vec::new();
        let mut more = None;
        for path in paths {
            if cursor.as_ref().is_some_and(|cursor| path <= *cursor) {
                continue;
            }
            if files.len() >= limit {
                more = files
                    .last()
                    .map(|file: &touchmark_proto::files::FileRecord| write_path(&file.path));
                break;
            }
            for (record, hash) in self.records(&ask.session, &path, ask.all) {
                if let Some(hash) = hash {
                    previews.push((files.len(), hash));
                }
                files.push(record);
            }
        }
        Step::Done(Ok(Answer {
            reply: Reply::FileList(FileRecords { files, more }),
            lines: Vec::new(),
            previews,
        }))
    }

    pub(super) fn file_history(
        &mut self,
        request: RequestId,
        pending: &mut Pending,
        ask: &FileHistory,
    ) -> Step {
        let path = match self.resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        let before = match ask.before.map(|clock| self.known_clock(clock)).transpose() {
            Ok(before) => before,
            Err(error) => return Step::Done(Err(error)),
        };
        if pending.verify && !pending.rechecked && self.state.paths.contains_key(&path) {
            pending.rechecked = true;
            return Step::Read(vec![path], false);
        }
        let overwritten = self.state.paths.get(&path).map_or_else(Vec::new, |state| {
            state
                .versions
                .iter()
                .filter(|kept| kept.lost)
                .map(|kept| kept.n)
                .collect()
        });
        Step::Passed(Effect::Recall {
            request,
            recall: Recall::History {
                path,
                before,
                limit: ask.limit.unwrap_or(self.config.list_limit) as usize,
                marks: Marks {
                    overwritten,
                    open_edits: self.state.edits.keys().copied().collect(),
                },
            },
        })
    }

    pub(super) fn file_untrack(&mut self, ask: &FileUntrack) -> Step {
        let path = match self.resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        self.ensure_session(&ask.session);
        if self.state.knowledge(&ask.session, &path).is_some() {
            self.record(Fact::Untracked {
                session: ask.session.clone(),
                path: path.clone(),
            });
            self.unwatch(&path);
        }
        done(Reply::FileUntrack(Done {}))
    }

    /// Has a session hold a path, if it does not.
    pub(crate) fn hold(
        &mut self,
        session: &SessionId,
        path: &RelPath,
        source: Source,
        step: Option<u64>,
    ) {
        let named = self
            .state
            .knowledge(session, path)
            .is_some_and(|knowledge| !knowledge.copied && step.is_none());
        if !named {
            self.record(Fact::Tracked {
                session: session.clone(),
                path: path.clone(),
                source,
                step,
            });
        }
    }

    /// Whoever asks about a copied name makes it a name of its own (ATTR-12).
    fn name_copy(&mut self, session: &SessionId, path: &RelPath) {
        let copied = self
            .state
            .knowledge(session, path)
            .filter(|knowledge| knowledge.copied)
            .map(|knowledge| (knowledge.record.source, knowledge.record.step));
        if let Some((source, step)) = copied {
            self.record(Fact::Tracked {
                session: session.clone(),
                path: path.clone(),
                source,
                step,
            });
        }
    }

    /// The reads that a request about one path has to wait for, if any: one
    /// where nobody watched, one where the file is to be verified, and one
    /// more where it changed after the request's fence.
    fn read_first(&mut self, pending: &mut Pending, path: &RelPath) -> Option<Step> {
        let watched = self.state.paths.contains_key(path);
        if !watched && !pending.found.contains_key(path) {
            return Some(Step::Read(vec![path.clone()], false));
        }
        if pending.verify && !pending.rechecked {
            pending.rechecked = true;
            return Some(Step::Read(vec![path.clone()], false));
        }
        if self.dirty.contains(path) && !pending.rechecked {
            pending.rechecked = true;
            pending.first_hash = Some(self.current(path, pending.found.get(path)).held.hash);
            return Some(Step::Read(vec![path.clone()], false));
        }
        None
    }

    fn changed_meanwhile(&self, pending: &Pending, path: &RelPath) -> bool {
        pending
            .first_hash
            .is_some_and(|first| first != self.current(path, pending.found.get(path)).held.hash)
    }

    fn verdict(
        &self,
        session: &SessionId,
        path: &RelPath,
        hash: Option<Hash>,
        range: Option<LineRange>,
        lines: u32,
    ) -> Verdict {
        let knowledge = self.state.knowledge(session, path);
        match knowledge {
            Some(knowledge) if self.config.dedup => knowledge.verdict(hash, range, lines),
            _ => Verdict::First,
        }
    }

    fn record_read(&mut self, reading: &Reading<'_>) -> Recorded {
        let Reading {
            session,
            path,
            hash,
            lines,
            range,
            source,
            step,
        } = *reading;
        let verdict = self.verdict(session, path, hash, range, lines);
        let changed = verdict == Verdict::Changed;
        let (changed_by, since) = if changed {
            self.blame(session, path)
        } else {
            (None, None)
        };
        let change = changed.then(|| self.change_since(session, path)).flatten();
        let before = self
            .state
            .knowledge(session, path)
            .and_then(|knowledge| knowledge.last())
            .and_then(|seen| seen.hash);
        let message = match verdict {
            Verdict::Repeat => Some(format!(
                "[File previously read: {}. Content unchanged since last read.]",
                show(path)
            )),
            Verdict::Changed => Some(format!(
                "[File changed since last read: {}. Changed by {}.]",
                show(path),
                show_authors(changed_by.as_deref().unwrap_or(&[Author::UNKNOWN]))
            )),
            Verdict::First | Verdict::Extends => None,
        };
        self.record(Fact::Read {
            session: session.clone(),
            path: path.clone(),
            hash,
            lines,
            range,
            verdict,
            source,
            step,
        });
        // After a read, a save told in its middle is news again (MOD-2).
        if let Some(live) = self.live.get_mut(path) {
            live.told.remove(session);
        }
        self.publish(
            Happening::Read {
                session: session.clone(),
                path: path.clone(),
                verdict,
                range,
            },
            None,
        );
        Recorded {
            verdict,
            read_count: self
                .state
                .knowledge(session, path)
                .map_or(0, |knowledge| knowledge.read_count),
            message,
            changed_by,
            since,
            change,
            texts: changed.then_some((before, hash)),
        }
    }
}

fn wrong_range() -> Error {
    Error::invalid("a range counts lines from 1 and does not end before it starts")
}

fn not_found(path: &RelPath) -> Error {
    Error::path(
        ErrorCode::NotFound,
        path,
        format!("there is no file {}", show(path)),
    )
}

/// Lines of a text: line feeds, and one more if the last line has none.
fn count_lines(text: &str) -> u32 {
    let feeds = text.bytes().filter(|byte| *byte == b'\n').count();
    let open = usize::from(!text.is_empty() && !text.ends_with('\n'));
    u32::try_from(feeds + open).unwrap_or(u32::MAX)
}

/// A part of a file, as it travels.
struct Cut {
    text: String,
    range: Option<LineRange>,
    truncated: bool,
    encoding: TextEncoding,
}

/// Cuts whole lines out of a file: those asked for, as many as fit.
fn cut(bytes: &[u8], range: Option<LineRange>, lines: u32, limit: u64) -> Result<Cut, Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let wanted = range.unwrap_or(LineRange {
        start: 1,
        end: u32::MAX,
    });
    if range.is_some() && wanted.start > lines.max(1) {
        return Err(Error::invalid(format!(
            "the range starts at line {}, the file has {lines}",
            wanted.start
        )));
    }
    let (mut start, mut end) = (None, bytes.len());
    let (mut line, mut at, mut last) = (1u32, 0usize, 0u32);
    let mut truncated = false;
    while at < bytes.len() && line <= wanted.end {
        let length = bytes[at..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(bytes.len() - at, |feed| feed + 1);
        if line >= wanted.start {
            let from = *start.get_or_insert(at);
            if at + length - from > limit {
                if last == 0 {
                    return Err(Error::new(
                        ErrorCode::TooLarge,
                        format!("line {line} alone is longer than one answer may be"),
                    )
                    .hint("read the file itself and record it with `file/read`"));
                }
                truncated = true;
                end = at;
                break;
            }
            last = line;
        }
        at += length;
        end = at;
        line = line.saturating_add(1);
    }
    let start = start.unwrap_or(end);
    let part = &bytes[start..end];
    let (text, encoding) = match std::str::from_utf8(part) {
        Ok(text) => (text.to_owned(), TextEncoding::Utf8),
        Err(_) => (
            base64::engine::general_purpose::STANDARD.encode(part),
            TextEncoding::Base64,
        ),
    };
    Ok(Cut {
        text,
        range: (last > 0).then_some(LineRange {
            start: wanted.start,
            end: last,
        }),
        truncated,
        encoding,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn part(
        text: &str,
        range: Option<(u32, u32)>,
        limit: u64,
    ) -> (String, Option<(u32, u32)>, bool) {
        let range = range.map(|(start, end)| LineRange { start, end });
        match cut(text.as_bytes(), range, count_lines(text), limit) {
            Ok(cut) => (
                cut.text,
                cut.range.map(|range| (range.start, range.end)),
                cut.truncated,
            ),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn whole_lines_are_cut() {
        let text = "a\nbb\nccc";
        assert_eq!(part(text, None, 99), (text.into(), Some((1, 3)), false));
        assert_eq!(
            part(text, Some((2, 2)), 99),
            ("bb\n".into(), Some((2, 2)), false)
        );
        assert_eq!(
            part(text, Some((2, 9)), 99),
            ("bb\nccc".into(), Some((2, 3)), false)
        );
        assert_eq!(part(text, None, 5), ("a\nbb\n".into(), Some((1, 2)), true));
        assert_eq!(part("", None, 5), (String::new(), None, false));
        assert!(cut(text.as_bytes(), Some(LineRange { start: 4, end: 4 }), 3, 9).is_err());
        assert!(cut(text.as_bytes(), None, 3, 1).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_travel_as_base64() {
        let cut = cut(&[0xff, b'\n'], None, 1, 9).unwrap();
        assert_eq!(
            (cut.text.as_str(), cut.encoding),
            ("/wo=", TextEncoding::Base64)
        );
    }
}
