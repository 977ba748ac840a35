//! `file/read`, `file/readText`: contents that entered a session's context.

use std::sync::Arc;

use super::writes::unstable;
use crate::base::Base;
use crate::disk::{Content, Found};
use crate::effect::{Answer, LinesOrder, LinesWanted, Question};
use crate::input::Learned;
use crate::ledger::record::Fact;
use crate::requests::pending::{Answered, Lines, Pending, Stop, Texts, done};
use crate::text::cut::{count_lines, cut};
use crate::text::form;
use crate::text::shown::{show, show_authors, show_bare};
use crate::view::View;
use touchmark_proto::daemon::Savings;
use touchmark_proto::events::Happening;
use touchmark_proto::files::{
    FileRead, FileReadResult, FileReadText, FileText, Source, TextEncoding, Verdict,
};
use touchmark_proto::{
    Author, Change, Error, ErrorCode, ErrorData, Hash, LineRange, Millis, RelPath, Reply, SessionId,
};

/// A read that is about to be recorded.
pub(super) struct Reading<'a> {
    pub session: &'a SessionId,
    pub path: &'a RelPath,
    /// The content read; `None` if it is not known (SEEN-1).
    pub hash: Option<Hash>,
    pub lines: u32,
    pub range: Option<LineRange>,
    pub source: Source,
    pub step: Option<u64>,
    /// The differences between older texts and the one shown, as far as they
    /// are known.
    pub texts: &'a Texts,
}

/// What the answer says about a read that was recorded.
pub(super) struct Recorded {
    verdict: Verdict,
    read_count: u32,
    message: Option<String>,
    changed_by: Option<Vec<Author>>,
    since: Option<Millis>,
    change: Option<Change>,
    texts: Option<LinesWanted>,
}

/// A text that was read for a request.
struct TextRead {
    /// The content that the text is from.
    content: Content,
    /// The bytes of the content from line `first` on.
    bytes: Arc<[u8]>,
    /// The number of the first line in `bytes`, from 1.
    first: u32,
}

/// Returns the text that was read for a request, or `None` if none was.
///
/// # Errors
/// `unstable` if the file had another content by the time its lines were read.
fn text_of(
    pending: &mut Pending,
    path: &RelPath,
    range: Option<LineRange>,
) -> Result<Option<TextRead>, Error> {
    let first = range.map_or(1, |range| range.start);
    if let Lines::Awaited(content) = pending.lines {
        let Some(Ok(Learned::Lines(Some(bytes)))) = pending.learned.take() else {
            return Err(unstable(path));
        };
        pending.lines = Lines::Read(content, bytes);
    }
    if let Lines::Read(content, bytes) = &pending.lines {
        return Ok(Some(TextRead {
            content: *content,
            bytes: Arc::clone(bytes),
            first,
        }));
    }
    let read = pending.reads.texts.get(path);
    Ok(read.map(|(content, bytes)| TextRead {
        content: *content,
        bytes: Arc::clone(bytes),
        first: 1,
    }))
}

impl Base {
    pub(crate) fn file_read(&mut self, pending: &mut Pending, ask: &FileRead) -> Answered {
        let path = self.view().resolve(&ask.path)?;
        if ask.range.is_some_and(|range| !range.is_valid()) {
            return Err(wrong_range().into());
        }
        self.read_first(pending, &path, false)?;
        if ask.hash.is_none() {
            self.view().usable(&path, pending)?;
        }
        let now = self.view().current(&path, pending.reads.found.get(&path));
        if ask.hash.is_none() && now.held.hash.is_none() && now.trouble.is_none() {
            return Err(not_found(&path).into());
        }
        // The hash found by the daemon is the content that the client read only
        // if the file did not change between the request and the daemon's read
        // (SEEN-1).
        let hash = ask.hash.or_else(|| {
            now.held
                .hash
                .filter(|_| now.trouble.is_none() && !self.view().changed_meanwhile(pending, &path))
        });
        let lines = if ask.hash.is_none() || ask.hash == now.held.hash {
            now.held.lines
        } else {
            ask.total_lines
                .or_else(|| ask.text.as_deref().map(count_lines))
                .unwrap_or(now.held.lines)
        };
        let lines = match (ask.range, ask.hash == now.held.hash || ask.hash.is_none()) {
            // The number of lines of another content is not known. The range
            // shows that it has at least that many.
            (Some(range), false) => lines.max(range.end),
            _ => lines,
        };
        if ask.range.is_some()
            && let Some(question) = self
                .view()
                .texts_to_show(pending, &ask.session, &path, hash)
        {
            return Err(Stop::Learn(question).into());
        }
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
            texts: &pending.texts,
        });
        if recorded.verdict == Verdict::Repeat {
            // For a range of lines, the number of bytes is known only if the
            // request contains the text.
            let bytes = match (&ask.text, ask.range) {
                (Some(text), _) => text.len() as u64,
                (None, None) if hash == now.held.hash => now.held.size,
                (None, _) => 0,
            };
            self.saved_read(&ask.session, bytes);
        }
        Ok(Answer {
            lines: recorded
                .texts
                .filter(|_| recorded.change.is_some())
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
        })
    }

    pub(crate) fn file_read_text(&mut self, pending: &mut Pending, ask: &FileReadText) -> Answered {
        let path = self.view().resolve(&ask.path)?;
        if ask.range.is_some_and(|range| !range.is_valid()) {
            return Err(wrong_range().into());
        }
        let track = ask.track != Some(false);
        let text = text_of(pending, &path, ask.range)?;
        let Some(TextRead {
            content,
            bytes,
            first,
        }) = text
        else {
            // A repeat is answered without the text, so the file's bytes are
            // not read for it.
            self.read_first(pending, &path, true)?;
            let found = pending.reads.found.get(&path);
            let now = self.view().current(&path, found);
            let repeat = track
                && !ask.force
                && now.trouble.is_none()
                && now.held.hash.is_some()
                && self
                    .view()
                    .verdict(&ask.session, &path, now.held.hash, ask.range)
                    == Verdict::Repeat;
            // To count the bytes that are not sent, the range has to be read.
            let lines = repeat && ask.range.is_some() && !pending.reads.bytes;
            if !repeat || lines {
                self.view().usable(&path, pending)?;
                if now.held.hash.is_none() && now.trouble.is_none() {
                    return Err(not_found(&path).into());
                }
                if !pending.reads.bytes {
                    return Err(Stop::Read(vec![path], true).into());
                }
                let Some(Found::File(content)) = found.map(|outcome| &outcome.found) else {
                    return Err(unstable(&path).into());
                };
                let content = *content;
                // The file is too large to be read whole, so only these lines
                // are read.
                pending.lines = Lines::Awaited(content);
                return Err(Stop::Learn(Question::Lines(LinesOrder {
                    path,
                    hash: content.hash,
                    size: content.size,
                    range: ask.range.unwrap_or(LineRange::ALL),
                    most: self.config.read_text,
                }))
                .into());
            }
            let reading = Reading {
                session: &ask.session,
                path: &path,
                hash: now.held.hash,
                lines: now.held.lines,
                range: ask.range,
                source: Source::ReadTool,
                step: ask.step,
                texts: &pending.texts,
            };
            let recorded = self.record_read(&reading);
            self.saved_read(&ask.session, now.held.size);
            return done(Reply::FileReadText(FileText {
                verdict: recorded.verdict,
                text: None,
                message: recorded.message,
                hash: now.held.hash,
                line_count: now.held.lines,
                range: ask.range,
                truncated: false,
                encoding: TextEncoding::Utf8,
                charset: None,
            }));
        };
        // Only a file that was read as a whole shows its encoding.
        let decoded = match ask.decode && bytes.len() as u64 == content.size {
            true => form::decoded(&bytes),
            false => None,
        };
        let bytes = decoded
            .as_ref()
            .map_or(&*bytes, |(text, _)| text.as_bytes());
        let lines = decoded
            .as_ref()
            .map_or(content.lines, |(text, _)| count_lines(text));
        let cut = match cut(bytes, first, ask.range, lines, self.config.read_text) {
            Ok(cut) => cut,
            Err(error) => {
                return Err(error
                    .with(ErrorData {
                        path: Some(path),
                        limit: Some(self.config.read_text),
                        size: Some(content.size),
                        ..ErrorData::default()
                    })
                    .into());
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
            charset: decoded.as_ref().map(|(_, name)| (*name).to_owned()),
        };
        if track {
            let whole = cut
                .range
                .is_none_or(|range| range.start == 1 && range.end >= lines);
            let shown = Some(content.hash).filter(|_| !whole);
            if let Some(question) = self
                .view()
                .texts_to_show(pending, &ask.session, &path, shown)
            {
                return Err(Stop::Learn(question).into());
            }
            self.ensure_session(&ask.session);
            self.begin_log(&path, pending);
            let recorded = self.record_read(&Reading {
                session: &ask.session,
                path: &path,
                hash: Some(content.hash),
                lines: content.lines,
                range: cut.range.filter(|_| !whole),
                source: Source::ReadTool,
                step: ask.step,
                texts: &pending.texts,
            });
            answer.verdict = recorded.verdict;
            if recorded.verdict == Verdict::Repeat && !ask.force {
                answer.text = None;
                answer.range = ask.range;
                answer.encoding = TextEncoding::Utf8;
                answer.charset = None;
                answer.truncated = false;
                self.saved_read(&ask.session, cut.bytes);
            }
            answer.message = recorded
                .message
                .filter(|_| recorded.verdict != Verdict::Repeat || answer.text.is_none());
        }
        done(Reply::FileReadText(answer))
    }

    /// Counts a repeated read, which added nothing to the context.
    fn saved_read(&mut self, session: &SessionId, bytes: u64) {
        let savings = Savings {
            repeats: 1,
            bytes_not_sent: bytes,
            ..Savings::default()
        };
        self.saved(session, savings);
    }

    /// Has the path of a request read before the request is answered. A
    /// path is read if it is not watched or if the request verifies it, and
    /// once more if it changed after the request's fence.
    pub(super) fn read_first(
        &mut self,
        pending: &mut Pending,
        path: &RelPath,
        bytes: bool,
    ) -> Result<(), Box<Stop>> {
        let watched = self.state.paths.contains_key(path);
        if !watched && !pending.reads.found.contains_key(path) {
            return Err(Stop::Read(vec![path.clone()], bytes).into());
        }
        if pending.verify && !pending.rechecked {
            pending.rechecked = true;
            return Err(Stop::Read(vec![path.clone()], bytes).into());
        }
        if self.tracker.is_hinted(path) && !pending.rechecked {
            pending.rechecked = true;
            pending.reads.first_hash = Some(
                self.view()
                    .current(path, pending.reads.found.get(path))
                    .held
                    .hash,
            );
            return Err(Stop::Read(vec![path.clone()], bytes).into());
        }
        Ok(())
    }

    pub(super) fn record_read(&mut self, reading: &Reading<'_>) -> Recorded {
        let Reading {
            session,
            path,
            hash,
            lines,
            range,
            source,
            step,
            texts,
        } = *reading;
        let verdict = self.view().verdict(session, path, hash, range);
        let changed = verdict == Verdict::Changed;
        let (changed_by, since) = if changed {
            self.view().blame(session, path)
        } else {
            (None, None)
        };
        let change = changed
            .then(|| self.view().change_since(session, path))
            .flatten();
        let before = self
            .state
            .knowledge(session, path)
            .and_then(|knowledge| knowledge.last()?.hash);
        let own = self.view().own_writes(session, path);
        let message = match verdict {
            Verdict::Repeat => Some(format!(
                "[File previously read: {}. Content unchanged since last read.]",
                show_bare(&path.to_string_lossy())
            )),
            Verdict::Changed => Some(format!(
                "[File changed since last read: {}. Changed {}.]",
                show_bare(&path.to_string_lossy()),
                show_authors(changed_by.as_deref().unwrap_or(&[Author::UNKNOWN]))
            )),
            Verdict::First | Verdict::Extends => None,
        };
        if let (Some(hash), Texts::ComparedToShow(found)) = (hash, texts) {
            self.carry_to(session, path, hash, found);
        }
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
        // After a read, a save whose middle was reported counts as a change
        // again (MOD-2).
        let editing = self
            .state
            .edits_on(path)
            .any(|(edit, _)| edit.fact.session == *session);
        if editing || self.tracker.live(path).is_some() {
            self.tracker.live_mut(path).save.read_by(session, editing);
        }
        self.publish(
            Happening::Read {
                session: session.clone(),
                path: path.clone(),
                verdict,
                range,
                label: None,
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
            texts: changed.then_some(LinesWanted {
                own,
                ..LinesWanted::between(before, hash)
            }),
        }
    }
}

impl View<'_> {
    fn changed_meanwhile(&self, pending: &Pending, path: &RelPath) -> bool {
        pending.reads.first_hash.is_some_and(|first| {
            first != self.current(path, pending.reads.found.get(path)).held.hash
        })
    }

    fn verdict(
        &self,
        session: &SessionId,
        path: &RelPath,
        hash: Option<Hash>,
        range: Option<LineRange>,
    ) -> Verdict {
        let knowledge = self.state.knowledge(session, path);
        match knowledge {
            Some(knowledge) if self.config.dedup => knowledge.verdict(hash, range),
            _ => Verdict::First,
        }
    }
}

pub(super) fn wrong_range() -> Error {
    Error::invalid("a range counts lines from 1 and does not end before it starts")
}

fn not_found(path: &RelPath) -> Error {
    Error::path(
        ErrorCode::NotFound,
        path,
        format!("there is no file {}", show(path)),
    )
}
