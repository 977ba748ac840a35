//! The patches of Codex and of agents that adopted their format: which files
//! they name, and the result if they apply cleanly.

use super::happened::{Change, Writing};

/// The maximum number of files in one patch, or in one list of replacements.
pub(super) const FILES: usize = 1_000;

/// A replacement of some lines by others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hunk {
    /// A line that must come before the replaced lines; `None` if there is
    /// none.
    after: Option<String>,
    old: Vec<String>,
    new: Vec<String>,
    at_end: bool,
}

impl Hunk {
    /// Returns the lines of the file that the patch quotes.
    pub(super) fn quotes(&self) -> impl Iterator<Item = &str> {
        self.old.iter().map(String::as_str)
    }
}

/// Returns the files of a patch; `None` if the text is no patch.
pub(super) fn parse(text: &str) -> Option<Vec<Writing>> {
    let mut lines = text
        .lines()
        .skip_while(|line| line.trim() != "*** Begin Patch");
    lines.next()?;
    let mut files: Vec<Writing> = Vec::new();
    for line in lines {
        if line.trim() == "*** End Patch" {
            return Some(files);
        }
        let header = |name: &str| line.strip_prefix(name).map(|path| path.trim().to_owned());
        if let Some(path) = header("*** Add File: ") {
            push(&mut files, path, Change::Whole(String::new()))?;
        } else if let Some(path) = header("*** Delete File: ") {
            push(&mut files, path, Change::Delete)?;
        } else if let Some(path) = header("*** Update File: ") {
            let hunks = Vec::new();
            push(&mut files, path, Change::Patch { from: None, hunks })?;
        } else if let Some(path) = header("*** Move to: ") {
            let moved = files.last_mut()?;
            let from = std::mem::replace(&mut moved.change, Change::Delete);
            if !matches!(from, Change::Patch { from: None, .. }) {
                return None;
            }
            let from = Some(moved.path.clone());
            let hunks = Vec::new();
            push(&mut files, path, Change::Patch { from, hunks })?;
        } else {
            add_line(&mut files.last_mut()?.change, line)?;
        }
    }
    // Models sometimes forget the last line; the tool then refuses the patch.
    None
}

fn push(files: &mut Vec<Writing>, path: String, change: Change) -> Option<()> {
    let good = !path.is_empty() && files.len() < FILES;
    files.push(Writing { path, change });
    good.then_some(())
}

fn add_line(change: &mut Change, line: &str) -> Option<()> {
    let hunks = match change {
        Change::Whole(content) => {
            content.push_str(line.strip_prefix('+')?);
            content.push('\n');
            return Some(());
        }
        Change::Patch { hunks, .. } => hunks,
        _ => return line.trim().is_empty().then_some(()),
    };
    if let Some(after) = line.strip_prefix("@@") {
        let after = after.strip_prefix(' ').filter(|after| !after.is_empty());
        hunks.push(Hunk {
            after: after.map(str::to_owned),
            ..Hunk::default()
        });
        return Some(());
    }
    if hunks.is_empty() {
        hunks.push(Hunk::default());
    }
    let hunk = hunks.last_mut()?;
    if line == "*** End of File" {
        hunk.at_end = true;
    } else if let Some(old) = line.strip_prefix('-') {
        hunk.old.push(old.to_owned());
    } else if let Some(new) = line.strip_prefix('+') {
        hunk.new.push(new.to_owned());
    } else {
        let both = if line.is_empty() {
            line
        } else {
            line.strip_prefix(' ')?
        };
        hunk.old.push(both.to_owned());
        hunk.new.push(both.to_owned());
    }
    Some(())
}

/// Returns the result of the hunks; `None` if one of them does not match
/// exactly.
pub(super) fn apply(text: &str, hunks: &[Hunk]) -> Option<String> {
    let lines = Lines::of(text);
    let all = lines.starts.len();
    let mut patched: Vec<&str> = Vec::with_capacity(all);
    let mut done = 0;
    for hunk in hunks {
        let mut from = done;
        if let Some(after) = &hunk.after {
            from = 1 + lines.find(std::slice::from_ref(after), from)?;
        }
        let place = match hunk.old.as_slice() {
            [] => all,
            old if hunk.at_end => all
                .checked_sub(old.len())
                .filter(|place| *place >= from && lines.find(old, *place) == Some(*place))?,
            old => lines.find(old, from)?,
        };
        patched.extend(lines.between(done, place)?);
        patched.extend(hunk.new.iter().map(String::as_str));
        done = place + hunk.old.len();
    }
    patched.extend(lines.between(done, all)?);
    let mut text = patched.join("\n");
    text.push('\n');
    Some(text)
}

/// The lines of a file, to be searched. A search takes time for each byte once:
/// a model can write a patch of blank lines for a file of blank lines.
struct Lines {
    /// The text, with a line feed before each line and after the last one.
    text: String,
    /// Where the line feeds before the lines are.
    starts: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        let text = match text {
            "" => "\n".to_owned(),
            text => format!("\n{}\n", text.strip_suffix('\n').unwrap_or(text)),
        };
        let mut starts: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        starts.pop();
        Self { text, starts }
    }

    /// Returns the first line from which on the file has these.
    fn find(&self, wanted: &[String], from: usize) -> Option<usize> {
        let begin = *self.starts.get(from)?;
        let wanted = format!("\n{}\n", wanted.join("\n"));
        let text = self.text.get(begin..)?;
        let at = memchr::memmem::find(text.as_bytes(), wanted.as_bytes())?;
        self.starts.binary_search(&(begin + at)).ok()
    }

    /// Returns the lines from one index up to another.
    fn between(&self, from: usize, to: usize) -> Option<impl Iterator<Item = &str>> {
        let starts = self.starts.get(from..to)?.iter();
        Some(starts.map(|start| {
            let line = self.text.get(start + 1..).unwrap_or_default();
            line.split('\n').next().unwrap_or_default()
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn hunks(patch: &str) -> Vec<Hunk> {
        let text = format!("*** Begin Patch\n*** Update File: a\n{patch}\n*** End Patch\n");
        match parse(&text).unwrap().remove(0).change {
            Change::Patch { hunks, .. } => hunks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_are_named_with_what_becomes_of_them() {
        let files = parse(
            "*** Begin Patch\n*** Add File: n\n+one\n+\n*** Delete File: d\n*** Update File: a\n*** Move to: b\n@@ fn x\n-1\n+2\n*** End Patch",
        )
        .unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["n", "d", "a", "b"]);
        assert_eq!(files[0].change, Change::Whole("one\n\n".into()));
        assert_eq!(files[1].change, Change::Delete);
        assert_eq!(files[2].change, Change::Delete);
        assert!(matches!(&files[3].change,
            Change::Patch { from: Some(from), hunks } if from == "a" && hunks.len() == 1));
    }

    #[test]
    fn what_is_no_patch_is_none() {
        for text in [
            "",
            "x",
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
            "*** Begin Patch\n*** Update File: a\n",
            "*** Begin Patch\nx\n*** End Patch",
            "*** Begin Patch\n*** Move to: b\n*** End Patch",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_patch_of_blank_lines_is_soon_applied() {
        let text = "\n".repeat(400_000);
        let patch = hunks(&format!("@@\n{}-x", "\n".repeat(200_000)));
        let begun = std::time::Instant::now();
        assert_eq!(apply(&text, &patch), None);
        assert!(begun.elapsed().as_secs() < 10);
    }

    #[test]
    fn hunks_apply_in_order_and_only_as_they_are() {
        let text = "a\nb\nc\nb\nc\n";
        assert_eq!(
            apply(text, &hunks("@@\n b\n-c\n+x\n@@\n-c\n+y")),
            Some("a\nb\nx\nb\ny\n".into())
        );
        assert_eq!(
            apply(text, &hunks("@@ c\n-b\n+z")),
            Some("a\nb\nc\nz\nc\n".into())
        );
        assert_eq!(
            apply(text, &hunks("@@\n+end")),
            Some("a\nb\nc\nb\nc\nend\n".into())
        );
        assert_eq!(
            apply(text, &hunks("@@\n-b\n-c\n+q\n*** End of File")),
            Some("a\nb\nc\nq\n".into())
        );
        assert_eq!(apply(text, &hunks("@@\n-B\n+x")), None);
        assert_eq!(apply("", &hunks("@@\n-B\n+x")), None);
        // A whole line, after a part of one that looks like it.
        assert_eq!(
            apply("ba\na\na\nab\n", &hunks("@@\n-a\n-a\n+x")),
            Some("ba\nx\nab\n".into())
        );
        assert_eq!(apply("a\nb\n", &hunks("@@\n-a\n*** End of File")), None);
        // A missing newline at the end is added, as the tool does.
        assert_eq!(apply("a", &hunks("@@\n-a\n+b")), Some("b\n".into()));
    }
}
