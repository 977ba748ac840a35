//! `file/restore`: gives a file an earlier content (HIST-4).

use touchmark_engine::text::lines;
use touchmark_engine::{Fact, WriteOutcome};
use touchmark_proto::daemon::Sync;
use touchmark_proto::history::{FileRestore, Restoration, Restored, RestoredFile};
use touchmark_proto::{Error, ErrorCode, ErrorData, FileMode, RelPath, Version};

use super::{Past, clock};
use crate::context::aside;
use crate::guard::{Name, Storage, Written};
use crate::past::versions::current;

/// The most attempts, if the file is saved meanwhile.
const TRIES: usize = 5;

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
            match self.restored(&name, version, now, ask.no_redo).await? {
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
        if base == version.hash {
            return Ok(Ok(file));
        }
        if version.mode.is_some_and(FileMode::is_link) {
            return Err(
                Error::path(ErrorCode::NotAFile, name, "it was a symbolic link then")
                    .hint("undo the command that changed it: `touchmark undo --command C`"),
            );
        }
        let bytes = self.kept(version.clone()).await?;
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
}
