//! One settings file. It is read and written as a whole, or not at all.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::output::{Failure, Outcome};
use crate::system::files::{self, keep_owner, usual_permissions};

/// The byte order mark, which some editors write before a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The maximum number of symlinks that are followed. More count as a circle.
const MAX_LINKS: usize = 40;

/// The largest settings file that is read, in bytes.
const MOST: u64 = 16 << 20;

/// A file, by the given name and by the name at the end of its symlinks.
#[derive(Debug)]
pub(crate) struct SettingsFile {
    named: PathBuf,
    real: PathBuf,
}

impl SettingsFile {
    /// Follows symlinks, since users may keep settings elsewhere. A project's
    /// symlinks are untrusted, so they may not lead out of `project` (SEC-9).
    ///
    /// # Errors
    /// The symlinks form a circle, or lead out of the project.
    pub(crate) fn of(named: &Path, project: Option<&Path>) -> Outcome<Self> {
        let target = Self {
            named: named.to_owned(),
            real: end_of_links(named)?,
        };
        // A file that does not exist yet is created below an existing
        // directory.
        let above = target.real.ancestors().skip(1);
        let above = above.into_iter().find_map(|at| at.canonicalize().ok());
        let leads_out = |root: &Path| !above.is_some_and(|above| above.starts_with(root));
        if project.is_some_and(leads_out) {
            return Err(target.left(&format!(
                "it resolves to {}, outside the workspace",
                crate::text::directory(&target.real)
            )));
        }
        Ok(target)
    }

    /// Returns the name at the end of the symlinks.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// Returns the file's bytes; `None` if there is no file.
    ///
    /// # Errors
    /// Not a regular file, too large, or a system error.
    pub(crate) fn read(&self) -> Outcome<Option<Vec<u8>>> {
        match read(&self.real) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.left(&error.to_string())),
        }
    }

    /// Replaces the content `before` by `after`, if the file still has
    /// `before`: no save in between is lost (SEC-9). Readers see either the old
    /// or the new content. The exception is a file with other hard links: it is
    /// written in place, so that it keeps them. Symlinks, owner and mode stay.
    ///
    /// # Errors
    /// Another process saved the file in between, or a system error.
    pub(crate) fn replace(&self, before: Option<&[u8]>, after: Option<&[u8]>) -> Outcome {
        match (before, after) {
            (None, None) => Ok(()),
            (None, Some(after)) => self.make(after),
            (Some(before), None) => self.take_away(before),
            (Some(before), Some(after)) => {
                let found = match fs::symlink_metadata(&self.real) {
                    Ok(found) => found,
                    Err(error) if is_gone(&error) => return Err(self.changed()),
                    Err(error) => return Err(self.failed(error)),
                };
                match files::hard_links(&found) {
                    0 | 1 => self.exchange(&found, before, after),
                    _ => self.write_over(before, after),
                }
            }
        }
    }

    fn make(&self, after: &[u8]) -> Outcome {
        fs::create_dir_all(self.directory()).map_err(|error| self.failed(error))?;
        let file = self.beside(after)?;
        // With the permissions that any program would give it. A script is run.
        let is_script = after.starts_with(b"#!");
        let permissions = usual_permissions(if is_script { 0o777 } else { 0o666 });
        let set = file.as_file().set_permissions(permissions);
        set.map_err(|error| self.failed(error))?;
        match file.persist_noclobber(&self.real) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(self.changed()),
            Err(error) => Err(self.failed(error.error)),
        }
    }

    /// Exchanges the names of the old and the new file in one step, and checks
    /// the old content before removing it, as a guarded write does (GUARD-1).
    fn exchange(&self, found: &Metadata, before: &[u8], after: &[u8]) -> Outcome {
        let file = self.beside(after)?;
        keep_owner(file.path(), found).map_err(|error| self.failed(error))?;
        let set = file.as_file().set_permissions(found.permissions());
        set.map_err(|error| self.failed(error))?;
        tests_moment();
        match files::exchange(file.path(), &self.real) {
            Ok(()) => {}
            Err(error) if is_gone(&error) => return Err(self.changed()),
            // The file system does not support exchange. A check followed by a
            // rename is nearly as good.
            Err(_) => {
                if self.read()?.as_deref() != Some(before) {
                    return Err(self.changed());
                }
                let put = file.persist(&self.real);
                return put.map(drop).map_err(|error| self.failed(error.error));
            }
        }
        if holds(file.path(), before) {
            return Ok(());
        }
        // Another process saved in between. That save is put back.
        match files::exchange(file.path(), &self.real) {
            Ok(()) if holds(file.path(), after) => Err(self.changed()),
            // Exchanges once more, since yet another save was replaced.
            Ok(()) => {
                let _as_it_is = files::exchange(file.path(), &self.real);
                Err(self.kept(file))
            }
            Err(_) => Err(self.kept(file)),
        }
    }

    /// Writes into the file, so that its other names still refer to it.
    fn write_over(&self, before: &[u8], after: &[u8]) -> Outcome {
        let open = || {
            let file = File::options().read(true).write(true).open(&self.real)?;
            let mut there = Vec::new();
            tests_moment();
            (&file).take(MOST + 1).read_to_end(&mut there)?;
            Ok((file, there))
        };
        let (file, there) = open().map_err(|error: io::Error| self.failed(error))?;
        let is_named_so = || {
            let [open, named] = [file.metadata(), fs::symlink_metadata(&self.real)];
            matches!((open, named), (Ok(open), Ok(named)) if files::is_same(&open, &named))
        };
        if there != before || !is_named_so() {
            return Err(self.changed());
        }
        files::write_over(&file, after)
            .and_then(|()| file.sync_all())
            .map_err(|error| self.failed(error))?;
        match is_named_so() {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    fn take_away(&self, before: &[u8]) -> Outcome {
        let moved = self.beside(&[])?;
        tests_moment();
        match fs::rename(&self.real, moved.path()) {
            Ok(()) => {}
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(self.failed(error)),
        }
        if holds(moved.path(), before) {
            return Ok(());
        }
        // Another process saved in between. That save is put back, unless there
        // is a newer file.
        match fs::hard_link(moved.path(), &self.real) {
            Ok(()) => Err(self.changed()),
            Err(_) => Err(self.kept(moved)),
        }
    }

    /// Creates a file in the same directory. It is removed unless it is
    /// renamed.
    fn beside(&self, bytes: &[u8]) -> Outcome<NamedTempFile> {
        let made = || {
            let mut file = tempfile::Builder::new()
                .prefix(".touchmark-")
                .tempfile_in(self.directory())?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        made().map_err(|error: io::Error| self.failed(error))
    }

    fn directory(&self) -> &Path {
        self.real.parent().unwrap_or(Path::new("/"))
    }

    fn changed(&self) -> Failure {
        self.refused("it was changed meanwhile: try again")
    }

    /// Keeps a file that another process saved and that cannot be put back, and
    /// returns an error that names it.
    fn kept(&self, file: NamedTempFile) -> Failure {
        match file.keep() {
            Ok((_, path)) => self.refused(&format!(
                "it was changed meanwhile, more than once: one of the saves is in {}",
                path.display()
            )),
            Err(error) => self.failed(error.error),
        }
    }

    fn left(&self, why: &str) -> Failure {
        self.refused(&format!("{why}; the file is left as it is"))
    }

    fn refused(&self, why: &str) -> Failure {
        Failure::No(format!("{}: {why}", crate::text::directory(&self.named)))
    }

    fn failed(&self, error: io::Error) -> Failure {
        let doing = format!("write {}", self.real.display());
        Failure::Other(anyhow::Error::from(error).context(doing))
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Returns a regular file's bytes. Does not block on a FIFO or a device.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = files::patient().read(true).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other(format!("it is larger than {MOST} bytes")));
    }
    Ok(bytes)
}

fn holds(path: &Path, bytes: &[u8]) -> bool {
    read(path).is_ok_and(|there| there == bytes)
}

/// Returns where a name resolves to, whether or not a file is there.
fn end_of_links(path: &Path) -> Outcome<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&target) else {
            return Ok(target);
        };
        target = target.parent().unwrap_or(Path::new("/")).join(link);
    }
    Err(Failure::No(format!(
        "{}: links in a circle",
        path.display()
    )))
}

/// Removes the directories that are empty.
pub(super) fn remove_empty<'a>(directories: impl Iterator<Item = &'a PathBuf>) {
    for directory in directories {
        // A directory that is not empty is in use.
        let _ = fs::remove_dir(directory);
    }
}

// A hook for tests: runs a save between the last check and the change.
#[cfg(test)]
thread_local! {
    static MOMENT: std::cell::RefCell<Option<Box<dyn FnOnce()>>> = const { std::cell::RefCell::new(None) };
}

#[cfg(test)]
fn tests_moment() {
    if let Some(save) = MOMENT.with_borrow_mut(Option::take) {
        save();
    }
}

#[cfg(not(test))]
const fn tests_moment() {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    struct Home(tempfile::TempDir, PathBuf);

    fn home() -> Home {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().canonicalize().unwrap().join("settings.json");
        Home(home, file)
    }

    impl Home {
        fn target(&self) -> SettingsFile {
            SettingsFile::of(&self.1, None).unwrap()
        }

        fn text(&self) -> Option<String> {
            fs::read_to_string(&self.1).ok()
        }

        /// Returns the names in the directory. They show whether temporary
        /// files are left.
        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.path()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    fn then(save: impl FnOnce() + 'static) {
        MOMENT.set(Some(Box::new(save)));
    }

    /// SEC-9: in each way to save, at the worst moment.
    #[test]
    fn sec9_a_save_in_between_is_never_lost() {
        let by_rename = |file: &Path| {
            let new = file.with_extension("new");
            fs::write(&new, "saved").unwrap();
            fs::rename(new, file).unwrap();
        };
        let in_place = |file: &Path| fs::write(file, "saved").unwrap();
        let ways: [fn(&Path); 2] = [by_rename, in_place];
        for save in ways {
            for after in [Some(b"after".as_slice()), None] {
                let home = home();
                fs::write(&home.1, "before").unwrap();
                let file = home.1.clone();
                then(move || save(&file));
                let error = home.target().replace(Some(b"before"), after).unwrap_err();
                assert!(error.to_string().contains("changed meanwhile"), "{error}");
                assert_eq!(home.text().as_deref(), Some("saved"));
                assert_eq!(home.names(), ["settings.json"]);
                home.target().replace(Some(b"saved"), after).unwrap();
                assert_eq!(home.text().map(String::into_bytes).as_deref(), after);
            }
        }
        let home = home();
        let file = home.1.clone();
        then(move || fs::remove_file(file).unwrap());
        fs::write(&home.1, "before").unwrap();
        let gone = home.target().replace(Some(b"before"), Some(b"after"));
        assert!(gone.is_err());
        assert_eq!(home.names(), Vec::<String>::new());
        // Another process created the file in the meantime.
        fs::write(&home.1, "saved").unwrap();
        assert!(home.target().replace(None, Some(b"after")).is_err());
        assert_eq!(home.text().as_deref(), Some("saved"));
    }

    #[test]
    fn sec9_hard_links_mode_and_links_stay() {
        let home = home();
        let partner = home.0.path().join("partner");
        fs::write(&home.1, "before, and longer").unwrap();
        fs::set_permissions(&home.1, fs::Permissions::from_mode(0o640)).unwrap();
        let write = |before: &str, after: &str| {
            let (before, after) = (before.as_bytes(), after.as_bytes());
            home.target().replace(Some(before), Some(after)).unwrap();
        };
        write("before, and longer", "one");
        fs::hard_link(&home.1, &partner).unwrap();
        write("one", "two");
        assert_eq!(fs::read_to_string(&partner).unwrap(), "two");
        let mode = fs::metadata(&home.1).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        // A save in between, by the other name.
        let other = partner.clone();
        then(move || fs::write(other, "saved").unwrap());
        let written = home.target().replace(Some(b"two"), Some(b"three"));
        assert!(written.is_err());
        assert_eq!(fs::read_to_string(&partner).unwrap(), "saved");
        let link = home.0.path().join("link");
        symlink("settings.json", &link).unwrap();
        let through = SettingsFile::of(&link, None).unwrap();
        through.replace(Some(b"saved"), Some(b"four")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(home.text().as_deref(), Some("four"));
    }

    #[test]
    fn sec9_what_is_no_file_is_refused() {
        let home = home();
        for device in ["/dev/zero", "/dev/null"] {
            symlink(device, &home.1).unwrap();
            let error = home.target().read().unwrap_err();
            assert!(error.to_string().contains("regular file"), "{error}");
            fs::remove_file(&home.1).unwrap();
        }
        let mut mkfifo = std::process::Command::new("mkfifo");
        assert!(mkfifo.arg(&home.1).status().unwrap().success());
        assert!(home.target().read().is_err());
        fs::remove_file(&home.1).unwrap();
        let huge = File::create(&home.1).unwrap();
        huge.set_len(MOST + 1).unwrap();
        assert!(home.target().read().is_err());
    }

    #[test]
    fn sec9_a_projects_links_do_not_lead_out() {
        let home = home();
        let project = home.0.path().canonicalize().unwrap().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(&home.1, "important").unwrap();
        let refused = |path: &Path| {
            let error = SettingsFile::of(path, Some(&project)).unwrap_err();
            assert!(
                error.to_string().contains("outside the workspace"),
                "{error}"
            );
            SettingsFile::of(path, None).unwrap();
        };
        // Symlinks to an existing file, to a missing file, and a directory.
        symlink(&home.1, project.join("a.json")).unwrap();
        refused(&project.join("a.json"));
        symlink("../none/b.json", project.join("b.json")).unwrap();
        refused(&project.join("b.json"));
        symlink(home.0.path(), project.join(".claude")).unwrap();
        refused(&project.join(".claude/settings.json"));
        // Symlinks that stay inside the project are allowed.
        fs::create_dir(project.join("real")).unwrap();
        symlink("real", project.join(".gemini")).unwrap();
        symlink("c.json", project.join("real/settings.json")).unwrap();
        SettingsFile::of(&project.join(".gemini/settings.json"), Some(&project)).unwrap();
        SettingsFile::of(&project.join("new/settings.json"), Some(&project)).unwrap();
    }
}
