//! A workspace on a real file system, and its watcher.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use touchmark_engine::{Hint, Input};
use touchmark_proto::RelPath;

use super::CHOICE;
use crate::watch::{Choice, RawEvent, Watcher};

/// A workspace with a watcher, in separate directories.
pub(super) struct World {
    pub(super) watcher: Watcher,
    pub(super) events: Receiver<RawEvent>,
    pub(super) fences: u64,
    pub(super) base: tempfile::TempDir,
}

pub(super) fn rel(path: &str) -> RelPath {
    RelPath::new(path.as_bytes()).unwrap()
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(CHOICE)
    }

    pub(super) fn with(choice: Choice) -> Self {
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

    pub(super) fn at(&self, path: &str) -> PathBuf {
        let root = self.base.path().canonicalize().unwrap().join("w");
        if path.is_empty() {
            root
        } else {
            root.join(path)
        }
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    pub(super) fn mkdir(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    pub(super) fn mv(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    /// Tracks paths, after everything older has been digested.
    pub(super) fn track(&mut self, paths: &[&str]) {
        if self.watcher.backend() != "none" {
            self.inputs();
        }
        for path in paths {
            self.watcher.track(&rel(path));
        }
    }

    pub(super) fn next_event(&self) -> RawEvent {
        self.events
            .recv_timeout(Duration::from_secs(20))
            .expect("the fence never came")
    }

    /// Returns the inputs for everything that happened up to now.
    pub(super) fn inputs(&mut self) -> Vec<Input> {
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

    /// Returns these inputs as text, one word each. The system may merge equal
    /// events that follow each other.
    pub(super) fn seen(&mut self) -> String {
        let inputs = self.inputs();
        let mut words: Vec<_> = inputs.iter().map(word).collect();
        words.dedup();
        words.join(" ")
    }

    /// Returns the last hint on a path.
    pub(super) fn last_hint(inputs: &[Input], path: &str) -> Option<Hint> {
        inputs.iter().rev().find_map(|input| match input {
            Input::Hint { path: on, hint } if *on == rel(path) => Some(*hint),
            _ => None,
        })
    }
}

/// Splits merged hints, since it depends on timing how many events of a save
/// are read together.
pub(super) fn one_by_one(inputs: Vec<Input>) -> Vec<Input> {
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

pub(super) fn word(input: &Input) -> String {
    match input {
        Input::Hint { path, hint } => format!("{hint:?}({path})"),
        Input::Renamed { from, to } => format!("Renamed({from},{to})"),
        Input::Exchanged { from, to } => format!("Exchanged({from},{to})"),
        Input::Gap { below } => format!("Gap({below})"),
        Input::FenceReached { fence } => format!("Fence({fence})"),
        Input::FenceFailed { fence } => format!("FenceFailed({fence})"),
        Input::Overflow => "Overflow".into(),
        Input::Unwatched { paths, .. } => format!("Unwatched({})", paths.len()),
        other => panic!("not the watcher's: {other:?}"),
    }
}
