//! Patches in shell commands: models of Codex also call `apply_patch` as a
//! program. Only a command that does nothing else is a patch.

use std::iter::Peekable;
use std::str::Chars;

use super::happened::{Change, Writing};
use super::patch;

/// The maximum depth of commands within commands.
const DEEP: usize = 2;

/// Returns the files that a command patches, if it does nothing else. Paths are
/// relative to the directory in which the command runs.
pub(super) fn writings(command: &str) -> Option<Vec<Writing>> {
    let (directory, text) = inside(command, DEEP)?;
    let files = patch::parse(&text)?;
    let from_here = |path: String| match directory {
        Some(ref directory) => format!("{directory}/{path}"),
        None => path,
    };
    let files = files.into_iter().map(|file| Writing {
        path: from_here(file.path),
        change: match file.change {
            Change::Patch { from, hunks } => Change::Patch {
                from: from.map(&from_here),
                hunks,
            },
            other => other,
        },
    });
    let files: Vec<Writing> = files.collect();
    (!files.is_empty()).then_some(files)
}

/// Returns the patch in a command, and the directory that the command changes
/// to before it.
fn inside(command: &str, deep: usize) -> Option<(Option<String>, String)> {
    let mut letters = command.trim().chars().peekable();
    let program = word(&mut letters)?;
    match program.rsplit('/').next()? {
        "bash" | "sh" | "zsh" if deep > 0 => {
            let flags = word(&mut letters)?;
            let script = word(&mut letters).filter(|_| matches!(&*flags, "-lc" | "-c"))?;
            let over = letters.next().is_none();
            over.then(|| inside(&script, deep - 1))?
        }
        "cd" => {
            let directory = word(&mut letters)?;
            let rest: String = letters.collect();
            let rest = rest.trim_start().strip_prefix("&&")?;
            let (None, patch) = inside(rest, 0)? else {
                return None;
            };
            Some((Some(directory), patch))
        }
        "apply_patch" | "applypatch" => {
            let rest: String = letters.collect();
            let rest = rest.trim_start();
            let patch = match rest.strip_prefix("<<") {
                Some(document) => here(document)?,
                None => {
                    let mut letters = rest.chars().peekable();
                    let patch = word(&mut letters)?;
                    letters.next().is_none().then_some(patch)?
                }
            };
            Some((None, patch))
        }
        _ => None,
    }
}

/// Returns the text of a here-document that ends the command. If its delimiter
/// is not quoted, a text that the shell would change gives `None`.
fn here(document: &str) -> Option<String> {
    let (mark, body) = document.split_once('\n')?;
    let mark = mark.trim();
    let quoted = |quote| mark.strip_prefix(quote)?.strip_suffix(quote);
    let (mark, plain) = match quoted('\'').or_else(|| quoted('"')) {
        Some(mark) => (mark, true),
        None => (mark, false),
    };
    let known = |letter: char| letter.is_alphanumeric() || letter == '_';
    if mark.is_empty() || !mark.chars().all(known) {
        return None;
    }
    let mut text = String::new();
    let mut lines = body.lines();
    for line in lines.by_ref() {
        if line == mark {
            let over = lines.all(|line| line.trim().is_empty());
            let same = plain || !text.contains(['$', '`', '\\']);
            return (over && same).then_some(text);
        }
        text.push_str(line);
        text.push('\n');
    }
    None
}

/// Returns the next word of a command, without its quotes, and consumes the
/// separator after it. `None` if the shell would expand something in it, or if
/// there is no word.
pub(super) fn word(letters: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut word: Option<String> = None;
    while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
        let word = word.get_or_insert_default();
        match letter {
            '\'' => loop {
                match letters.next()? {
                    '\'' => break,
                    inner => word.push(inner),
                }
            },
            '"' => loop {
                match letters.next()? {
                    '"' => break,
                    '$' | '`' => return None,
                    '\\' => match letters.next()? {
                        inner @ ('"' | '\\' | '$' | '`') => word.push(inner),
                        '\n' => {}
                        inner => word.extend(['\\', inner]),
                    },
                    inner => word.push(inner),
                }
            },
            '\\' => word.push(letters.next()?),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | ']' | '{'
            | '}' | '~' | '#' | '!' | '=' => return None,
            other => word.push(other),
        }
    }
    while letters
        .next_if(|letter| matches!(letter, ' ' | '\t'))
        .is_some()
    {}
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str =
        "*** Begin Patch\n*** Update File: a\n@@\n-it's $1\n+\"it\"\n*** End Patch\n";

    fn paths(command: &str) -> Option<Vec<String>> {
        let files = writings(command)?;
        // The patch is the same as the tool's.
        let own = patch::parse(PATCH)?;
        let from_root = files.iter().all(|file| file.path == "a");
        assert!(!from_root || files == own, "{command}: {files:?}");
        Some(files.into_iter().map(|file| file.path).collect())
    }

    #[test]
    fn a_command_that_only_patches_is_a_patch() {
        let single = PATCH.replace('\'', r"'\''");
        let double = PATCH.replace('"', "\\\"").replace('$', "\\$");
        let in_single = format!("apply_patch <<'EOF'\n{PATCH}EOF").replace('\'', r"'\''");
        let in_double = format!("apply_patch <<'EOF'\n{double}EOF\n");
        for command in [
            format!("apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("  apply_patch << \"PATCH\"\n{PATCH}PATCH\n\n"),
            format!("applypatch <<'EOF'\n{PATCH}EOF"),
            format!("apply_patch '{single}'"),
            format!("apply_patch \"{double}\""),
            format!("bash -lc '{in_single}'"),
            format!("/bin/bash -lc \"{in_double}\""),
            format!("sh -c '{in_single}'"),
        ] {
            assert_eq!(paths(&command), Some(vec!["a".into()]), "{command}");
        }
        let below = format!("cd 'my dir' && apply_patch <<'EOF'\n{PATCH}EOF\n");
        assert_eq!(paths(&below), Some(vec!["my dir/a".into()]));
    }

    #[test]
    fn a_command_that_does_more_is_none() {
        for command in [
            String::new(),
            "apply_patch".into(),
            "apply_patch <<EOF".into(),
            "apply_patch <<'EOF'\nEOF\n".into(),
            "apply_patch <<'EOF'\nx\nEOF\n".into(),
            // The shell would expand `$1` here.
            format!("apply_patch <<EOF\n{PATCH}EOF\n"),
            format!("apply_patch \"{PATCH}\""),
            format!("apply_patch <<'EOF'\n{PATCH}"),
            format!("apply_patch <<'EOF'\n{PATCH}EOF\nmake\n"),
            format!("apply_patch <<'EOF' && make\n{PATCH}EOF\n"),
            format!("make && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd $D && apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("cd a; apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("A=1 apply_patch <<'EOF'\n{PATCH}EOF\n"),
            format!("echo <<'EOF'\n{PATCH}EOF\n"),
            format!("bash -lc 'bash -lc \"bash -lc x\"' '{}'", "y"),
            "bash -x script".into(),
        ] {
            assert_eq!(paths(&command), None, "{command}");
        }
    }
}
