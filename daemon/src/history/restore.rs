//! `file/restore`: gives a file an earlier content (HIST-4).

use std::sync::Arc;

use touchmark_engine::text::lines;
use touchmark_engine::{Fact, WriteOrder, WriteOutcome};
use touchmark_proto::history::{FileRestore, Restoration, Restored, RestoredFile};
use touchmark_proto::{Error, ErrorCode, ErrorData, FileMode, RelPath, Version};

use super::{Past, aside, chain, clock};

/// The most attempts, if the file is saved meanwhile.
const TRIES: usize = 5;

impl Past {
    /// Answers `file/restore`. The current content is stored first, whoever
    /// wrote it.
    pub(crate) async fn restore(&self, ask: FileRestore) -> Result<Restored, Error> {
        let name = self.name(&ask.path)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let current = self.versions(&ask.path, &chain::current).await?;
            let now = current.into_iter().next_back();
            let meant = self.meant(&ask.at).await?;
            let versions = self.versions(&ask.path, &|all| meant.number(all)).await?;
            let version = self.version(&versions, &ask.path, &ask.at).await?.clone();
            let (n, author) = (version.clock.n, version.author.clone());
            match self.restored(&name, version, now).await? {
                Ok(file) => {
                    if file.outcome == Restoration::Restored {
                        self.inside.record(vec![Fact::BroughtBack {
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
        let mode = version.mode.map(FileMode::permissions);
        let bytes = self.kept(version.clone()).await?;
        if let Some(now) = &now
            && let Ok(before) = self.kept(now.clone()).await
        {
            let places = lines::places(&before, &bytes).map_or(0, |places| places.len());
            file.hunks = u32::try_from(places).unwrap_or(u32::MAX);
        }
        let order = WriteOrder {
            path: name.clone(),
            ticket: 0,
            base,
            hash: touchmark_proto::Hash::of(&bytes),
            bytes,
            keep_base: base.is_some(),
            base_author: now.map(|now| now.author),
            create_directories: true,
        };
        let (guard, umask) = (Arc::clone(&self.guard), self.umask);
        let removes = version.hash.is_none();
        let outcome = aside(move || match order.base.filter(|_| removes) {
            Some(base) => guard.remove_and_keep(&order.path, base, order.base_author),
            // A file that exists keeps its mode.
            None => guard.write_with_mode(&order, umask, mode),
        })
        .await?;
        Ok(match outcome {
            WriteOutcome::Done { recovered, .. } => {
                file.outcome = match removes {
                    true => Restoration::Removed,
                    false => Restoration::Restored,
                };
                file.recovered = recovered;
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
