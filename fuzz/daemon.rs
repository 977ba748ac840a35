//! The bodies of the fuzz targets whose parsers are private to the daemon's
//! crate. This is a module of that crate only for its tests and for a fuzzer. A
//! body stands in the module whose parsers it calls.
#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, DirBuilder};
use std::ops::Deref;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub use crate::hooks::fuzzed::{hooks, patches, shown};
pub use crate::past::fuzzed::{index, repository};
pub use crate::telemetry::fuzzed::collector;

/// Opens the files in which the daemon notes what it is about to do: an undo, a
/// guarded write, a content that waits, an event that waits. The first byte
/// chooses which.
pub fn journal(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    match which % 4 {
        0 => crate::undo::fuzzed::undo(bytes),
        1 => crate::guard::fuzzed::writes(bytes),
        2 => crate::store::fuzzed::spool(bytes),
        _ => crate::hooks::fuzzed::unanswered(bytes),
    }
}

/// Returns the parts of a text, separated by lines of `%%%`. Missing ones are
/// empty.
pub(crate) fn parts<const N: usize>(text: &str) -> [&str; N] {
    let mut parts = text.splitn(N, "\n%%%\n");
    [(); N].map(|()| parts.next().unwrap_or_default())
}

/// A directory of this thread's, which is removed with it.
pub(crate) struct Scratch(PathBuf);

impl Deref for Scratch {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _best_effort = fs::remove_dir_all(&self.0);
    }
}

/// Returns this thread's directory of this name, in memory if possible. A new
/// one is filled first.
pub(crate) fn scratch(name: &'static str, fill: fn(&Path)) -> Rc<Scratch> {
    thread_local! {
        static ALL: RefCell<HashMap<&'static str, Rc<Scratch>>> = RefCell::default();
    }
    ALL.with_borrow_mut(|all| {
        let made = || {
            let memory = Path::new("/dev/shm");
            let base = match memory.is_dir() {
                true => memory.to_owned(),
                false => std::env::temp_dir().canonicalize().unwrap(),
            };
            let at = base.join(format!("touchmark-fuzz-{name}-{}", std::process::id()));
            let _from_before = fs::remove_dir_all(&at);
            DirBuilder::new().mode(0o700).create(&at).unwrap();
            fill(&at);
            Rc::new(Scratch(at))
        };
        Rc::clone(all.entry(name).or_insert_with(made))
    })
}

#[cfg(test)]
#[path = "seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_private_parsers() {
        for (target, body) in [
            ("collector", collector as fn(&[u8])),
            ("hooks", hooks),
            ("index", index),
            ("journal", journal),
            ("patches", patches),
            ("repository", repository),
            ("shown", shown),
        ] {
            seeds::each_seed(target, body);
        }
    }
}
