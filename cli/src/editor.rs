//! The user's editor.

use std::path::Path;
use std::process::Command;

use crate::output::{Failure, Outcome};

/// Opens a file at a line in the editor that `VISUAL` or `EDITOR` names, or in
/// `vi`, and waits until it ends.
///
/// # Errors
/// The editor cannot be started, or ends with an error.
pub(crate) fn open(file: &Path, line: u32) -> Outcome {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(std::env::var_os);
    let editor = editor.unwrap_or_else(|| "vi".into());
    // The editor's name may include arguments, as in git.
    let status = Command::new("sh")
        .arg("-c")
        .arg("eval \"$TOUCHMARK_EDITOR\" '\"$@\"'")
        .arg("sh")
        .arg(format!("+{line}"))
        .arg(file)
        .env("TOUCHMARK_EDITOR", editor)
        .status()
        .map_err(anyhow::Error::from)?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::No("the editor ended with an error".into())),
    }
}
