//! Against a real file system; the fence is the only synchronisation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use touchmark_engine::{Hint, Input};
use touchmark_proto::RelPath;

use super::CHOICE;
use crate::watch::backend::RawKind;
use crate::watch::{Choice, RawEvent, Watcher};

/// A workspace with a watcher, in directories of its own.
struct World {
    watcher: Watcher,
    events: Receiver<RawEvent>,
    fences: u64,
    base: tempfile::TempDir,
}

fn rel(path: &str) -> RelPath {
    RelPath::new(path.as_bytes()).unwrap()
}

impl World {
    fn new() -> Self {
        Self::with(CHOICE)
    }

    fn with(choice: Choice) -> Self {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().canonicalize().unwrap();
        fs::create_dir(place.join("w")).unwrap();
        let (send, events) = channel();
        let watcher = Watcher::new(&place.join("w"), &place.join("fence"), choice, move |raw| {
            let _ = send.send(raw);
        })
        .unwrap();
        Self {
            watcher,
            events,
            fences: 0,
            base,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        let root = self.base.path().canonicalize().unwrap().join("w");
        if path.is_empty() {
            root
        } else {
            root.join(path)
        }
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    fn mkdir(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    fn mv(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    /// Tracks, after everything older has been digested.
    fn track(&mut self, paths: &[&str]) {
        if self.watcher.backend() != "none" {
            self.inputs();
        }
        for path in paths {
            self.watcher.track(&rel(path));
        }
    }

    fn next_event(&self) -> RawEvent {
        self.events
            .recv_timeout(Duration::from_secs(20))
            .expect("the fence never came")
    }

    /// Everything that happened up to now.
    fn inputs(&mut self) -> Vec<Input> {
        self.fences += 1;
        let number = self.fences;
        self.watcher.fence(number).unwrap();
        let mut out = Vec::new();
        loop {
            let raw = self.next_event();
            self.watcher.digest(raw, &mut out);
            if matches!(out.last(), Some(Input::FenceReached { fence }) if *fence == number) {
                out.pop();
                return one_by_one(out);
            }
        }
    }

    /// The same as text, one input a word; the system merges equal
    /// neighbours or not, as it likes.
    fn seen(&mut self) -> String {
        let inputs = self.inputs();
        let mut words: Vec<_> = inputs.iter().map(word).collect();
        words.dedup();
        words.join(" ")
    }

    /// The last hint on a path.
    fn last_hint(inputs: &[Input], path: &str) -> Option<Hint> {
        inputs.iter().rev().find_map(|input| match input {
            Input::Hint { path: on, hint } if *on == rel(path) => Some(*hint),
            _ => None,
        })
    }
}

/// How much of a save is found at once is a matter of time.
fn one_by_one(inputs: Vec<Input>) -> Vec<Input> {
    let split = |input| match input {
        Input::Hint {
            path,
            hint: Hint::WrittenAndClosed,
        } => [Hint::Written, Hint::Closed]
            .map(|hint| Input::Hint {
                path: path.clone(),
                hint,
            })
            .to_vec(),
        other => vec![other],
    };
    let apart = |input| match input {
        Input::Hints { paths, hint } => {
            let paths = paths.into_iter();
            paths.map(|path| Input::Hint { path, hint }).collect()
        }
        other => vec![other],
    };
    inputs.into_iter().flat_map(apart).flat_map(split).collect()
}

fn word(input: &Input) -> String {
    match input {
        Input::Hint { path, hint } => format!("{hint:?}({path})"),
        Input::Renamed { from, to } => format!("Renamed({from},{to})"),
        Input::Gap { below } => format!("Gap({below})"),
        Input::FenceReached { fence } => format!("Fence({fence})"),
        Input::FenceFailed { fence } => format!("FenceFailed({fence})"),
        Input::Overflow => "Overflow".into(),
        other => panic!("not the watcher's: {other:?}"),
    }
}

#[test]
fn only_what_is_tracked_is_hinted() {
    let mut world = World::new();
    world.track(&["a"]);
    world.write("b", "x");
    assert_eq!(world.seen(), "");
    world.write("a", "x");
    assert_eq!(world.seen(), "Appeared(a) Written(a) Closed(a)");
    fs::read(world.at("a")).unwrap();
    assert_eq!(world.seen(), "", "reading is nobody's business");
    world.watcher.untrack(&rel("a"));
    world.write("a", "y");
    assert_eq!(world.seen(), "");
}

#[test]
fn one_watch_a_directory_and_none_when_nobody_needs_it() {
    let mut world = World::new();
    world.mkdir("a/b");
    assert_eq!(world.watcher.watched(), 1);
    for n in 0..50 {
        world.track(&[&format!("a/b/{n}")]);
    }
    assert_eq!(world.watcher.watched(), 3);
    for n in 0..50 {
        world.watcher.untrack(&rel(&format!("a/b/{n}")));
    }
    assert_eq!(world.watcher.watched(), 1);
}

#[test]
fn no_fence_overtakes_a_write() {
    let mut world = World::new();
    for n in 0..40 {
        world.mkdir(&format!("d{n}"));
        world.track(&[&format!("d{n}/f")]);
    }
    let mut fences = Vec::new();
    for n in 0..2000_u64 {
        let name = format!("d{}/f", n % 40);
        world.write(&name, "x");
        world.watcher.fence(n).unwrap();
        fences.push((n, name));
    }
    let mut out = Vec::new();
    while !matches!(out.last(), Some(Input::FenceReached { fence: 1999 })) {
        let raw = world.next_event();
        world.watcher.digest(raw, &mut out);
    }
    let out = one_by_one(out);
    // Between the fence before and its own, each write has been closed.
    let mut at = 0;
    for (number, name) in fences {
        let end = at
            + out[at..]
                .iter()
                .position(
                    |input| matches!(input, Input::FenceReached { fence } if *fence == number),
                )
                .expect("fences come in order");
        assert_eq!(
            World::last_hint(&out[at..end], &name),
            Some(Hint::Closed),
            "fence {number}"
        );
        at = end + 1;
    }
}

#[test]
fn files_written_at_once_into_new_directories_are_hinted() {
    let mut world = World::new();
    for n in 0..30 {
        world.track(&[&format!("d{n}/e/f"), &format!("d{n}/g")]);
    }
    assert_eq!(world.watcher.watched(), 1);
    for n in 0..30 {
        world.mkdir(&format!("d{n}/e"));
        world.write(&format!("d{n}/e/f"), "x");
        world.write(&format!("d{n}/g"), "x");
    }
    let inputs = world.inputs();
    for n in 0..30 {
        assert_eq!(
            World::last_hint(&inputs, &format!("d{n}/e/f")),
            Some(Hint::Closed)
        );
        assert_eq!(
            World::last_hint(&inputs, &format!("d{n}/g")),
            Some(Hint::Closed)
        );
    }
    assert_eq!(world.watcher.watched(), 61);
    world.write("d7/e/f", "y");
    assert_eq!(world.seen(), "Written(d7/e/f) Closed(d7/e/f)");
}

#[test]
fn atomic_replacement_is_a_closed_change() {
    let mut world = World::new();
    world.write("f", "old");
    world.track(&["f"]);
    world.write("f.tmp", "new");
    world.mv("f.tmp", "f");
    assert_eq!(world.seen(), "Closed(f)");
}

#[test]
fn saving_like_vim_and_like_sed() {
    let mut world = World::new();
    world.write("f", "old");
    world.track(&["f"]);
    world.mv("f", "f~");
    world.write("f", "new");
    fs::remove_file(world.at("f~")).unwrap();
    assert_eq!(
        world.seen(),
        "Renamed(f,f~) Appeared(f) Written(f) Closed(f)"
    );
    let mut sed = std::process::Command::new("sed");
    sed.args(["-i", "s/new/newer/"]).arg(world.at("f"));
    let mut sed = touchmark_tests::children::start(&mut sed).unwrap();
    assert!(sed.wait().unwrap().success());
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), Some(Hint::Closed));
}

#[test]
fn removed_and_created_anew_twice() {
    // The new file often gets the old inode (S7git): directories are watched,
    // so nothing depends on it.
    let mut world = World::new();
    world.write("f", "a");
    world.track(&["f"]);
    for text in ["b", "c"] {
        fs::remove_file(world.at("f")).unwrap();
        world.write("f", text);
        assert_eq!(world.seen(), "Removed(f) Appeared(f) Written(f) Closed(f)");
    }
}

#[test]
fn a_move_to_where_nobody_looks_is_a_removal_before_the_fence() {
    let mut world = World::new();
    world.write("f", "a");
    world.mkdir("away");
    world.track(&["f"]);
    world.mv("f", "away/f");
    assert_eq!(world.seen(), "Removed(f)");
    world.mv("away/f", "f");
    assert_eq!(world.seen(), "Closed(f)");
}

#[test]
fn a_move_to_where_nobody_looks_needs_no_later_event() {
    let mut world = World::new();
    world.write("f", "a");
    world.mkdir("away");
    world.track(&["f"]);
    world.mv("f", "away/f");
    let mut out = Vec::new();
    while out.is_empty() {
        let raw = world.next_event();
        world.watcher.digest(raw, &mut out);
    }
    assert_eq!(word(&out[0]), "Removed(f)");
}

#[test]
fn renames_between_watched_directories() {
    let mut world = World::new();
    world.mkdir("a");
    world.mkdir("b");
    world.write("a/f", "1");
    world.write("b/g", "2");
    world.track(&["a/f", "b/g"]);
    world.mv("a/f", "b/new");
    assert_eq!(world.seen(), "Renamed(a/f,b/new)");
    world.write("a/f", "3");
    world.inputs();
    world.mv("a/f", "b/g");
    assert_eq!(world.seen(), "Renamed(a/f,b/g) Closed(b/g)");
}

#[test]
fn an_exchange_of_names_renames_nothing_away() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let mut world = World::new();
    world.write("f", "1");
    world.write("f.tmp", "2");
    world.track(&["f"]);
    let (f, tmp) = (world.at("f"), world.at("f.tmp"));
    renameat_with(CWD, &tmp, CWD, &f, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(world.seen(), "Closed(f)");
    // From the other side, too.
    renameat_with(CWD, &f, CWD, &tmp, RenameFlags::EXCHANGE).unwrap();
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), Some(Hint::Closed));
}

#[test]
fn a_second_half_that_comes_late_still_names_the_rename() {
    let mut world = World::new();
    world.write("f", "1");
    world.track(&["f"]);
    let event = |kind, path: &str, cookie| RawEvent {
        generation: 0,
        kind,
        path: world.at(path),
        cookie,
        by_directory: true,
    };
    let script = [
        event(RawKind::MovedFrom, "f", Some(7)),
        event(RawKind::Closed, "other", None),
        event(RawKind::MovedTo, "g", Some(7)),
    ];
    let mut out = Vec::new();
    for raw in script {
        world.watcher.digest(raw, &mut out);
    }
    let words: Vec<_> = out.iter().map(word).collect();
    assert_eq!(words, ["Removed(f)", "Renamed(f,g)"]);
}

#[test]
fn a_directory_moved_away_and_replaced() {
    let mut world = World::new();
    world.mkdir("d/e");
    world.write("d/e/f", "1");
    world.write("d/g", "1");
    world.track(&["d/e/f", "d/g"]);
    world.mv("d", "old");
    assert_eq!(world.seen(), "Renamed(d,old)");
    assert_eq!(world.watcher.watched(), 1);
    // What happens in the moved directory is not the old path's affair. The
    // thread of the `notify` crate may give the watch up a moment later: a hint
    // too many costs a read.
    world.write("old/g", "2");
    let seen = world.seen();
    let late = CHOICE == Choice::Notify && seen == "Written(d/g) Closed(d/g)";
    assert!(seen.is_empty() || late, "{seen}");
    world.mkdir("d/e");
    world.write("d/e/f", "3");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Closed));
    world.write("d/e/f", "4");
    assert_eq!(world.seen(), "Written(d/e/f) Closed(d/e/f)");
    fs::remove_dir_all(world.at("d")).unwrap();
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Removed));
    world.mv("old", "d");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "d/g"), Some(Hint::Closed));
    world.write("d/g", "5");
    assert_eq!(world.seen(), "Written(d/g) Closed(d/g)");
    assert_eq!(world.watcher.watched(), 3);
}

#[test]
fn directories_replaced_again_and_again_without_a_look_between() {
    let mut world = World::new();
    world.track(&["d/e/f"]);
    for round in 0..200 {
        if round % 3 == 2 {
            let _ = fs::remove_dir_all(world.at("gone"));
            world.mv("d", "gone");
        } else {
            let _ = fs::remove_dir_all(world.at("d"));
        }
        world.mkdir("d/e");
        world.write("d/e/f", "x");
        if round % 7 == 0 {
            let inputs = world.inputs();
            assert_eq!(
                World::last_hint(&inputs, "d/e/f"),
                Some(Hint::Closed),
                "round {round}"
            );
            world.write("d/e/f", "y");
            let inputs = world.inputs();
            assert_eq!(
                World::last_hint(&inputs, "d/e/f"),
                Some(Hint::Closed),
                "after round {round}"
            );
        }
    }
}

#[test]
fn tracking_in_a_directory_with_old_news_in_the_queue() {
    // The backend ends a watch by name when it reads that the name went; a
    // watch made meanwhile on the new directory of that name goes with it.
    let mut world = World::new();
    for round in 0..200 {
        world.mkdir("d");
        world.track(&["d/a"]);
        world.inputs();
        fs::remove_dir_all(world.at("d")).unwrap();
        world.mkdir("d");
        world.watcher.track(&rel("d/f"));
        world.write("d/f", "x");
        let inputs = world.inputs();
        assert_eq!(
            World::last_hint(&inputs, "d/f"),
            Some(Hint::Closed),
            "round {round}"
        );
        world.write("d/f", "y");
        assert_eq!(world.seen(), "Written(d/f) Closed(d/f)", "round {round}");
        world.watcher.untrack(&rel("d/f"));
        world.watcher.untrack(&rel("d/a"));
        fs::remove_dir_all(world.at("d")).unwrap();
    }
}

#[test]
fn names_that_are_not_utf8() {
    let mut world = World::new();
    let name = b"d\xff/f\xfe";
    let path = RelPath::new(name).unwrap();
    world.watcher.track(&path);
    fs::create_dir(world.at("").join(OsStr::from_bytes(b"d\xff"))).unwrap();
    fs::write(world.at("").join(OsStr::from_bytes(name)), "x").unwrap();
    let inputs = world.inputs();
    assert!(
        inputs.iter().any(
            |input| matches!(input, Input::Hint { path: on, hint: Hint::Closed } if *on == path)
        )
    );
}

#[test]
fn a_symlinks_target_speaks_for_it() {
    let mut world = World::new();
    world.mkdir("real/deep");
    world.write("real/deep/f", "1");
    symlink("real/deep/f", world.at("link")).unwrap();
    symlink("real/deep", world.at("dir")).unwrap();
    world.track(&["link", "dir/f"]);
    assert_eq!(world.watcher.watched(), 3);
    world.write("real/deep/f", "2");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "link"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "dir/f"), Some(Hint::Closed));
    // S29: the target is replaced.
    world.write("real/deep/tmp", "3");
    world.mv("real/deep/tmp", "real/deep/f");
    assert_eq!(world.seen(), "Closed(link) Closed(dir/f)");
    // The link is replaced: the new target speaks, the old does not.
    world.write("other", "4");
    symlink("other", world.at("link.tmp")).unwrap();
    world.mv("link.tmp", "link");
    assert_eq!(world.seen(), "Closed(link)");
    world.write("other", "5");
    assert_eq!(world.seen(), "Written(link) Closed(link)");
    world.write("real/deep/f", "6");
    assert_eq!(world.seen(), "Written(dir/f) Closed(dir/f)");
    world.watcher.untrack(&rel("dir/f"));
    assert_eq!(world.watcher.watched(), 1);
}

#[test]
fn a_symlink_and_its_target_are_both_hinted() {
    let mut world = World::new();
    world.mkdir("real");
    symlink("real", world.at("dir")).unwrap();
    world.track(&["real/f", "dir/f"]);
    world.write("real/f", "1");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "real/f"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "dir/f"), Some(Hint::Closed));
    // The directory becomes a link, and a directory again.
    fs::remove_file(world.at("dir")).unwrap();
    world.mkdir("dir");
    world.write("dir/f", "2");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "dir/f"), Some(Hint::Closed));
    world.write("dir/f", "3");
    assert_eq!(world.seen(), "Written(dir/f) Closed(dir/f)");
    world.write("real/f", "4");
    assert_eq!(world.seen(), "Written(real/f) Closed(real/f)");
}

#[test]
fn a_new_link_is_complete_as_it_is() {
    let mut world = World::new();
    world.write("other", "1");
    world.track(&["soft", "hard"]);
    symlink("other", world.at("soft")).unwrap();
    assert_eq!(world.seen(), "Appeared(soft) Closed(soft)");
    fs::hard_link(world.at("other"), world.at("hard")).unwrap();
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "hard"), Some(Hint::Closed));
}

#[test]
fn a_write_through_another_name_of_the_file_is_seen() {
    let mut world = World::new();
    world.mkdir("away");
    world.write("f", "1");
    world.track(&["f"]);
    // The second name appears in a directory nobody watches: that makes no
    // event, and the next read finds it.
    fs::hard_link(world.at("f"), world.at("away/g")).unwrap();
    assert_eq!(world.seen(), "");
    assert!(world.watcher.watch_file(&rel("f")));
    assert!(!world.watcher.watch_file(&rel("f")));
    world.write("away/g", "2");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), Some(Hint::Closed));
    // Two tracked names share one watch: both are told.
    fs::hard_link(world.at("f"), world.at("h")).unwrap();
    world.track(&["h"]);
    world.inputs();
    world.write("away/g", "3");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), Some(Hint::Closed));
    assert_eq!(World::last_hint(&inputs, "h"), Some(Hint::Closed));
    // Replaced by a file of its own, the other name is nothing to it.
    world.write("tmp", "4");
    world.mv("tmp", "f");
    world.inputs();
    world.write("away/g", "5");
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "f"), None);
    assert_eq!(World::last_hint(&inputs, "h"), Some(Hint::Closed));
}

#[test]
fn permissions_of_directories_touch_what_is_below() {
    let mut world = World::new();
    world.mkdir("d/e");
    world.write("d/e/f", "1");
    world.track(&["d/e/f"]);
    fs::set_permissions(world.at("d"), fs::Permissions::from_mode(0o700)).unwrap();
    let inputs = world.inputs();
    assert_eq!(World::last_hint(&inputs, "d/e/f"), Some(Hint::Touched));
}

#[test]
fn after_a_loss_all_is_compared_and_the_fences_end() {
    let mut world = World::new();
    world.mkdir("d");
    world.write("d/f", "1");
    world.track(&["d/f"]);
    world.inputs();
    world.watcher.fence(101).unwrap();
    world.watcher.fence(102).unwrap();
    // Unseen: the directory is another by now.
    world.mv("d", "old");
    world.mkdir("d");
    let lost = RawEvent {
        generation: 0,
        kind: RawKind::Lost,
        path: PathBuf::new(),
        cookie: None,
        by_directory: false,
    };
    let mut out = Vec::new();
    world.watcher.digest(lost, &mut out);
    let words: Vec<_> = out.iter().map(word).collect();
    assert_eq!(words, ["Overflow", "Fence(101)", "Fence(102)"]);
    // Watched by name again, and what the old backend still says is void.
    world.write("d/f", "2");
    assert_eq!(world.seen(), "Appeared(d/f) Written(d/f) Closed(d/f)");
    world.write("old/f", "3");
    assert_eq!(world.seen(), "");
    assert!(!world.watcher.root_gone());
}

#[test]
fn the_fence_mends_itself() {
    let mut world = World::new();
    world.track(&["f"]);
    // Only a backend that cannot be asked needs a directory.
    let removed = fs::remove_dir_all(world.watcher.fence.dir());
    assert_eq!(removed.is_ok(), CHOICE == Choice::Notify);
    world.write("f", "1");
    assert_eq!(world.seen(), "Appeared(f) Written(f) Closed(f)");
    assert!(world.watcher.degraded().is_empty());
}

#[test]
fn the_roots_end_is_noticed() {
    let mut world = World::new();
    world.write("f", "1");
    world.track(&["f"]);
    let elsewhere = world.base.path().join("moved");
    fs::rename(world.at(""), &elsewhere).unwrap();
    world.inputs();
    assert!(world.watcher.root_gone());

    let mut world = World::new();
    fs::remove_dir_all(world.at("")).unwrap();
    world.inputs();
    assert!(world.watcher.root_gone());
}

#[test]
fn without_a_backend_everything_is_blind() {
    let mut world = World::with(Choice::Off);
    world.mkdir("d");
    world.track(&["d/f"]);
    assert!(world.watcher.blind(&rel("d/f")));
    assert!(world.watcher.fence(1).is_err());
    assert_eq!(world.watcher.degraded()[0].path, None);
    assert_eq!(world.watcher.backend(), "none");
    assert!(!World::new().watcher.blind(&rel("d/f")));
}

#[test]
fn alias_asks_for_another_read_only_when_it_learned_something() {
    let mut world = World::new();
    world.mkdir("real");
    world.write("real/f", "1");
    symlink("real/f", world.at("link")).unwrap();
    world.track(&["link", "real/f"]);
    assert!(!world.watcher.alias(&rel("link"), Some(&rel("real/f"))));
    assert!(!world.watcher.alias(&rel("real/f"), None));
    // Changed, and its event not yet digested: the reader was faster.
    world.write("other", "2");
    fs::remove_file(world.at("link")).unwrap();
    symlink("other", world.at("link")).unwrap();
    assert!(world.watcher.alias(&rel("link"), Some(&rel("other"))));
}

#[test]
fn a_file_kept_open_is_written_and_then_closed() {
    let mut world = World::new();
    world.track(&["f"]);
    let mut file = fs::File::create(world.at("f")).unwrap();
    file.write_all(b"1").unwrap();
    assert_eq!(world.seen(), "Appeared(f) Written(f)");
    drop(file);
    assert_eq!(world.seen(), "Closed(f)");
}
#[test]
fn a_watch_nobody_needs_reports_once_at_most() {
    let mut world = World::new();
    let path = |n: usize| format!("d{n}/f");
    for n in 0..200 {
        world.mkdir(&format!("d{n}"));
    }
    world.inputs();
    for n in 0..200 {
        world.watcher.track(&rel(&path(n)));
    }
    for n in 0..200 {
        world.watcher.untrack(&rel(&path(n)));
    }
    assert_eq!(world.watcher.watched(), 1);
    // With many watches, the first to go stay until they say something.
    world.write(&path(0), "1");
    assert_eq!(world.seen(), "");
    let events = |world: &mut World| {
        world.write(&path(0), "2");
        world.fences += 1;
        world.watcher.fence(world.fences).unwrap();
        let mut out = Vec::new();
        let mut heard = 0;
        while out.is_empty() {
            let raw = world.next_event();
            heard += usize::from(raw.path.ends_with("d0/f"));
            world.watcher.digest(raw, &mut out);
        }
        heard
    };
    assert_eq!(events(&mut world), 0);
    // Needed again, they report again; replaced meanwhile or not.
    world.mv("d1", "old");
    world.mkdir("d1");
    world.track(&[&path(0), &path(1), &path(2)]);
    for n in 0..3 {
        world.write(&path(n), "3");
    }
    let inputs = world.inputs();
    for n in 0..3 {
        assert_eq!(World::last_hint(&inputs, &path(n)), Some(Hint::Closed));
    }
}

#[test]
fn one_name_given_up_does_not_blind_the_other() {
    // However the name goes, what is written by a third name, in a directory
    // nobody watches, is seen by the one that is left (FILE-3).
    for how in ["untracked", "removed", "moved away", "replaced"] {
        for left in ["d/a", "e/b"] {
            let gone = if left == "d/a" { "e/b" } else { "d/a" };
            let mut world = World::new();
            for directory in ["d", "e", "away"] {
                world.mkdir(directory);
            }
            world.write("d/a", "1");
            fs::hard_link(world.at("d/a"), world.at("e/b")).unwrap();
            fs::hard_link(world.at("d/a"), world.at("away/c")).unwrap();
            world.track(&["d/a", "e/b"]);
            match how {
                "untracked" => world.watcher.untrack(&rel(gone)),
                "removed" => fs::remove_file(world.at(gone)).unwrap(),
                "moved away" => world.mv(gone, "away/elsewhere"),
                _ => {
                    world.write("tmp", "2");
                    world.mv("tmp", gone);
                }
            }
            world.inputs();
            world.write("away/c", "3");
            let inputs = world.inputs();
            let seen = World::last_hint(&inputs, left);
            assert_eq!(seen, Some(Hint::Closed), "{gone} {how}");
        }
    }
}

#[test]
fn a_directory_that_a_symlink_leads_to_may_come_and_go() {
    for moved in [true, false] {
        let mut world = World::new();
        world.mkdir("build");
        world.write("build/f", "1");
        symlink("build", world.at("out")).unwrap();
        world.track(&["out/f"]);
        if moved {
            world.mv("build", "old");
        } else {
            fs::remove_dir_all(world.at("build")).unwrap();
        }
        let inputs = world.inputs();
        assert_eq!(World::last_hint(&inputs, "out/f"), Some(Hint::Removed));
        // Another takes its place, with what is in it (FILE-4).
        world.mkdir("next");
        world.write("next/f", "2");
        world.inputs();
        world.mv("next", "build");
        let inputs = world.inputs();
        assert_eq!(World::last_hint(&inputs, "out/f"), Some(Hint::Closed));
        world.write("build/f", "3");
        let inputs = world.inputs();
        assert_eq!(World::last_hint(&inputs, "out/f"), Some(Hint::Closed));
    }
}
