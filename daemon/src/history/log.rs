//! `file/log`.

use std::collections::HashMap;

use touchmark_engine::recall::{VersionMarks, version_of};
use touchmark_engine::text::lines;
use touchmark_engine::{Fact, Record};
use touchmark_proto::daemon::Sync;
use touchmark_proto::history::{FileLog, LogEntries, LogEntry};
use touchmark_proto::{Error, Evidence, Hash, RelPath, Version, native};

use super::Past;
use crate::past::versions::current;
use crate::store::Reader;

/// The number of versions in an answer, unless the request names another
/// (LIM-2).
const MOST: usize = 1_000;

/// The number of versions read from the log together.
const STEP: usize = 1_000;

/// A version, and its file's previous content.
struct WithBefore {
    version: Version,
    before: Option<Hash>,
}

impl Past {
    /// Answers `file/log`.
    pub(crate) async fn log(&self, ask: FileLog) -> Result<LogEntries, Error> {
        let now = self.cx.inside.ask(Sync {}).await?.clock;
        let since = match self.edge(ask.since.as_ref(), "since").await? {
            None => 0,
            Some(moment) => self.fact(moment).await?,
        };
        let before = match ask.before {
            Some(clock) if clock.epoch != now.epoch => {
                return Err(Error::invalid("`before` is a clock of another epoch"));
            }
            Some(clock) => clock.n,
            None => u64::MAX,
        };
        let before = match self.edge(ask.until.as_ref(), "until").await? {
            None => before,
            Some(moment) => before.min(self.fact(moment).await?.saturating_add(1)),
        };
        let limit = ask.limit.map_or(MOST, |limit| limit as usize);
        let mut found: Vec<WithBefore> = Vec::new();
        let mut directories: Option<Vec<RelPath>> = ask.paths.is_none().then(Vec::new);
        for path in ask.paths.into_iter().flatten() {
            let name = self.name(&path)?;
            let versions = match self.is_directory(&name) {
                true => Vec::new(),
                false => self.versions(&path, &current).await?,
            };
            if versions.is_empty() {
                directories.get_or_insert_default().push(name);
            }
            found.extend(of_file(versions));
        }
        found.retain(|one| (since + 1..before).contains(&one.version.clock.n));
        let (epoch, count_lines) = (self.cx.epoch, ask.lines);
        let answer = self.look(move |log| {
            if let Some(below) = directories {
                found.extend(of_all(log, epoch, &below, since..before, limit + 1)?);
            }
            found.sort_by_key(|one| std::cmp::Reverse(one.version.clock.n));
            found.dedup_by_key(|one| one.version.clock.n);
            let more = (found.len() > limit)
                .then(|| {
                    found
                        .get(limit.saturating_sub(1))
                        .map(|one| one.version.clock)
                })
                .flatten();
            found.truncate(limit);
            let entries = found.into_iter().map(|one| LogEntry {
                lines: count_lines.then(|| counted(log, &one)).flatten(),
                version: one.version,
            });
            Ok(LogEntries {
                entries: entries.collect(),
                more,
            })
        });
        answer.await?
    }

    fn is_directory(&self, name: &RelPath) -> bool {
        let name = native::name(name.as_bytes());
        self.cx.workspace.root.join(&*name).is_dir()
    }
}

/// Returns a file's versions, without its baseline.
fn of_file(versions: Vec<Version>) -> Vec<WithBefore> {
    let mut before = None;
    let mut found = Vec::with_capacity(versions.len());
    for (at, version) in versions.into_iter().enumerate() {
        let hash = version.hash;
        let baseline = at == 0 && version.evidence == Evidence::Gap;
        if !baseline {
            found.push(WithBefore { version, before });
        }
        before = hash;
    }
    found
}

/// Returns the newest versions of all files below some directories, or of all
/// files.
fn of_all(
    log: &Reader,
    epoch: u64,
    below: &[RelPath],
    span: std::ops::Range<u64>,
    limit: usize,
) -> Result<Vec<WithBefore>, Error> {
    let wanted = |path: &RelPath| {
        below.is_empty()
            || below
                .iter()
                .any(|directory| path == directory || path.below(directory).is_some())
    };
    let mut corrections: HashMap<u64, Record> = HashMap::new();
    let mut found = Vec::new();
    // A correction is a later fact than its version, so one page beyond the end
    // is read for corrections.
    let mut at = match span.end {
        u64::MAX => u64::MAX,
        end => end.saturating_add(STEP as u64),
    };
    while found.len() < limit {
        let records = log.versions_before(at, STEP)?;
        let Some(oldest) = records.last().map(|record| record.n) else {
            break;
        };
        for record in records {
            let Fact::Version(fact) = &record.fact else {
                continue;
            };
            if record.n <= span.start {
                return Ok(found);
            }
            if let Some(amended) = fact.amends {
                corrections.entry(amended).or_insert(record);
                continue;
            }
            if record.n >= span.end || !wanted(&fact.path) || found.len() == limit {
                continue;
            }
            let before = fact.before;
            let marks = VersionMarks::default();
            let mut version = version_of(epoch, record.n, record.time, fact, marks);
            if let Some(Record {
                fact: Fact::Version(by),
                ..
            }) = corrections.remove(&record.n).as_ref()
            {
                let by = version_of(epoch, record.n, record.time, by, marks);
                version.author = by.author;
                version.evidence = by.evidence;
                version.edit = by.edit;
                version.candidates = by.candidates;
                version.formatted = by.formatted;
            }
            found.push(WithBefore { version, before });
        }
        at = oldest;
    }
    Ok(found)
}

/// Returns the number of lines that a version added and removed; `None` if one
/// of the contents is not stored.
fn counted(log: &Reader, one: &WithBefore) -> Option<touchmark_proto::LineCounts> {
    let content = |hash: Option<Hash>| match hash {
        None => Some([].into()),
        Some(hash) => log.content(&hash).ok().flatten(),
    };
    let (old, new) = (content(one.before)?, content(one.version.hash)?);
    lines::count(&old, &new)
}
