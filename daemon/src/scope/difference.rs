//! How files differ from the last sweep, and what one thread of a sweep finds.

use touchmark_proto::RelPath;

use super::index::{Directory, Entry, File, Known, Stat};
use super::listing::join;

/// A file that differs from the last sweep.
pub(super) struct Difference {
    pub(super) path: RelPath,
    pub(super) what: What,
}

/// How a file differs.
pub(super) enum What {
    /// The file is seen for the first time, and may have existed before.
    Met(Stat),
    /// The file is new. The time is the latest at which it, or a new directory
    /// above it, was changed, in nanoseconds since 1970: a file that comes with
    /// its directory keeps its own.
    Came(Stat, i64),
    /// The file's stat differs, or does not prove that the file is unchanged.
    Changed(File, Stat),
    /// The file was removed.
    Gone(File),
}

impl Difference {
    /// Forgets what the file held before.
    pub(super) fn forget(&mut self) {
        if let What::Changed(was, _) | What::Gone(was) = &mut self.what {
            was.known = Known::Nothing;
        }
    }
}

/// What one thread has found.
#[derive(Default)]
pub(super) struct Part {
    pub(super) differences: Vec<Difference>,
    pub(super) directories: Vec<(Vec<u8>, Directory)>,
    pub(super) gone: Vec<(Vec<u8>, bool)>,
    pub(super) looked: usize,
}

impl Part {
    pub(super) fn gone_file(&mut self, path: RelPath, file: File) {
        let what = What::Gone(file);
        self.differences.push(Difference { path, what });
    }

    pub(super) fn gone(&mut self, above: &[u8], name: &[u8], file: File) {
        if let Ok(path) = join(above, name) {
            self.gone_file(path, file);
        }
    }
}

/// Updates the stat of a file that was looked at before, at `looked`. Records a
/// difference if the file is not proved to be unchanged since.
pub(super) fn compare(
    above: &[u8],
    name: &[u8],
    (file, looked): (&mut File, i64),
    stat: Stat,
    part: &mut Part,
) {
    if (file.stat != stat || !file.stat.is_settled(looked))
        && let Ok(path) = join(above, name)
    {
        let what = What::Changed(*file, stat);
        part.differences.push(Difference { path, what });
    }
    file.stat = stat;
}

/// Reports all files of a directory as removed.
pub(super) fn lose(path: &[u8], directory: Directory, differences: &mut Vec<Difference>) {
    for (name, entry) in directory.entries {
        if let (Entry::File(file), Ok(path)) = (entry, join(path, &name)) {
            let what = What::Gone(file);
            differences.push(Difference { path, what });
        }
    }
}
