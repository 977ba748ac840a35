//! `file/content`, `file/diff`.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_engine::history::{Step, Undos, Weave, hunks};
use touchmark_engine::text::lines;
use touchmark_proto::changes::ModifiedList;
use touchmark_proto::files::{FileStatus, TextEncoding};
use touchmark_proto::history::{
    ContentAt, DiffHunk, FileContent, FileDiff, FileDifference, FileDiffs, LineKind,
};
use touchmark_proto::{
    At, ClientPath, Clock, Error, ErrorCode, ErrorData, Evidence, Hash, LineCounts, RelPath, State,
    Version, VersionKind,
};

use super::at::{Moment, Place};
use super::chain::{self, Chain};
use super::writers::Writers;
use super::{Past, clock, spoken};
use crate::context::aside;
use crate::past::versions::current;

/// The most lines in one answer, so that it fits into a message (LIM-1).
pub(super) const MOST_LINES: usize = 40_000;

/// The most bytes of a content that fit into a message, also as base64.
const MOST_BYTES: usize = 11 << 20;

/// The number of files in an answer, unless the request names another.
const MOST_FILES: usize = 1_000;

impl Past {
    /// Answers `file/content`.
    pub(crate) async fn content(&self, ask: FileContent) -> Result<ContentAt, Error> {
        let at = ask.at.unwrap_or(At::Now);
        if at == At::Now {
            let versions = self.versions(&ask.path, &current).await?;
            let (name, hash, bytes, _) = self.cx.on_disk(&ask.path).await?;
            let newest = versions.last();
            let newest = newest.filter(|newest| newest.hash == Some(hash));
            let path = newest.map_or(name, |newest| newest.path.clone());
            return told(path, newest.and_then(clock), hash, &bytes);
        }
        let meant = self.meant(&at).await?;
        let versions = self.versions(&ask.path, &|all| meant.number(all)).await?;
        let version = self.version(&versions, &ask.path, &at).await?;
        let Some(hash) = version.hash else {
            return Err(Error::path(
                ErrorCode::NotFound,
                &version.path,
                format!("at {} there was no file", version.clock),
            )
            .hint("name an earlier version; `file/log` has them (`touchmark log PATH`)"));
        };
        let bytes = self.kept(version.clone()).await?;
        told(version.path.clone(), clock(version), hash, &bytes)
    }

    /// Returns the version that a name refers to.
    pub(super) async fn version<'a>(
        &self,
        versions: &'a [Version],
        path: &ClientPath,
        at: &At,
    ) -> Result<&'a Version, Error> {
        let first = match self.place(versions, path, at).await? {
            Place::Version(one) => return Ok(&versions[one]),
            Place::Before => versions.first().filter(|first| first.clock.n > 0),
        };
        let name = self.name(path)?;
        let message = match first {
            Some(first) => format!("its versions begin at {}", first.clock),
            None => "no session has named it, so there are no versions of it".to_owned(),
        };
        Err(Error::path(ErrorCode::NotFound, &name, message).hint(super::at::VERSIONS))
    }

    /// Returns the content of a version.
    pub(super) async fn kept(&self, version: Version) -> Result<std::sync::Arc<[u8]>, Error> {
        let Some(hash) = version.hash else {
            return Ok([].into());
        };
        let (held, is_secret) = self
            .look(move |contents| (chain::held(contents, &hash), contents.is_secret(&hash)))
            .await?;
        if let Some(bytes) = held {
            return Ok(bytes);
        }
        // The version may be the file's current content, which needs no stored
        // copy. A secret is not returned even then.
        let path = spoken(&version.path);
        match self.cx.on_disk(&path).await {
            Ok((_, now, bytes, _)) if now == hash && !is_secret => Ok(bytes),
            _ => Err(self.not_kept(&version, is_secret)),
        }
    }

    /// Answers `file/diff`.
    pub(crate) async fn diff(&self, ask: FileDiff) -> Result<FileDiffs, Error> {
        let to = ask.to.unwrap_or(At::Now);
        let context = ask.context.map_or(3, |lines| lines as usize);
        if let Some(path) = ask.path {
            if ask.paths.is_some() {
                return Err(Error::invalid(
                    "name a file by `path`, or several by `paths`",
                ));
            }
            let mut found = self.compared(&path, &ask.from, &to, context).await??;
            let hunks = found.as_mut().and_then(|found| found.hunks.take());
            return Ok(FileDiffs {
                files: found.into_iter().collect(),
                hunks: Some(hunks.unwrap_or_default()),
                more: None,
            });
        }
        let after = ask
            .cursor
            .map(|cursor| STANDARD.decode(cursor).unwrap_or_default());
        let limit = ask.limit.map_or(MOST_FILES, |limit| limit as usize);
        let mut diffs = FileDiffs {
            files: Vec::new(),
            hunks: None,
            more: None,
        };
        let mut lines = 0;
        let mut last: Option<RelPath> = None;
        let candidates = self.candidates(ask.paths, &ask.from, &to).await?;
        // A file that was moved is compared under its new name only.
        let lineage = self
            .origins
            .lineages
            .now(&self.cx.inside, &self.log)
            .await?;
        for path in candidates
            .into_iter()
            .filter(|path| !lineage.has_left(path))
        {
            if after
                .as_deref()
                .is_some_and(|after| path.as_bytes() <= after)
            {
                continue;
            }
            if diffs.files.len() == limit || lines > MOST_LINES / 2 {
                diffs.more = last.map(|last| STANDARD.encode(last.as_bytes()));
                break;
            }
            // An error about one file does not prevent the other files from
            // being shown.
            let found = match self
                .compared(&spoken(&path), &ask.from, &to, context)
                .await?
            {
                Ok(found) => found,
                Err(error) => Some(not_compared(&path, error)),
            };
            last = Some(path);
            if let Some(found) = found {
                let of = found.hunks.iter().flatten().map(|hunk| hunk.lines.len());
                lines += of.sum::<usize>();
                diffs.files.push(found);
            }
        }
        Ok(diffs)
    }

    /// Returns the files that may differ, by path.
    async fn candidates(
        &self,
        paths: Option<Vec<ClientPath>>,
        from: &At,
        to: &At,
    ) -> Result<BTreeSet<RelPath>, Error> {
        let named = paths.into_iter().flatten();
        let named: Vec<RelPath> = named
            .map(|path| self.name(&path))
            .collect::<Result<_, _>>()?;
        let mut changed = match (self.moment(from).await?, self.moment(to).await?, from) {
            (None, _, At::Seen(session)) => self.known_to(session).await?,
            (None, _, At::Hash(_)) if !named.is_empty() => BTreeSet::new(),
            (None, _, At::Hash(_)) => {
                return Err(Error::invalid("a hash names a version of one file")
                    .hint("name the file by `path`, or a time, a clock or a checkpoint"));
            }
            (from, to, _) => {
                let mut since = u64::MAX;
                for moment in [from, to].into_iter().flatten() {
                    since = since.min(self.fact(moment).await?);
                }
                self.changed_since(since).await?
            }
        };
        if !named.is_empty() {
            let is_in = |path: &RelPath| {
                named
                    .iter()
                    .any(|name| path == name || path.below(name).is_some())
            };
            changed.retain(is_in);
            let files = named.into_iter();
            let new: Vec<RelPath> = files
                .filter(|name| !changed.iter().any(|path| path.below(name).is_some()))
                .collect();
            changed.extend(new);
        }
        Ok(changed)
    }

    /// Returns the number of the newest fact at a moment.
    pub(super) async fn fact(&self, moment: Moment) -> Result<u64, Error> {
        match moment {
            Moment::Fact(n) => Ok(n),
            Moment::Time(time) => {
                let before = time.saturating_add(1);
                let newest = self.look(move |log| log.last_before_time(before)).await?;
                Ok(newest?.unwrap_or(0))
            }
        }
    }

    async fn changed_since(&self, n: u64) -> Result<BTreeSet<RelPath>, Error> {
        let mut changed = BTreeSet::new();
        let mut cursor = None;
        if n == u64::MAX {
            return Ok(changed);
        }
        loop {
            let sync = (!changed.is_empty()).then_some(false);
            let page = self
                .cx
                .inside
                .ask(ModifiedList {
                    since: Some(Clock {
                        epoch: self.cx.epoch,
                        n,
                    }),
                    sync,
                    cursor,
                    ..ModifiedList::new()
                })
                .await?;
            changed.extend(page.changes.into_iter().map(|change| change.path));
            cursor = page.more;
            if cursor.is_none() {
                return Ok(changed);
            }
        }
    }

    /// Returns the files of which a session's copy is not current.
    async fn known_to(
        &self,
        session: &touchmark_proto::SessionId,
    ) -> Result<BTreeSet<RelPath>, Error> {
        let mut known = BTreeSet::new();
        let mut cursor = None;
        loop {
            let page = self
                .cx
                .inside
                .ask(FileStatus {
                    state: vec![State::Stale, State::Deleted],
                    cursor,
                    ..FileStatus::new(session.clone())
                })
                .await?;
            known.extend(page.files.into_iter().map(|file| file.path));
            cursor = page.more;
            if cursor.is_none() {
                return Ok(known);
            }
        }
    }

    /// Returns the difference of one file, or `None` if there is none. The
    /// inner error concerns this file alone.
    async fn compared(
        &self,
        path: &ClientPath,
        from: &At,
        to: &At,
        context: usize,
    ) -> Result<Result<Option<FileDifference>, Error>, Error> {
        let chain = match self.chain(path, &current).await {
            Ok(chain) => chain,
            Err(error) if error.code == ErrorCode::ShuttingDown => return Err(error),
            Err(error) => return Ok(Err(error)),
        };
        let places = (
            self.place(&chain.versions, path, from).await,
            self.place(&chain.versions, path, to).await,
        );
        let (from, to) = match places {
            (Ok(from), Ok(to)) => (from, to),
            (Err(error), _) | (_, Err(error)) => return Ok(Err(error)),
        };
        for place in [from, to] {
            if let Place::Version(one) = place
                && chain.steps[one] == Step::NotKept
                && let Some(hash) = chain.versions[one].hash
            {
                let same = end(&chain, from).1 == end(&chain, to).1;
                if same {
                    return Ok(Ok(None));
                }
                let is_secret = self.look(move |contents| contents.is_secret(&hash)).await?;
                return Ok(Err(self.not_kept(&chain.versions[one], is_secret)));
            }
        }
        aside(move || difference(chain, from, to, context)).await
    }
}

/// Returns one end of a comparison: its index in the weave, its content and its
/// clock. Before the first version there was no file, if that version created
/// it. Else the first version's content is the oldest known one and is used.
fn end(chain: &Chain, place: Place) -> (Option<usize>, Option<Hash>, Option<Clock>) {
    let first = &chain.versions[0];
    let created = first.kind == VersionKind::Created && first.evidence != Evidence::Gap;
    match place {
        Place::Before if created => (None, None, None),
        Place::Before => (Some(0), first.hash, clock(first)),
        Place::Version(one) => {
            let version = &chain.versions[one];
            (Some(one), version.hash, clock(version))
        }
    }
}

fn difference(
    mut chain: Chain,
    from: Place,
    to: Place,
    context: usize,
) -> Result<Option<FileDifference>, Error> {
    let ((from, from_hash, from_clock), (to, to_hash, to_clock)) =
        (end(&chain, from), end(&chain, to));
    if from_hash == to_hash {
        return Ok(None);
    }
    let (mut from, mut to) = (from, to);
    if from.is_none() || to.is_none() {
        // An additional version at which there was no file.
        let mut none = chain.versions[0].clone();
        (none.hash, none.size) = (None, 0);
        chain.versions.insert(0, none);
        chain.steps.insert(0, Step::Absent);
        from = Some(from.map_or(0, |one| one + 1));
        to = Some(to.map_or(0, |one| one + 1));
    }
    let (from, to) = (from.unwrap_or(0), to.unwrap_or(0));
    let path = chain.versions[to].path.clone();
    let kind = match (from_hash, to_hash) {
        (None, _) => VersionKind::Created,
        (_, None) => VersionKind::Deleted,
        _ => VersionKind::Modified,
    };
    let mut found = FileDifference {
        path,
        kind,
        from_clock,
        from_hash,
        to_clock,
        to_hash,
        lines: None,
        binary: None,
        cause: None,
        hunks: None,
    };
    let is_binary = |step: &Step| matches!(step, Step::Held(bytes) if lines::is_binary(bytes));
    if is_binary(&chain.steps[from]) || is_binary(&chain.steps[to]) {
        found.binary = Some(true);
        return Ok(Some(found));
    }
    let weave: Weave = chain.weave(&Undos::default(), |_| false);
    let writers = Writers::of(&chain);
    let hunks = hunks(weave.compare(from, to), context);
    if hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>() > MOST_LINES {
        return Err(too_many(&found.path));
    }
    let hunks: Vec<DiffHunk> = hunks.into_iter().map(|hunk| writers.hunk(hunk)).collect();
    let count = |kind: LineKind| {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        u32::try_from(lines.filter(|line| line.kind == kind).count()).unwrap_or(u32::MAX)
    };
    found.lines = Some(LineCounts {
        added: count(LineKind::Added),
        removed: count(LineKind::Removed),
    });
    found.hunks = Some(hunks);
    Ok(Some(found))
}

fn told(path: RelPath, clock: Option<Clock>, hash: Hash, bytes: &[u8]) -> Result<ContentAt, Error> {
    if bytes.len() > MOST_BYTES {
        return Err(Error::path(
            ErrorCode::TooLarge,
            &path,
            "it does not fit into one answer",
        )
        .with(ErrorData {
            path: Some(path.clone()),
            limit: Some(MOST_BYTES as u64),
            size: Some(bytes.len() as u64),
            ..ErrorData::default()
        })
        .hint("read the file itself, or parts of it by `file/readText`"));
    }
    let (text, encoding) = match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), TextEncoding::Utf8),
        Err(_) => (STANDARD.encode(bytes), TextEncoding::Base64),
    };
    Ok(ContentAt {
        path,
        clock,
        text,
        encoding,
        hash,
        size: bytes.len() as u64,
    })
}

pub(super) fn too_many(path: &RelPath) -> Error {
    Error::path(
        ErrorCode::TooLarge,
        path,
        "its lines do not fit into one answer",
    )
    .with(ErrorData {
        path: Some(path.clone()),
        limit: Some(MOST_LINES as u64),
        ..ErrorData::default()
    })
    .hint("request the whole text by `file/content`, or a `range` by `file/blame`")
}

/// Returns the entry for a file that cannot be compared.
fn not_compared(path: &RelPath, error: Error) -> FileDifference {
    FileDifference {
        path: path.clone(),
        kind: VersionKind::Modified,
        from_clock: None,
        from_hash: None,
        to_clock: None,
        to_hash: None,
        lines: None,
        binary: None,
        cause: Some(error.data.cause.unwrap_or(error.message)),
        hunks: None,
    }
}
