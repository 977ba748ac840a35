//! Patches inside of shell commands: models of Codex's call `apply_patch` as a
//! program as well. Only a command that does nothing else is a patch.

use std::iter::Peekable;
use std::str::Chars;

use super::{Change, Writing, patch};

/// Commands in commands that are looked into.
const DEEP: usize = 2;

/// The files that a command patches, if that is all it does; paths as they are
/// from the directory that the command runs in.
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

/// The patch in a command, and the directory that it changes to before.
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

/// The text of a here-document that ends the command. Where its mark is not
/// quoted, the shell changes some letters.
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

/// The next word of a command, without its quotes, and what separates it from
/// the one after it. `None` where a shell would put something in its place, or
/// there is none.
fn word(letters: &mut Peekable<Chars<'_>>) -> Option<String> {
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
        // The same patch as by the tool.
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
            // A shell puts something in the place of `$1` there.
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
