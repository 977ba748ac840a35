//! Prints differences in the format of `git diff`: patches that `git apply`
//! accepts, with the authors after each hunk's head.

use anstyle::Style;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_client::proto::history::{DiffHunk, DiffLine, FileDifference, LineKind};
use touchmark_client::proto::{Author, LineCounts, VersionKind};

use crate::output::Outcome;
use crate::pager::{Page, harmless};
use crate::style::{self, paint};
use crate::table::{Step, Table, View};
use crate::text::{authors, count, path};
use crate::versions::{By, name};

/// Path, authors, number of lines.
const STAT: Table = Table::new(&[
    Step::Middle(0, 20),
    Step::Middle(1, 10),
    Step::Middle(0, 10),
]);

/// The widest bar of `--stat`, in characters.
const BAR: u32 = 24;

/// Removes the hunks without a change by the given author.
pub(crate) fn only(by: &By, hunks: &mut Vec<DiffHunk>) {
    hunks.retain(|hunk| {
        let mut changed = hunk
            .lines
            .iter()
            .filter(|line| line.kind != LineKind::Context);
        changed.any(|line| by.is(&line.author, line.evidence))
    });
}

/// Prints a file's patch.
pub(crate) fn show(page: &mut Page, file: &FileDifference, hunks: &[DiffHunk]) -> Outcome {
    let of = path(&file.path);
    let (old, new) = (name(file.from_clock), name(file.to_clock));
    page.line(&paint(style::BOLD, &format!("diff --git a/{of} b/{of}")))?;
    if let Some(cause) = &file.cause {
        return page.line(&paint(style::DIM, &format!("cannot be compared: {cause}")));
    }
    if file.binary == Some(true) {
        return page.line(&format!("Binary files a/{of} and b/{of} differ"));
    }
    match file.kind {
        VersionKind::Created => page.line(&paint(style::BOLD, "new file mode 100644"))?,
        VersionKind::Deleted => page.line(&paint(style::BOLD, "deleted file mode 100644"))?,
        _ => {}
    }
    // A tab ends the name, for `patch` and `git apply`.
    let side = |mark: &str, letter: &str, none: bool, version: &str| match none {
        true => format!("{mark} /dev/null"),
        false => format!("{mark} {letter}/{of}\t{version}"),
    };
    let (created, deleted) = (file.from_hash.is_none(), file.to_hash.is_none());
    page.line(&paint(style::BOLD, &side("---", "a", created, &old)))?;
    page.line(&paint(style::BOLD, &side("+++", "b", deleted, &new)))?;
    hunks.iter().try_for_each(|hunk| show_hunk(page, hunk))
}

fn show_hunk(page: &mut Page, hunk: &DiffHunk) -> Outcome {
    let span = |start: u32, lines: u32| match lines {
        1 => start.to_string(),
        _ => format!("{start},{lines}"),
    };
    let head = format!(
        "@@ -{} +{} @@",
        span(hunk.old_start, hunk.old_lines),
        span(hunk.new_start, hunk.new_lines)
    );
    let by = changed_by(&hunk.lines);
    page.line(&format!("{} {}", paint(style::AGENT, &head), authors(&by)))?;
    for line in &hunk.lines {
        let (mark, colour) = match line.kind {
            LineKind::Context => (' ', Style::new()),
            LineKind::Added => ('+', style::GOOD),
            LineKind::Removed => ('-', style::BAD),
        };
        match page.is_terminal {
            true => page.line(&paint(colour, &format!("{mark}{}", harmless(&line.text))))?,
            false => {
                let mut bytes = vec![mark as u8];
                bytes.extend(exact(line));
                bytes.push(b'\n');
                page.bytes(&bytes)?;
            }
        }
        if line.no_newline == Some(true) {
            page.line("\\ No newline at end of file")?;
        }
    }
    Ok(())
}

/// Returns a line's bytes.
fn exact(line: &DiffLine) -> Vec<u8> {
    match &line.base64 {
        None => line.text.as_bytes().to_vec(),
        Some(base64) => decoded(base64).unwrap_or_else(|| line.text.as_bytes().to_vec()),
    }
}

/// Decodes base64; `None` if it is invalid.
pub(crate) fn decoded(base64: &str) -> Option<Vec<u8>> {
    STANDARD.decode(base64).ok()
}

/// Returns the authors of the changed lines, in the order of the lines.
fn changed_by(lines: &[DiffLine]) -> Vec<Author> {
    let mut by: Vec<Author> = Vec::new();
    for line in lines.iter().filter(|line| line.kind != LineKind::Context) {
        if !by.contains(&line.author) {
            by.push(line.author.clone());
        }
    }
    by
}

/// Prints `--stat`: a line for each file, and a summary.
pub(crate) fn stat(page: &mut Page, files: &[(FileDifference, Vec<DiffHunk>)]) -> Outcome {
    for line in stat_lines(files, &View::here()) {
        page.line(&line)?;
    }
    let counts = files.iter().map(|(file, _)| file.lines);
    let added = counts
        .clone()
        .flatten()
        .map(|lines| u64::from(lines.added))
        .sum();
    let removed = counts.flatten().map(|lines| u64::from(lines.removed)).sum();
    page.line(&format!(
        "{}, {} added, {} removed",
        count(files.len() as u64, "file"),
        count(added, "line"),
        count(removed, "line")
    ))
}

/// Returns one line for each file, with a bar.
pub(crate) fn stat_lines(files: &[(FileDifference, Vec<DiffHunk>)], view: &View) -> Vec<String> {
    let counts = files.iter().map(|(file, _)| file.lines);
    let total = |lines: Option<LineCounts>| lines.map_or(0, |lines| lines.added + lines.removed);
    let most = counts.clone().map(total).max().unwrap_or_default();
    let rows: Vec<_> = files
        .iter()
        .map(|(file, hunks)| {
            let lines: Vec<DiffLine> = hunks.iter().flat_map(|hunk| hunk.lines.clone()).collect();
            let amount = match (&file.cause, file.lines) {
                (Some(cause), _) => cause.clone(),
                (None, None) => "not text".into(),
                (None, Some(_)) => total(file.lines).to_string(),
            };
            vec![
                (Style::new(), path(&file.path)),
                (style::DIM, authors(&changed_by(&lines))),
                (Style::new(), amount),
            ]
        })
        .collect();
    let bars = counts.map(|lines| bar(lines, most));
    let lines = STAT.lines(rows, view.without(BAR as usize + 3).columns);
    let lines = lines.iter().zip(bars);
    let lines = lines.map(|(line, bar)| format!("{line} {bar}").trim_end().to_owned());
    lines.collect()
}

fn bar(lines: Option<LineCounts>, most: u32) -> String {
    let Some(lines) = lines else {
        return String::new();
    };
    let long = |count: u32| match most > BAR {
        true => (count * BAR).div_ceil(most),
        false => count,
    };
    let plus = "+".repeat(long(lines.added) as usize);
    let minus = "-".repeat(long(lines.removed) as usize);
    format!("{}{}", paint(style::GOOD, &plus), paint(style::BAD, &minus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_and_show_the_least() {
        let lines = |added, removed| Some(LineCounts { added, removed });
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        assert_eq!(plain(bar(lines(2, 1), 3)), "++-");
        let wide = plain(bar(lines(1, 999), 1000));
        assert!(wide.starts_with("+-") && wide.len() <= 26, "{wide}");
        assert_eq!(bar(None, 3), "");
    }
}
