//! Symbolic links in a copy of a workspace: none leads back into the workspace.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

/// The links that a copy has.
pub(super) struct Links {
    /// The workspace's canonical path.
    from: PathBuf,
    /// The copy's.
    to: PathBuf,
    /// The names in the copy.
    made: Vec<PathBuf>,
}

impl Links {
    pub(super) fn new(from: &Path, to: &Path) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            made: Vec::new(),
        }
    }

    /// Makes a link in the copy, which has this target in the workspace. `name`
    /// is relative to the workspace.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn make(&mut self, name: &Path, target: &Path) -> io::Result<()> {
        let at = self.to.join(name);
        symlink(self.target(name, target), &at)?;
        self.made.push(at);
        Ok(())
    }

    /// Returns the target of a link in the copy: as it is if that stays inside,
    /// else absolute. One inside the workspace becomes the same place in the
    /// copy.
    fn target(&self, name: &Path, target: &Path) -> PathBuf {
        let directory = self.from.join(name.parent().unwrap_or(Path::new("")));
        let meant = plain(&directory.join(target));
        match meant.strip_prefix(&self.from) {
            Ok(_) if target.is_relative() && stays(name, target) => target.to_owned(),
            Ok(inside) => self.to.join(inside),
            Err(_) => meant,
        }
    }

    /// Replaces the links that still resolve into the workspace, through other
    /// links, by links to the same place in the copy.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn lead_into_the_copy(&self) -> io::Result<()> {
        for link in &self.made {
            let Ok(real) = link.canonicalize() else {
                continue;
            };
            if let Ok(inside) = real.strip_prefix(&self.from) {
                fs::remove_file(link)?;
                symlink(self.to.join(inside), link)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a relative target never leaves the workspace, not even to
/// come back by its name.
fn stays(name: &Path, target: &Path) -> bool {
    let mut depth = name.components().count().saturating_sub(1);
    target.components().all(|part| match part {
        Component::ParentDir => match depth.checked_sub(1) {
            Some(less) => {
                depth = less;
                true
            }
            None => false,
        },
        Component::Normal(_) => {
            depth += 1;
            true
        }
        _ => true,
    })
}

/// Returns a path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_inside_lead_into_the_copy_and_others_stay() {
        let links = Links::new(Path::new("/home/me/w"), Path::new("/tmp/c/w"));
        let target = |name: &str, target: &str| {
            let found = links.target(Path::new(name), Path::new(target));
            found.to_str().unwrap().to_owned()
        };
        assert_eq!(target("a", "b"), "b");
        assert_eq!(target("d/e/a", "../../b"), "../../b");
        assert_eq!(target("a", "/home/me/w/b"), "/tmp/c/w/b");
        // Over the workspace's own name, and out of it.
        assert_eq!(target("a", "../w/b"), "/tmp/c/w/b");
        assert_eq!(target("d/a", "../../x"), "/home/me/x");
        assert_eq!(target("a", "/home/me/w2/b"), "/home/me/w2/b");
    }
}
