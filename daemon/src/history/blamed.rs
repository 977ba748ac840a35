//! Who wrote the lines of one content, and the rest of a long answer.
//!
//! A long file does not fit into one answer of `file/blame`. A client that asks
//! for as many lines as fit asks for those after them next. All of them are
//! found out at once, and the rest is kept until it is asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use touchmark_proto::history::{Blame, BlameLine, FileBlame};
use touchmark_proto::{Clock, Hash, RelPath};

use crate::history::{Chain, line};

/// How long the rest is kept after it was last asked for.
const KEPT: Duration = Duration::from_secs(5);

/// The most bytes that are kept. A larger rest is computed again.
const MOST: usize = 64 << 20;

/// Who wrote lines of one content, up to its last one.
#[derive(Debug)]
pub(crate) struct Blamed {
    pub(crate) path: RelPath,
    pub(crate) clock: Option<Clock>,
    pub(crate) hash: Hash,
    /// Why git did not say which commits lines belong to; `None` if it did.
    pub(crate) cause: Option<String>,
    /// The number of the first line.
    pub(crate) start: u32,
    /// The number of the last line of the content.
    pub(crate) last: u32,
    /// The texts of the lines, one after the other.
    pub(crate) text: Vec<u8>,
    /// For each line, where its text ends.
    pub(crate) ends: Vec<usize>,
    /// For each line, the index of its author.
    pub(crate) by: Vec<u32>,
    /// What is said about lines, beside their texts.
    pub(crate) authors: Vec<BlameLine>,
}

impl Blamed {
    /// Adds a line.
    pub(crate) fn line(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.ends.push(self.text.len());
    }

    /// Adds what is said about the next lines, beside their texts.
    pub(crate) fn author(&mut self, by: BlameLine) {
        self.authors.push(by);
    }

    /// Gives the next line the last author.
    pub(crate) fn same_author(&mut self) {
        let by = u32::try_from(self.authors.len().saturating_sub(1));
        self.by.push(by.unwrap_or(u32::MAX));
    }

    /// Returns the answer about some lines.
    pub(crate) fn part(&self, from: u32, to: u32) -> Part {
        let skipped = from.saturating_sub(self.start) as usize;
        let count = (to as usize + 1).saturating_sub(from as usize);
        let before = skipped.checked_sub(1).and_then(|at| self.ends.get(at));
        let mut begin = before.copied().unwrap_or_default();
        let lines = self.ends.iter().zip(&self.by).skip(skipped).take(count);
        let lines: Vec<BlameLine> = lines
            .filter_map(|(end, by)| {
                let text = self.text.get(begin..*end)?;
                begin = *end;
                let (text, base64, _) = line(text);
                Some(BlameLine {
                    text,
                    base64,
                    ..self.authors.get(*by as usize)?.clone()
                })
            })
            .collect();
        let blame = Blame {
            path: self.path.clone(),
            clock: self.clock,
            hash: self.hash,
            start: from,
            lines,
            cause: self.cause.clone(),
        };
        Part {
            blame,
            is_last: to > self.last,
        }
    }

    /// Returns about how many bytes of memory this takes.
    fn size(&self) -> usize {
        let lines = self.ends.capacity() * (size_of::<usize>() + size_of::<u32>());
        // With the texts of names and ids.
        let authors = self.authors.capacity() * 2 * size_of::<BlameLine>();
        self.text.capacity() + lines + authors
    }
}

/// One answer about lines.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) blame: Blame,
    /// Whether it shows that there are no lines after these, as it has fewer
    /// than were asked for.
    pub(crate) is_last: bool,
}

/// The file, the request and the state of its history that lines were found out
/// for. Only a request with an equal subject gets the lines that were kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    ask: FileBlame,
    /// [`Chain::mark`].
    chain: Hash,
}

impl Subject {
    pub(crate) fn new(ask: &FileBlame, chain: &Chain) -> Self {
        Self {
            ask: FileBlame {
                range: None,
                ..ask.clone()
            },
            chain: chain.mark(),
        }
    }
}

/// The rest of the last long answer, until it was not asked for for
/// [`KEPT`].
#[derive(Debug, Default)]
pub(crate) struct LongBlame(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    rest: Option<Rest>,
    /// How often something was kept.
    times: u64,
}

#[derive(Debug)]
struct Rest {
    of: Subject,
    /// The number of the next line.
    next: u32,
    blamed: Arc<Blamed>,
    /// Puts the next answer together while the client reads this one.
    ahead: JoinHandle<Part>,
}

impl LongBlame {
    /// Takes the lines that were kept, with the answer about the next ones.
    /// `None` unless they have this subject and begin with the line `from`.
    pub(crate) async fn take(&self, of: &Subject, from: u32) -> Option<(Arc<Blamed>, Part)> {
        let is_meant = |rest: &mut Rest| rest.next == from && rest.of == *of;
        let taken = self.kept().rest.take_if(is_meant)?;
        Some((taken.blamed, taken.ahead.await.ok()?))
    }

    /// Keeps the rest of an answer about `count` lines, whose last one was `to`.
    pub(crate) fn keep(self: &Arc<Self>, of: Subject, to: u32, count: u32, blamed: Arc<Blamed>) {
        if blamed.size() > MOST {
            return;
        }
        let times = {
            let mut kept = self.kept();
            let next = to.saturating_add(1);
            let all = Arc::clone(&blamed);
            let ahead = move || all.part(next, to.saturating_add(count));
            kept.rest = Some(Rest {
                of,
                next,
                blamed,
                ahead: tokio::task::spawn_blocking(ahead),
            });
            kept.times += 1;
            kept.times
        };
        let all = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            let mut kept = all.kept();
            if kept.times == times {
                kept.rest = None;
            }
        });
    }

    /// Drops what is kept.
    pub(crate) fn forget(&self) {
        self.kept().rest = None;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
