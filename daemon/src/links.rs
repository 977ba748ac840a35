//! Resolves symlinks step by step, where the kernel's own resolution reports
//! too little: which links were followed, and whether an absolute link resolves
//! into the workspace.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use touchmark_proto::{RelPath, native};

/// The maximum number of links; the kernel follows as many before it reports
/// `ELOOP`.
const MAX_LINKS: usize = 40;

/// What a path resolves to.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The names of the symlinks that were followed, in order.
    pub(crate) links: Vec<RelPath>,
    /// What is at the end.
    pub(crate) end: End,
    /// The number of components that follow a missing one.
    pub(crate) ahead: usize,
    /// The real name of what is missing, if symlinks resolve to it.
    pub(crate) missing: Option<RelPath>,
}

/// What is at the end of a path.
#[derive(Debug)]
pub(crate) enum End {
    /// An object that is no symlink, by its real name.
    There(RelPath, Metadata),
    /// The workspace's own directory.
    Root,
    /// This name does not exist, or is no directory although the path continues
    /// below it.
    Missing(RelPath),
    /// A link resolves to a place outside of the workspace (SEC-2).
    Outside,
    /// The links form a circle, or there are too many.
    Loop,
    /// A directory on the path may not be searched.
    Denied(io::Error),
}

/// Returns the absolute path of `path` below `root`, in the system's encoding.
pub(crate) fn absolute(root: &Path, path: &RelPath) -> PathBuf {
    root.join(native::name(path.as_bytes()))
}

/// Returns an absolute path relative to the workspace; `None` for the
/// workspace's own directory and for everything that is not below it.
pub(crate) fn relative(root: &Path, path: &Path) -> Option<RelPath> {
    RelPath::new(&native::bytes(path.strip_prefix(root).ok()?)).ok()
}

/// Resolves `path` component by component. `root` is canonical.
/// `known_directory` returns whether a name is known to be a real directory, so
/// that no stat is needed.
pub(crate) fn resolve(
    root: &Path,
    path: &RelPath,
    known_directory: impl Fn(&RelPath) -> bool,
) -> Resolved {
    resolve_until(root, path, known_directory, |_| false)
}

/// Resolves `path` like [`resolve`], but stops at a name that is `barred` and
/// must not be touched. The result is [`End::Missing`] with its full name.
pub(crate) fn resolve_until(
    root: &Path,
    path: &RelPath,
    known_directory: impl Fn(&RelPath) -> bool,
    barred: impl Fn(&RelPath) -> bool,
) -> Resolved {
    let mut links = Vec::new();
    let mut ahead = Vec::new();
    let end = walk(root, path, known_directory, barred, &mut links, &mut ahead);
    let missing = match &end {
        End::Missing(here) if !links.is_empty() => {
            let behind = ahead.iter().rev();
            let plain = behind.clone().all(|name| name != b"..");
            let whole = behind.fold(here.as_bytes().to_vec(), |mut whole, name| {
                whole.push(b'/');
                whole.extend(name);
                whole
            });
            RelPath::new(&whole).ok().filter(|_| plain)
        }
        _ => None,
    };
    Resolved {
        links,
        end,
        ahead: ahead.len(),
        missing,
    }
}

fn walk(
    root: &Path,
    path: &RelPath,
    known_directory: impl Fn(&RelPath) -> bool,
    barred: impl Fn(&RelPath) -> bool,
    links: &mut Vec<RelPath>,
    ahead: &mut Vec<Vec<u8>>,
) -> End {
    let mut behind: Vec<Vec<u8>> = Vec::new();
    push_reversed(ahead, path.as_bytes());
    let mut last = None;
    while let Some(name) = ahead.pop() {
        last = None;
        if name == b".." {
            if behind.pop().is_none() {
                // The path leaves the workspace at its top. It may come in
                // again (`../here/file`).
                let mut out = root.parent().unwrap_or(root).to_path_buf();
                for name in ahead.drain(..).rev() {
                    out.push(native::owned(name));
                }
                match reenter(root, &out) {
                    Some(rest) => push_reversed(ahead, &rest),
                    None => return End::Outside,
                }
            }
            continue;
        }
        behind.push(name);
        let Ok(here) = RelPath::new(&behind.join(&b'/')) else {
            return End::Loop;
        };
        if !ahead.is_empty() && known_directory(&here) {
            continue;
        }
        if barred(&here) {
            behind.extend(ahead.drain(..).rev());
            let whole = RelPath::new(&behind.join(&b'/'));
            return End::Missing(whole.unwrap_or(here));
        }
        let place = absolute(root, &here);
        let metadata = match place.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) => return missing_or_denied(here, error),
        };
        if metadata.is_symlink() {
            if links.len() == MAX_LINKS {
                return End::Loop;
            }
            let target = match place.read_link() {
                Ok(target) => target,
                Err(error) => return missing_or_denied(here, error),
            };
            links.push(here);
            behind.pop();
            if target.is_absolute() {
                match reenter(root, &target) {
                    Some(rest) => {
                        behind.clear();
                        push_reversed(ahead, &rest);
                    }
                    None => return End::Outside,
                }
            } else {
                push_reversed(ahead, &native::bytes(&target));
            }
        } else if ahead.is_empty() {
            last = Some((here, metadata));
        } else if !metadata.is_dir() {
            return End::Missing(here);
        }
    }
    if let Some((here, metadata)) = last {
        return End::There(here, metadata);
    }
    // The last component was `..`, or a link to the root itself.
    match RelPath::new(&behind.join(&b'/')) {
        Ok(here) => match absolute(root, &here).symlink_metadata() {
            Ok(metadata) => End::There(here, metadata),
            Err(error) => missing_or_denied(here, error),
        },
        Err(_) => End::Root,
    }
}

fn missing_or_denied(here: RelPath, error: io::Error) -> End {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            End::Missing(here)
        }
        _ => End::Denied(error),
    }
}

/// Puts the components of `path` in front of those that remain.
fn push_reversed(ahead: &mut Vec<Vec<u8>>, path: &[u8]) {
    ahead.extend(
        path.split(|byte| *byte == b'/')
            .rev()
            .filter(|name| !name.is_empty() && *name != b".")
            .map(<[u8]>::to_vec),
    );
}

/// Returns the rest of an absolute path below the workspace's directory,
/// however that directory is spelled (`/home/u/w` where `/home` is itself a
/// link).
fn reenter(root: &Path, target: &Path) -> Option<Vec<u8>> {
    if let Ok(rest) = target.strip_prefix(root) {
        return Some(native::bytes(rest).into_owned());
    }
    let mut prefix = PathBuf::new();
    for component in target.components() {
        prefix.push(component);
        if prefix.canonicalize().is_ok_and(|real| real == root) {
            let rest = target.strip_prefix(&prefix).ok()?;
            return Some(native::bytes(rest).into_owned());
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn look(root: &Path, path: &str) -> String {
        let resolved = resolve(root, &RelPath::new(path.as_bytes()).unwrap(), |_| false);
        let end = match resolved.end {
            End::There(path, _) => format!("there {path}"),
            End::Missing(path) => format!("missing {path}"),
            End::Root => "root".into(),
            End::Outside => "outside".into(),
            End::Loop => "loop".into(),
            End::Denied(_) => "denied".into(),
        };
        let links: Vec<_> = resolved
            .links
            .iter()
            .map(RelPath::to_string_lossy)
            .collect();
        format!("{} -> {end}", links.join(","))
    }

    #[test]
    fn links_are_followed_as_the_kernel_does() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let root = root.join("w");
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        std::fs::write(root.join("real/f"), "x").unwrap();
        symlink("real", root.join("d")).unwrap();
        symlink("../real/f", root.join("real/l")).unwrap();
        symlink(root.join("real/f"), root.join("abs")).unwrap();
        symlink("../w/real/f", root.join("round")).unwrap();
        symlink("/etc/passwd", root.join("out")).unwrap();
        symlink("../secret", root.join("up")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink(".", root.join("self")).unwrap();
        symlink("real/deep", root.join("deep")).unwrap();
        symlink("deep/../f", root.join("physical")).unwrap();
        let see = |path: &str| look(&root, path);
        assert_eq!(see("real/f"), " -> there real/f");
        assert_eq!(see("d/f"), "d -> there real/f");
        assert_eq!(see("d/l"), "d,real/l -> there real/f");
        assert_eq!(see("abs"), "abs -> there real/f");
        assert_eq!(see("round"), "round -> there real/f");
        assert_eq!(see("out"), "out -> outside");
        assert_eq!(see("up"), "up -> outside");
        assert_eq!(see("dangling"), "dangling -> missing nowhere");
        assert_eq!(see("self"), "self -> root");
        assert_eq!(see("self/self/real/f"), "self,self -> there real/f");
        // `..` after a link goes up from the link's target.
        assert_eq!(see("physical"), "physical,deep -> there real/f");
        assert_eq!(see("real/f/x"), " -> missing real/f");
        assert_eq!(see("no/f"), " -> missing no");
        assert!(see("circle").ends_with("-> loop"));
    }

    #[test]
    fn an_absolute_link_may_spell_the_workspace_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("w")).unwrap();
        std::fs::write(base.join("w/f"), "x").unwrap();
        symlink("w", base.join("alias")).unwrap();
        symlink(base.join("alias/f"), base.join("w/l")).unwrap();
        assert_eq!(look(&base.join("w"), "l"), "l -> there f");
    }
}
