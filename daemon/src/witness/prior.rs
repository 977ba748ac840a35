//! What a mark tells about an untracked file (ATTR-3).

use touchmark_engine::{NameEvent, Prior, PriorFile, StoredBytes, Subtree};
use touchmark_proto::FileMode;
use touchmark_witness::{Chance, Event, Identity, Mark, Operation};

/// Returns what had the name before the call.
pub(super) fn prior(mark: &Mark) -> Prior {
    let time = |ns| i64::try_from(ns).unwrap_or(i64::MAX);
    match (mark.object, mark.before) {
        // The witness has not looked: the call fails if there is anything.
        _ if mark.chance == Chance::IfNew => Prior::New,
        (None, _) => Prior::Absent,
        (Some(object), Some(before)) => Prior::File(PriorFile {
            inode: object.inode,
            size: before.size,
            changed: time(before.changed),
            modified: time(before.modified),
            mode: FileMode::new(object.mode.into()),
            stored: before.stored.map(|stored| StoredBytes {
                at: stored.at,
                sum: stored.sum,
            }),
        }),
        // No regular file.
        (Some(_), None) => Prior::Unknown,
    }
}

/// Returns what happens to the name if the call succeeds; `None` if that is not
/// known or not told.
pub(super) fn events(mark: &Mark) -> Option<Vec<NameEvent>> {
    use NameEvent::{Closed, Created, MovedFrom, MovedTo, Removed};
    let events = match mark.operation {
        Operation::Created if mark.object.is_none() => vec![Created, Closed],
        Operation::Opened | Operation::OpenedTruncating | Operation::Created => vec![Closed],
        Operation::RenamedFrom => vec![MovedFrom],
        Operation::RenamedTo => vec![MovedTo],
        Operation::Unlinked => vec![Removed],
        Operation::Symlinked => vec![Created],
        // By another name, or without an event of the name's.
        Operation::Temporary
        | Operation::Exchanged
        | Operation::LinkedFrom
        | Operation::Linked
        | Operation::DirectoryRemoved
        | Operation::Truncated => return None,
    };
    mark.is_watched.then_some(events)
}

/// Returns what the call does to the names below. `moving`: what gets or loses the
/// name by a rename.
pub(super) fn subtree(mark: &Mark, moving: Option<Identity>) -> Subtree {
    let mode = |object: Identity| FileMode::new(object.mode.into());
    let is_link = |object| mode(object).is_some_and(FileMode::is_link);
    let removes = matches!(mark.operation, Operation::RenamedTo | Operation::Unlinked);
    match moving.and_then(mode) {
        Some(moved) if moved.is_directory() => Subtree::Moved,
        Some(moved) if moved.is_link() => Subtree::Redirected,
        _ if mark.operation == Operation::Symlinked => Subtree::Redirected,
        _ if removes && mark.object.is_some_and(is_link) => Subtree::Redirected,
        _ => Subtree::Same,
    }
}

/// Returns an event as the engine has it.
pub(super) fn event(event: Event) -> NameEvent {
    match event {
        Event::Closed => NameEvent::Closed,
        Event::Created => NameEvent::Created,
        Event::Removed => NameEvent::Removed,
        Event::MovedFrom => NameEvent::MovedFrom,
        Event::MovedTo => NameEvent::MovedTo,
    }
}
