//! `search/grep`: finds what `rg` finds, with the libraries that `rg` is made
//! of.
//!
//! Ignore files, hidden files, file types and globs have the meaning that they
//! have for `rg`, with these exceptions: `.gitignore` counts without a
//! repository too; ignore files above the workspace count only up to the top of
//! the workspace's repository; nothing below a `.git` is searched even if it is
//! named. Symlinks are not followed, so that no file is found by two names and
//! none outside of the workspace (SEC-2).

mod found;
pub(crate) mod ignored;
mod patient;
mod stop;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::Walk;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use touchmark_engine::{patterns, within};
use touchmark_proto::path::PathError;
use touchmark_proto::search::{Matches, SearchGrep};
use touchmark_proto::trust::Trust;
use touchmark_proto::{ClientPath, Error, ErrorCode, ErrorData, RelPath, native};

use self::found::Found;
use self::ignored::Ignored;
use self::patient::Patient;
pub use self::stop::Stop;
use self::stop::Stoppable;
use crate::content::{Opened, Root};
use crate::guard::is_temporary;
use crate::links::{End, absolute, relative, resolve};

/// The maximum length of a pattern, in bytes.
const PATTERN_BYTES: usize = 16 << 10;

/// The maximum size of a compiled pattern, in bytes: `(\w{1000}){1000}` is
/// refused.
const PROGRAM_BYTES: usize = 10 << 20;

/// The maximum size of the cache that makes a search fast, in bytes; a pattern
/// that needs more is slower.
const CACHE_BYTES: usize = 10 << 20;

/// The maximum length of a line, and of a file with `multiline`, in bytes.
const BUFFER_BYTES: usize = 64 << 20;

/// The default of `maxMatches`.
const MATCHES: u32 = 1_000;

/// The maximum of `maxMatches`.
const MOST_MATCHES: u32 = 100_000;

/// The maximum number of context lines before and after a match.
const MOST_CONTEXT: u32 = 1_000;

/// Searches the workspace at `root` (a canonical path) until `stop`. The
/// matches take at most `reply` bytes as JSON. `trust` decides whose ignore
/// files count. Files for which `is_own` is true are left out. Blocks the
/// thread.
///
/// # Errors
/// `invalidParams` and `tooLarge` for the pattern, `invalidParams` for glob and
/// file type; `notFound`, `outsideWorkspace` and `notAFile` for `path`;
/// `tooLate` if `stop` had passed before the search began.
pub fn search(
    root: &Path,
    ask: &SearchGrep,
    is_own: impl Fn(&RelPath) -> bool,
    reply: usize,
    trust: &Trust,
    stop: &Stop,
) -> Result<Matches, Error> {
    let matcher = Patient::new(matcher(ask)?, ask, stop);
    let mut walk = walk(root, ask, trust)?;
    let lines = |own: Option<u32>| own.or(ask.context).unwrap_or(0).min(MOST_CONTEXT) as usize;
    let (before, after) = (lines(ask.before_context), lines(ask.after_context));
    let mut searcher = searcher(ask.multiline, before, after);
    let most = ask.max_matches.unwrap_or(MATCHES).min(MOST_MATCHES) as usize;
    let mut found = Found::new(&matcher, most, before, after, reply);
    let mut cut_short = false;
    while !found.is_full() {
        if stop.is_due() {
            if found.files == 0 {
                return Err(too_late());
            }
            cut_short = true;
            break;
        }
        let Some(entry) = walk.next() else { break };
        // An entry that cannot be read is skipped, as `rg` does.
        let Ok(entry) = entry.inspect_err(|error| tracing::debug!("search: {error}")) else {
            continue;
        };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let Some(path) = relative(root, entry.path()).filter(|_| is_file) else {
            continue;
        };
        if is_own(&path) {
            continue;
        }
        cut_short |= !look_into(root, &path, &matcher, &mut searcher, &mut found, stop);
    }
    Ok(found.finish(cut_short))
}

/// Searches one file. Returns false if not all of it was searched.
fn look_into(
    root: &Path,
    path: &RelPath,
    matcher: &Patient<'_>,
    searcher: &mut Searcher,
    found: &mut Found<'_>,
    stop: &Stop,
) -> bool {
    if is_temporary(path) {
        return true;
    }
    // The file is opened by its name, and not through a link that has replaced
    // it since the walk.
    let file = match Root::open(root).file(path) {
        Opened::File {
            file, real: None, ..
        } => file,
        _ => return true,
    };
    found.begin(path);
    let searched = searcher.search_reader(matcher, Stoppable::new(file, stop), &mut *found);
    found.end();
    searched
        .inspect_err(|error| tracing::debug!("search: {path}: {error}"))
        .is_ok()
}

fn searcher(multiline: bool, before: usize, after: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .multi_line(multiline)
        .before_context(before)
        .after_context(after)
        .heap_limit(Some(BUFFER_BYTES))
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

fn matcher(ask: &SearchGrep) -> Result<RegexMatcher, Error> {
    let size = ask.pattern.len();
    if size > PATTERN_BYTES {
        let limit = PATTERN_BYTES;
        let reason = format!("the pattern is longer than {limit} bytes");
        return Err(too_large(reason, limit).with(ErrorData {
            limit: Some(limit as u64),
            size: Some(size as u64),
            ..ErrorData::default()
        }));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(ask.case_insensitive)
        .multi_line(true)
        .size_limit(PROGRAM_BYTES)
        .dfa_size_limit(CACHE_BYTES);
    if !ask.multiline {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(&ask.pattern).map_err(|error| {
        let hint = match error.kind() {
            // The library has no separate kind for this error.
            ErrorKind::Regex(reason) if reason.contains("exceeds size limit") => {
                let reason = format!("the pattern is too large: {reason} bytes");
                return too_large(reason, PROGRAM_BYTES);
            }
            ErrorKind::NotAllowed(_) => "say `multiline` to match over lines",
            _ => "write the pattern as for `rg`; escape what is meant literally with \\",
        };
        Error::invalid(format!("the pattern: {error}")).hint(hint)
    })
}

/// Returns a walk over all entries that must be searched.
fn walk(root: &Path, ask: &SearchGrep, trust: &Trust) -> Result<Walk, Error> {
    let start = start(root, ask.path.as_ref())?;
    let mut chosen_types = Types::empty();
    let mut chosen_globs = Override::empty();
    if let Some(name) = &ask.file_type {
        let mut types = TypesBuilder::new();
        let types = types.add_defaults().select(name).build().map_err(|error| {
            Error::invalid(format!("fileType: {error}"))
                .hint("`rg --type-list` has the names, such as rust, ts, js, py, md")
        })?;
        chosen_types = types;
    }
    if let Some(glob) = &ask.glob {
        patterns::check(glob).map_err(|error| Error::invalid(format!("glob: {error}")))?;
        let mut globs = OverrideBuilder::new(root);
        let globs = globs.add(glob).and_then(|globs| globs.build());
        chosen_globs = globs.map_err(|error| Error::invalid(format!("glob: {error}")))?;
    }
    let ignored = Ignored::new(root, chosen_globs, chosen_types, trust.clone());
    let mut walk = ignored.walk(&start);
    Ok(walk.sort_by_file_name(OsStr::cmp).build())
}

/// The directory in which git stores its own data.
pub(crate) const GIT: &str = ".git";

/// Returns the directory or file to search, by its real name.
fn start(root: &Path, path: Option<&ClientPath>) -> Result<PathBuf, Error> {
    let Some(path) = path else {
        return Ok(root.to_owned());
    };
    if path.normalise(&native::bytes(root)) == Err(PathError::Empty) {
        return Ok(root.to_owned());
    }
    let path = within(path, &native::bytes(root))?;
    let about = |code, message: &str| Error::path(code, &path, format!("{path} {message}"));
    let (real, metadata) = match resolve(root, &path, |_| false).end {
        End::There(real, metadata) => (real, metadata),
        End::Root => return Ok(root.to_owned()),
        End::Missing(_) | End::Loop => {
            return Err(about(ErrorCode::NotFound, "does not exist"));
        }
        End::Outside => {
            return Err(about(
                ErrorCode::OutsideWorkspace,
                "leads out of the workspace",
            ));
        }
        End::Denied(error) => {
            return Err(about(
                ErrorCode::Unreadable,
                &format!("cannot be read: {error}"),
            ));
        }
    };
    if real
        .as_bytes()
        .split(|byte| *byte == b'/')
        .any(|name| name == GIT.as_bytes())
    {
        return Err(about(ErrorCode::NotFound, "is git's own")
            .hint("nothing below `.git` is searched; name another path"));
    }
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(about(ErrorCode::NotAFile, "is neither file nor directory"));
    }
    Ok(absolute(root, &real))
}

fn too_large(reason: String, limit: usize) -> Error {
    Error::new(ErrorCode::TooLarge, reason)
        .hint("search for something simpler, or in parts")
        .with(ErrorData {
            limit: Some(limit as u64),
            ..ErrorData::default()
        })
}

fn too_late() -> Error {
    Error::new(
        ErrorCode::TooLate,
        "the search had no time left when its turn came",
    )
}
