//! Which parts of a test run here and now. Heavy parts run with `tests/run
//! --parts`, long ones with `--soak`. What is left out, and what a machine
//! cannot do, is printed on stdout and in the summary of `tests/run`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The variable with the file to which [`say`] appends. `tests/run` prints it
/// at the end, since cargo hides the output of passing tests.
const NOTES: &str = "TOUCHMARK_TEST_NOTES";

/// Returns whether heavy parts are wanted (`TOUCHMARK_PARTS=1`). If not,
/// reports that `what` needs `--parts`.
pub fn heavy(what: &str) -> bool {
    wanted("TOUCHMARK_PARTS", "--parts", what)
}

/// Returns whether tests that take minutes are wanted (`TOUCHMARK_SOAK=1`). If
/// not, reports that `what` needs `--soak`.
pub fn long(what: &str) -> bool {
    wanted("TOUCHMARK_SOAK", "--soak", what)
}

/// Reports that something could not be tested here, and why: `the disk fills
/// up: this user may not mount a tmpfs`.
pub fn not_tested(what_and_why: &str) {
    say(&format!("not tested: {what_and_why}"));
}

fn wanted(variable: &str, flag: &str, what: &str) -> bool {
    let wanted = std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0");
    if !wanted {
        say(&format!("left for {flag}: {what}"));
    }
    wanted
}

fn say(line: &str) {
    println!("{line}");
    if let Some(notes) = std::env::var_os(NOTES).filter(|path| !path.is_empty()) {
        append(notes.as_ref(), line);
    }
}

/// Appends a line to a file that other tests and other test programs append to
/// at the same time.
pub(crate) fn append(file: &Path, line: &str) {
    let appended = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        // One write, so that lines stay whole.
        .and_then(|mut open| open.write_all(format!("{line}\n").as_bytes()));
    if let Err(error) = appended {
        panic!("{}: {error}", file.display());
    }
}
