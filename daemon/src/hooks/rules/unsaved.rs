//! Files with unsaved changes in an editor (HOOK-6): of a write to such a file
//! and the user's next save, the later one overwrites the other.

use touchmark_proto::{ClientPath, FileState, LineRange, SessionId};

use super::super::daemon_handle::DaemonHandle;
use super::super::happened::{Change, Verdict};
use super::super::{destroys, edits, notice};
use crate::config::Unsaved;
use touchmark_engine::text::{form, lines};

/// Returns the verdict before a tool writes to these files, given their states.
/// It warns once for each file and session, and again only after the file's
/// changes were saved or undone.
pub(super) async fn before<'a>(
    daemon: &DaemonHandle,
    session: &SessionId,
    files: impl Iterator<Item = (&'a FileState, &'a Change)>,
) -> Verdict {
    for (file, change) in files {
        let path = ClientPath::from(&file.path);
        if file.unsaved != Some(true) {
            daemon.memory.saved(session, &path);
            continue;
        }
        let verdict = match daemon.settings.unsaved {
            Unsaved::Off => continue,
            Unsaved::Ask => Verdict::Ask(notice::asks_over_unsaved(file)),
            Unsaved::Deny => match file.unsaved_lines {
                Some(unsaved) if overlaps(daemon, file, change, unsaved).await => {
                    Verdict::Deny(notice::writes_over_unsaved(file, unsaved))
                }
                // If the editor did not report the changed lines, nothing is
                // denied.
                _ => continue,
            },
        };
        if daemon.memory.warns_of_unsaved(session, &path) {
            return verdict;
        }
    }
    Verdict::Nothing
}

/// Returns whether a tool changes lines that the user is changing.
async fn overlaps(
    daemon: &DaemonHandle,
    file: &FileState,
    change: &Change,
    unsaved: LineRange,
) -> bool {
    if *change == Change::Delete {
        return true;
    }
    let path = ClientPath::from(&file.path);
    let Some((_, now)) = daemon.bytes(&path).await else {
        return false;
    };
    let edit = edits::likeliest(change, &now).and_then(|result| {
        let now = form::plain(&now)?;
        lines::places(now.as_bytes(), result.as_bytes())
    });
    destroys::touched(&edit.unwrap_or_default(), file.line_count)
        .iter()
        .any(|touched| touched.start <= unsaved.end && unsaved.start <= touched.end)
}
