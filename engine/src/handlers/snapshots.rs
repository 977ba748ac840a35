//! `file/snapshot`, `file/detect`: whether a file has changed since a snapshot.
//! Neither an equal time nor an equal size proves that it has not.

use touchmark_proto::files::{
    FileDetect, FileSnapshot, Snapshot, SnapshotChanges, SnapshotCompared,
};
use touchmark_proto::{ClientPath, Error, ErrorCode, RelPath, Reply};

use crate::ledger::record::Held;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::text::shown::show;
use crate::view::View;

impl View<'_> {
    pub(crate) fn file_snapshot(&self, pending: &mut Pending, ask: &FileSnapshot) -> Answered {
        let (path, held) = self.look_at(pending, &ask.path)?;
        done(Reply::FileSnapshot(Snapshot {
            path: ClientPath::from(&path),
            mtime_ms: held.mtime_ms,
            size: held.size,
            hash: held.hash,
        }))
    }

    pub(crate) fn file_detect(&self, pending: &mut Pending, ask: &FileDetect) -> Answered {
        let before = &ask.snapshot;
        let (_, held) = self.look_at(pending, &before.path)?;
        let changes = SnapshotChanges {
            mtime_changed: held.mtime_ms != before.mtime_ms,
            size_changed: held.size != before.size,
            content_changed: held.hash != before.hash,
        };
        done(Reply::FileDetect(SnapshotCompared {
            modified: changes.content_changed,
            changes,
        }))
    }

    /// Returns a file's name and current content, or the step that reads it
    /// first. The file is always read, since a decision depends on it (SYNC-4).
    fn look_at(
        &self,
        pending: &mut Pending,
        named: &ClientPath,
    ) -> Result<(RelPath, Held), Box<Stop>> {
        let path = self.resolve(named)?;
        if !pending.rechecked {
            pending.rechecked = true;
            return Err(Stop::Read(vec![path], false).into());
        }
        self.usable(&path, pending)?;
        let now = self.current(&path, pending.reads.found.get(&path));
        if now.trouble.is_some() {
            let error = Error::path(
                ErrorCode::Unreadable,
                &path,
                format!("{} changes faster than it can be read", show(&path)),
            )
            .hint("send the request again when the writer has paused");
            return Err(error.into());
        }
        Ok((path, now.held))
    }
}
