//! The translation of the system's events into the engine's inputs.

use std::time::Instant;

use touchmark_engine::{Hint, Input};
use touchmark_proto::RelPath;

use super::backend::{Backend, NoBackend, RawEvent, RawKind};
use super::fence::Fence;
use super::{HeldMove, Watcher, make_backend};
use crate::links::{absolute, relative};
use crate::system::stat::MetadataExt as _;

/// The number of first halves of renames that are stored for a late second
/// half.
const GIVEN_UP: usize = 64;

impl Watcher {
    /// Processes one event of the backend, in order: appends its inputs for the
    /// engine to `out`, and adjusts the watches. The engine should handle these
    /// inputs, and its `Track` effects should be executed, before the next
    /// event is digested.
    pub fn digest(&mut self, raw: RawEvent, out: &mut Vec<Input>) {
        if raw.generation != self.generation {
            // An old backend, replaced after a loss. Everything has been
            // compared with the disk since.
            return;
        }
        match raw.kind {
            RawKind::Lost => return self.lost(out),
            RawKind::Fence(number) => return self.fence_reached(number, out),
            _ => {}
        }
        if raw.path.starts_with(self.fence.dir()) {
            return self.fence_event(&raw, out);
        }
        if self.beside.contains(&raw.path) || self.beside_in.contains(&raw.path) {
            self.beside_touched = true;
            return;
        }
        if self.beside_in.iter().any(|at| raw.path.starts_with(at)) {
            // A file of another daemon.
            return;
        }
        if raw.path == self.root {
            return self.root_event(raw.kind, out);
        }
        let Some(path) = relative(&self.root, &raw.path) else {
            return;
        };
        if raw.kind == RawKind::MovedSelf {
            // The directory above has reported it, with the name.
            return;
        }
        if let Some(directory) = path.parent() {
            self.directories.heard_from(&directory);
        }
        if !self.may_be_mirrored_by(raw.kind, &path) {
            self.tell_doubtful(out);
        }
        let completes = raw.kind == RawKind::MovedTo
            && self.held.as_ref().map(|held| held.cookie) == raw.cookie;
        if !completes {
            self.give_up_held(out);
        }
        let written = matches!(
            raw.kind,
            RawKind::Written | RawKind::Closed | RawKind::WrittenAndClosed
        );
        if written && raw.by_directory && self.hard_links.has(&path) {
            // The file's own watch reports it, once for all of its names: a
            // close must not count twice (ATTR-8). But that watch may not have
            // existed yet when this happened.
            return self.happened_to_file(&path, Hint::Touched, out);
        }
        if !written && self.put_off(&path, raw.at, out) {
            return;
        }
        match raw.kind {
            RawKind::MovedFrom => self.moved_from(path, raw.cookie, out),
            RawKind::MovedTo => self.moved_to(path, raw.cookie, out),
            RawKind::Created => self.appeared(&path, false, out),
            RawKind::Removed => self.removed(&path, out),
            RawKind::Written => self.happened_to_file(&path, Hint::Written, out),
            RawKind::Closed => self.happened_to_file(&path, Hint::Closed, out),
            RawKind::WrittenAndClosed => {
                self.happened_to_file(&path, Hint::WrittenAndClosed, out);
            }
            RawKind::Attributes => self.attributes(&path, out),
            RawKind::Crowd => self.crowded(path, out),
            RawKind::MovedSelf | RawKind::Lost | RawKind::Fence(_) => {}
        }
        self.look_at_renewed(out);
    }

    /// Requests a read of names whose watch ended with that of another name of
    /// their file and was renewed (FILE-3).
    pub(super) fn look_at_renewed(&mut self, out: &mut Vec<Input>) {
        for name in self.hard_links.take_renewed() {
            self.hint(&name, Hint::Touched, out);
        }
    }

    fn hint(&self, entry: &RelPath, hint: Hint, out: &mut Vec<Input>) {
        Self::hint_names(self.cover.spoken_for(entry), hint, out);
    }

    fn hint_names(names: &[RelPath], hint: Hint, out: &mut Vec<Input>) {
        match names {
            [] => {}
            [path] => out.push(Input::Hint {
                path: path.clone(),
                hint,
            }),
            names => out.push(Input::Hints {
                paths: names.to_vec(),
                hint,
            }),
        }
    }

    /// Hints a file under all its names, whichever of them the event names.
    fn happened_to_file(&self, entry: &RelPath, hint: Hint, out: &mut Vec<Input>) {
        match self.hard_links.names_of(entry) {
            [] => self.hint(entry, hint, out),
            names => {
                let spoken_for = names.iter().flat_map(|name| self.cover.spoken_for(name));
                let spoken_for: Vec<RelPath> = spoken_for.cloned().collect();
                Self::hint_names(&spoken_for, hint, out);
            }
        }
    }

    /// Handles a name that appeared, by creation or link, or by a rename
    /// (`moved`).
    fn appeared(&mut self, path: &RelPath, moved: bool, out: &mut Vec<Input>) {
        if moved {
            self.directories.replaced(path);
        }
        // A watched directory has been looked at since it appeared, so the
        // event is old.
        if self.directories.has(path) && (moved || !self.directories.is_watched(path)) {
            self.look_below(path, out);
        }
        if self.cover.spoken_for(path).is_empty() {
            return;
        }
        // Whichever file was watched by this name, the name now has another
        // one.
        self.hard_links
            .drop_at(path, &self.root, self.directories.backend.as_mut());
        let names = self.follow_through(path);
        let (led_on, names): (Vec<_>, Vec<_>) = names
            .into_iter()
            .partition(|name| !self.cover.spoken_for(path).contains(name));
        // These paths resolve through the name, which was missing, and now lead
        // further. The files at their ends may have been complete before they
        // were watched.
        self.hint_as_found(&led_on, out);
        // A link's content is complete: no close will follow.
        let complete = self.look(path).is_ok_and(|metadata| {
            metadata.is_symlink() || (metadata.is_file() && metadata.nlink() > 1)
        });
        if !moved {
            Self::hint_names(&names, Hint::Appeared, out);
        }
        if moved || complete {
            Self::hint_names(&names, Hint::Closed, out);
        }
    }

    /// Hints names that resolve in another way than before (FILE-4). A file at
    /// such a name was written while it was not watched, and is treated as
    /// complete.
    fn hint_as_found(&self, names: &[RelPath], out: &mut Vec<Input>) {
        for name in names {
            let there = absolute(&self.root, name).metadata().is_ok();
            let hint = if there { Hint::Closed } else { Hint::Removed };
            Self::hint_names(std::slice::from_ref(name), hint, out);
        }
    }

    fn removed(&mut self, path: &RelPath, out: &mut Vec<Input>) {
        if self.directories.has(path) {
            // An unmounted directory is reported as removed as well.
            self.look_around(out);
            // The event may be old, and the directory replaced since. The disk
            // decides.
            self.look_below(path, out);
        } else {
            self.directories.drop_at(path);
        }
        if self.cover.spoken_for(path).is_empty() {
            return;
        }
        if self.hard_links.has(path) {
            let place = absolute(&self.root, path);
            self.hard_links
                .drop_at(path, &self.root, self.directories.backend.as_mut());
            if place.symlink_metadata().is_ok() {
                // The file that was watched separately was removed; the name
                // has another one.
                let names = self.follow_through(path);
                return Self::hint_names(&names, Hint::Touched, out);
            }
        }
        let names = self.follow_through(path);
        Self::hint_names(&names, Hint::Removed, out);
    }

    fn attributes(&mut self, path: &RelPath, out: &mut Vec<Input>) {
        if self.directories.has(path) {
            // Permissions may have changed, so paths below may now be readable
            // or watchable, or no longer.
            if self.directories.has_failed(path) {
                return self.look_below(path, out);
            }
            for entry in self.cover.entries_below(path) {
                self.hint(&entry, Hint::Touched, out);
            }
        }
        if !self.cover.spoken_for(path).is_empty() {
            // The file may have another link (reported only for a file that is
            // watched separately).
            self.follow_through(path);
            self.happened_to_file(path, Hint::Touched, out);
        }
    }

    /// Watches a needed directory by its name, and the needed directories
    /// below. Then hints every entry below according to the disk (SYNC-5). A
    /// file there was written while it was not watched, and is treated as
    /// complete.
    fn look_below(&mut self, directory: &RelPath, out: &mut Vec<Input>) {
        self.directories.renew_at(directory);
        for entry in self.cover.entries_below(directory) {
            self.hard_links
                .drop_at(&entry, &self.root, self.directories.backend.as_mut());
            let names = self.follow_through(&entry);
            let there = self.is_there(&entry);
            let hint = if there { Hint::Closed } else { Hint::Removed };
            Self::hint_names(&names, hint, out);
        }
    }

    /// Follows the links of every tracked path that has `entry` as an entry
    /// again. Returns these paths; some may no longer have that entry.
    pub(super) fn follow_through(&mut self, entry: &RelPath) -> Vec<RelPath> {
        let names = self.cover.spoken_for(entry).to_vec();
        for path in &names {
            self.follow(path);
        }
        names
    }

    /// Handles a name for which events were left out: anything may have
    /// happened, in any order (LIM-6).
    fn crowded(&mut self, path: RelPath, out: &mut Vec<Input>) {
        self.last_from = None;
        self.last_rename = None;
        if !self.cover.spoken_for(&path).is_empty() || self.directories.has(&path) {
            self.directories.made_anew(&path);
            self.gap_at(vec![path], out);
        }
    }

    /// Skips an event about a name that changes all the time and through which
    /// many files are reached. The name is looked at later, once for all such
    /// events (LIM-6). Returns whether the event was skipped. `at` is when the
    /// event was taken from the system. The time of this call would not do: on a
    /// busy machine, looking at the files of one event takes so long that the
    /// next event seems to come much later.
    fn put_off(&mut self, path: &RelPath, at: Instant, out: &mut Vec<Input>) -> bool {
        let files = self.directories.needed_by(path) + self.cover.spoken_for(path).len();
        if files <= 1 || !self.busy.puts_off(path, files, at) {
            return false;
        }
        self.give_up_held(out);
        self.last_from = None;
        self.last_rename = None;
        // It may be a link by now, so it is no longer treated as a directory.
        if self.directories.is_watched(path) {
            self.directories.drop_at(path);
        }
        true
    }

    /// Returns when [`look_at_busy`](Self::look_at_busy) has to be called next,
    /// or `None` if no name is deferred.
    pub fn next_look(&self) -> Option<Instant> {
        self.busy.due()
    }

    /// Looks at the deferred names, if the time for it has come.
    pub fn look_at_busy(&mut self, now: Instant, out: &mut Vec<Input>) {
        if self.busy.due().is_none_or(|due| due > now) {
            return;
        }
        let owed = self.busy.take_owed(now);
        for path in &owed {
            self.directories.made_anew(path);
        }
        self.gap_at(owed, out);
    }

    fn moved_from(&mut self, path: RelPath, cookie: Option<usize>, out: &mut Vec<Input>) {
        let Some(cookie) = cookie else {
            return self.removed(&path, out);
        };
        self.last_from = Some((cookie, path.clone()));
        let is_directory = self.directories.has(&path);
        self.directories.drop_at(&path);
        if !is_directory && self.cover.spoken_for(&path).is_empty() {
            return;
        }
        self.hard_links
            .drop_at(&path, &self.root, self.directories.backend.as_mut());
        self.held = Some(HeldMove { cookie, from: path });
        // The second half follows immediately, or there may be none. A fence of
        // the watcher's own ends the wait.
        if self.ensure_fence().is_err() {
            self.give_up_held(out);
        }
    }

    /// Handles a missing second half: the file was moved out of the watched
    /// places.
    fn give_up_held(&mut self, out: &mut Vec<Input>) {
        let Some(held) = self.held.take() else {
            return;
        };
        self.gone(&held.from, false, out);
        if self.given_up.len() == GIVEN_UP {
            self.given_up.pop_front();
        }
        // The event of another process may be between the two halves.
        self.given_up.push_back(held);
    }

    /// Hints that `from` and everything below it were removed. With `renamed`,
    /// tracked paths at or below `from` are left out, since `Renamed` reports
    /// them. Paths elsewhere that resolve through `from` are hinted.
    fn gone(&mut self, from: &RelPath, renamed: bool, out: &mut Vec<Input>) {
        let mut entries = self.cover.entries_below(from);
        if !self.cover.spoken_for(from).is_empty() {
            entries.push(from.clone());
        }
        for entry in entries {
            for path in self.cover.spoken_for(&entry).to_vec() {
                self.follow(&path);
                let said = renamed && (path == *from || path.below(from).is_some());
                if !said {
                    out.push(Input::Hint {
                        path,
                        hint: Hint::Removed,
                    });
                }
            }
        }
    }

    fn moved_to(&mut self, to: RelPath, cookie: Option<usize>, out: &mut Vec<Input>) {
        let matches = |held: &HeldMove| Some(held.cookie) == cookie;
        let held = self.held.take_if(|held| matches(held)).or_else(|| {
            let late = self.given_up.iter().position(matches)?;
            self.given_up.remove(late)
        });
        let rename = self
            .last_from
            .take_if(|(from_cookie, _)| Some(*from_cookie) == cookie)
            .map(|(_, from)| (from, to.clone()));
        let exchanged = self.is_exchange(rename.as_ref());
        self.last_rename = rename;
        if exchanged && let Some((_, other)) = self.doubtful.take() {
            self.appeared(&other, true, out);
            return self.appeared(&to, true, out);
        }
        self.tell_doubtful(out);
        if let Some(held) = held {
            if exchanged {
                if self.cover.holds_tracked(&to) {
                    // The names are in the order of the exchange's first
                    // rename.
                    out.push(Input::Exchanged {
                        from: to.clone(),
                        to: held.from.clone(),
                    });
                }
                self.appeared(&held.from, true, out);
            } else if self.is_there(&held.from) && self.ensure_fence().is_ok() {
                self.doubtful = Some((held.from, to));
                return;
            } else {
                self.renamed(&held.from, &to, out);
            }
        }
        self.appeared(&to, true, out);
    }

    fn renamed(&mut self, from: &RelPath, to: &RelPath, out: &mut Vec<Input>) {
        let renamed = self.cover.holds_tracked(from);
        if renamed {
            out.push(Input::Renamed {
                from: from.clone(),
                to: to.clone(),
            });
        }
        self.gone(from, renamed, out);
    }

    /// Returns whether the event may be a half of the mirror of the doubtful
    /// rename.
    fn may_be_mirrored_by(&self, kind: RawKind, path: &RelPath) -> bool {
        self.doubtful.as_ref().is_some_and(|(from, to)| match kind {
            RawKind::MovedFrom => path == to,
            RawKind::MovedTo => path == from,
            _ => false,
        })
    }

    /// Reports the doubtful rename: it was no exchange.
    fn tell_doubtful(&mut self, out: &mut Vec<Input>) {
        if let Some((from, to)) = self.doubtful.take() {
            self.renamed(&from, &to, out);
            self.appeared(&to, true, out);
        }
    }

    /// Returns whether this is an exchange of two names. The system reports one
    /// as two renames, the second the mirror of the first. Nothing was removed
    /// then.
    fn is_exchange(&self, rename: Option<&(RelPath, RelPath)>) -> bool {
        let (Some((from, to)), Some((last_from, last_to))) = (rename, &self.last_rename) else {
            return false;
        };
        from == last_to && to == last_from && self.is_there(from)
    }

    fn fence_event(&mut self, raw: &RawEvent, out: &mut Vec<Input>) {
        if raw.path == self.fence.dir() {
            // The event may be old, if the directory was created again since.
            let gone = matches!(
                raw.kind,
                RawKind::Removed | RawKind::MovedSelf | RawKind::Crowd
            );
            if gone && !self.fence.is_there() {
                self.fence_broken = Some("its directory was removed".to_owned());
                self.tell_doubtful(out);
                self.give_up_held(out);
                let waiting = self.fence.take_waiting().into_iter();
                out.extend(waiting.map(|fence| Input::FenceFailed { fence }));
            }
            return;
        }
        if matches!(raw.kind, RawKind::MovedTo)
            && let Some(number) = Fence::number(&raw.path)
        {
            self.fence_reached(number, out);
        }
    }

    fn fence_reached(&mut self, number: u64, out: &mut Vec<Input>) {
        let reached = self.fence.reached(number);
        // A fence must not overtake half of a rename.
        self.tell_doubtful(out);
        self.give_up_held(out);
        if !reached.is_empty() && self.busy.due().is_some() {
            // A query about these names then has them read; other queries do
            // not wait.
            let (_, names) = self.reached_by(&self.busy.owed());
            out.push(Input::Unwatched {
                paths: names.into_iter().collect(),
                at_once: false,
            });
        }
        out.extend(
            reached
                .into_iter()
                .map(|fence| Input::FenceReached { fence }),
        );
    }

    fn root_event(&mut self, kind: RawKind, out: &mut Vec<Input>) {
        match kind {
            // The inode number proves nothing here: a workspace that was
            // created again may have the old one's (ATTR-15).
            RawKind::Removed => self.root_gone = true,
            RawKind::MovedSelf => {
                self.check_root();
            }
            RawKind::Attributes | RawKind::Crowd => {
                self.check_root();
                for path in self.cover.all_tracked() {
                    out.push(Input::Hint {
                        path,
                        hint: Hint::Touched,
                    });
                }
            }
            _ => {}
        }
    }

    /// Handles a loss of events. Directories may have been replaced unnoticed,
    /// so no watch is certain to be at its name: everything is watched again,
    /// by a new backend.
    fn lost(&mut self, out: &mut Vec<Input>) {
        self.generation += 1;
        // The old one is dropped first: it may use the user's last inotify
        // instance.
        self.directories.backend = Box::new(NoBackend {
            cause: "events were lost".to_owned(),
        });
        let backend = make_backend(self.choice, self.generation, &self.sink);
        self.start_anew(backend, out);
    }

    /// Watches everything by a new backend, and has it compared with the disk
    /// (LOSS-1). Pending fences end.
    pub(super) fn start_anew(&mut self, backend: Box<dyn Backend>, out: &mut Vec<Input>) {
        self.held = None;
        self.doubtful = None;
        self.given_up.clear();
        self.last_from = None;
        self.last_rename = None;
        self.directories.restart(backend);
        self.watch_fence();
        self.rewatch_beside();
        self.beside_touched = !self.beside.is_empty();
        for path in self.hard_links.clear() {
            self.watch_file(&path);
        }
        for path in self.cover.all_tracked() {
            self.follow(&path);
        }
        self.check_root();
        out.push(Input::Overflow);
        let waiting = self.fence.take_waiting().into_iter();
        out.extend(waiting.map(|fence| Input::FenceReached { fence }));
    }
}
