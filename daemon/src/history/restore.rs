//! `file/restore`: gives a file an earlier content (HIST-4).

use std::sync::Arc;

use touchmark_engine::text::lines;
use touchmark_engine::text::missing::put_back;
use touchmark_engine::{Fact, Record, WriteOutcome};
use touchmark_proto::daemon::Sync;
use touchmark_proto::history::{FileRestore, Restoration, Restored, RestoredFile};
use touchmark_proto::{Error, ErrorCode, ErrorData, FileMode, Hash, RelPath, Version};

use super::{Past, clock};
use crate::context::aside;
use crate::guard::{Name, Storage, Written};
use crate::losses::{Lost, Replacement};
use crate::past::versions::current;
use crate::store::Reader;

/// The most attempts, if the file is saved meanwhile.
const TRIES: usize = 5;

/// How many of the newest facts are searched for what a command took away.
const NEWEST: usize = 20_000;

impl Past {
    /// Answers `file/restore`. The present content is stored first, no matter
    /// who wrote it, unless the request says `noRedo`.
    pub(crate) async fn restore(&self, ask: FileRestore) -> Result<Restored, Error> {
        let name = self.name(&ask.path)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let now = self.versions(&ask.path, &current).await?.pop();
            let meant = self.meant(&ask.at).await?;
            let versions = self.versions(&ask.path, &|all| meant.number(all)).await?;
            let version = self.version(&versions, &ask.path, &ask.at).await?.clone();
            let (n, author) = (version.clock.n, version.author.clone());
            let lines = match ask.missing {
                true => self.lines_back(&versions, &version, now.as_ref()).await?,
                false => Back::All,
            };
            let restored = self.restored(&name, version, now, lines, ask.no_redo);
            match restored.await? {
                Ok(file) => {
                    if file.outcome != Restoration::Unchanged {
                        // The version comes first, so that the log can name who
                        // brought it back (HIST-7). If this fails, so does the
                        // record.
                        let _ends = self.cx.inside.ask(Sync {}).await;
                        self.cx.inside.record(vec![Fact::BroughtBack {
                            session: author.session,
                            path: file.path.clone(),
                            // A content that is not recorded has the clock 0.
                            version: Some(n).filter(|n| *n > 0),
                        }]);
                    }
                    return Ok(Restored { files: vec![file] });
                }
                Err(error) if error.code == ErrorCode::Conflict && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes one version. The inner error is that of the guarded write.
    async fn restored(
        &self,
        name: &RelPath,
        version: Version,
        now: Option<Version>,
        back: Back,
        no_redo: bool,
    ) -> Result<Result<RestoredFile, Error>, Error> {
        let base = now.as_ref().and_then(|now| now.hash);
        let mut file = RestoredFile {
            path: name.clone(),
            outcome: Restoration::Unchanged,
            clock: clock(&version),
            hunks: 0,
            recovered: Vec::new(),
        };
        if base == version.hash || matches!(back, Back::Nothing) {
            return Ok(Ok(file));
        }
        if version.mode.is_some_and(FileMode::is_link) {
            return Err(
                Error::path(ErrorCode::NotAFile, name, "it was a symbolic link then")
                    .hint("undo the command that changed it: `touchmark undo --command C`"),
            );
        }
        let bytes = match back {
            Back::Merged(bytes) => bytes,
            _ => self.kept(version.clone()).await?,
        };
        if let Some(now) = &now
            && let Ok(before) = self.kept(now.clone()).await
        {
            let places = lines::places(&before, &bytes).map_or(0, |places| places.len());
            file.hunks = u32::try_from(places).unwrap_or(u32::MAX);
        }
        // A file with several names is written by its own (FILE-1).
        let own = now.as_ref().map(|now| &now.path);
        let own = own.filter(|own| **own == version.path);
        let to = Name {
            path: own.unwrap_or(name).clone(),
            real: version.real.clone(),
        };
        let storage = match no_redo {
            true => Storage::Nowhere,
            false => Storage::Recovery(now.map(|now| now.author)),
        };
        let replacer = self.cx.replacer(&self.log);
        let removes = version.hash.is_none();
        let outcome = aside(move || {
            let stored = replacer.store(&to, false, base, storage);
            let stored = stored.map_err(|error| error.error(&to.path))?;
            let Written { outcome, .. } = match removes {
                true => replacer.remove(&to, &stored).into(),
                // A file that exists keeps its mode.
                false => replacer.write(&to, &stored, bytes, version.mode),
            };
            let is_written = matches!(outcome, WriteOutcome::Done { .. });
            Ok((outcome, replacer.settle(stored, is_written)))
        })
        .await?;
        let (outcome, copy) = match outcome {
            Ok(done) => done,
            Err(error) => return Ok(Err(error)),
        };
        Ok(match outcome {
            WriteOutcome::Done { recovered, .. } => {
                file.outcome = match removes {
                    true => Restoration::Removed,
                    false => Restoration::Restored,
                };
                file.recovered = recovered;
                file.recovered.extend(copy);
                Ok(file)
            }
            WriteOutcome::Conflict {
                found,
                cause,
                recovered,
            } => Err(
                Error::new(ErrorCode::Conflict, format!("not restored: {cause}")).with(ErrorData {
                    path: Some(name.clone()),
                    hash: found,
                    recovered: Some(recovered),
                    ..ErrorData::default()
                }),
            ),
            WriteOutcome::Failed(error) => Err(error),
        })
    }

    /// Returns what puts the lines of a version back that the file lacks.
    async fn lines_back(
        &self,
        versions: &[Version],
        version: &Version,
        now: Option<&Version>,
    ) -> Result<Back, Error> {
        let (path, n) = (version.path.clone(), version.clock.n);
        let replaced = self
            .cx
            .inside
            .look(move |state| Replacement::of(state, &path, n));
        let after = versions.iter().find(|other| other.clock.n > n);
        let now = now.and_then(|now| now.hash);
        let replaced = replaced.await.flatten();
        let any = Replacement {
            seen: Vec::new(),
            version: version.hash,
            by: after.map(|after| after.hash),
            now,
            lines: None,
        };
        let name = version.path.clone();
        let path = name.clone();
        let found = self.look(move |log| {
            let taken = || taken_away(log, &path, n);
            let replacement = Replacement {
                now,
                ..replaced.or_else(taken).unwrap_or(any)
            };
            let mut content = |hash: &Hash| log.content(hash).ok().flatten();
            let lines = match replacement.lost(&mut content) {
                Lost::Nothing => return Some(Back::Nothing),
                // All of a file that is gone comes back.
                _ if replacement.now.is_none() => return Some(Back::All),
                Lost::Lines(lines) => lines,
                Lost::Unknown => return None,
            };
            let version = content(&replacement.version?)?;
            let now = content(&replacement.now?)?;
            let merged = put_back(&version, &lines, &now)?;
            Some(Back::Merged(merged.into()))
        });
        found.await?.ok_or_else(|| {
            Error::path(
                ErrorCode::NotKept,
                &name,
                "the contents cannot be compared line by line",
            )
            .hint("look at the version with `touchmark show`, or restore all of it")
        })
    }
}

/// Returns what the log has of a version that a command took away.
fn taken_away(log: &Reader, path: &RelPath, version: u64) -> Option<Replacement> {
    let facts = log.other_facts_before(u64::MAX, NEWEST).ok()?;
    let is_it = |record: &&Record| {
        matches!(&record.fact, Fact::Lost { path: of, version: n, .. }
            if of == path && *n == version)
    };
    Replacement::of_fact(log, &facts.iter().find(is_it)?.fact)
}

/// What a restore writes.
enum Back {
    Nothing,
    /// The version as it was.
    All,
    /// The current content, with the lines of the version that it lacked.
    Merged(Arc<[u8]>),
}
