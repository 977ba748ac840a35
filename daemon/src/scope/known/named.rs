//! Looks at single files (SCOPE-9).

use rustix::io::Errno;
use touchmark_engine::{Held, SweptFile};
use touchmark_proto::{RelPath, native};

use super::{Entry, Known, Workspace, content, split};
use crate::content::Met;
use crate::scope::index::{Stat, milliseconds};

impl Workspace<'_> {
    /// Returns which of some files have another content than the recorded one,
    /// and the contents met.
    pub(super) fn named(&mut self, files: &[(RelPath, Held)]) -> (Vec<SweptFile>, Vec<Met>) {
        let reader = self.settings.reader.clone();
        let visit = reader.visit();
        let (mut changes, mut met) = (Vec::new(), Vec::new());
        for (path, recorded) in files {
            let place = self.settings.root.join(native::name(path.as_bytes()));
            let (after, changed_ms) = match rustix::fs::lstat(&place) {
                Ok(found) => {
                    let stat = Stat::of(&found);
                    // The lines of a file are a person's. A link has none.
                    let is_ignored = matches!(self.entry(path), Some(Entry::Passed(_)));
                    if stat.is_link() || is_ignored || self.still_has(path, &stat, recorded) {
                        continue;
                    }
                    let Some(content) = content(&visit, path, true) else {
                        continue;
                    };
                    self.record(path, &content, &mut met);
                    (content.held, milliseconds(content.stat.changed))
                }
                Err(Errno::NOENT | Errno::NOTDIR) if !recorded.is_link() => {
                    self.remove(path);
                    (Held::ABSENT, None)
                }
                Err(_) => continue,
            };
            if after.hash != recorded.hash {
                // By now, another look may have changed what is recorded.
                changes.push(SweptFile {
                    changed_ms,
                    ..SweptFile::new(path.clone(), None, after)
                });
            }
        }
        (changes, met)
    }

    /// Returns whether the last sweep's record proves that a file has a content.
    fn still_has(&mut self, path: &RelPath, stat: &Stat, recorded: &Held) -> bool {
        let looked = self
            .index
            .get(split(path).0)
            .map_or(0, |above| above.looked);
        self.file(path).is_some_and(|file| {
            matches!(file.known, Known::Held(held) if held.hash == recorded.hash)
                && file.stat == *stat
                && stat.is_settled(looked)
        })
    }
}
