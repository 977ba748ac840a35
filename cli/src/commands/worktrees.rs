//! `touchmark worktrees`: the worktrees of the repository, and where their
//! changes meet the workspace's.

use anstyle::Style;
use touchmark_client::proto::LineRange;
use touchmark_client::proto::quoting::escaped;
use touchmark_client::proto::worktrees::{
    WorktreeList, WorktreeOverlap, WorktreeProblem, WorktreeRow,
};

use crate::context::Context;
use crate::output::Outcome;
use crate::style::{self, paint};
use crate::table::{Step, Table, View};
use crate::text::{MAX_NAME, authors, count, cut, path, range};

/// Mark, branch, directory, commit, daemon, changes.
const TABLE: Table = Table::new(&[
    Step::Out(3),
    Step::Middle(2, 24),
    Step::Middle(1, 12),
    Step::Middle(2, 12),
    Step::Out(4),
]);

/// The indentation of overlapping files.
const INDENT: &str = "    ";

/// The width of a terminal whose width is not known.
const WIDE: usize = 10_000;

pub(crate) fn run(context: &Context) -> Outcome {
    let Some(rows) = context.open()?.answer(WorktreeList::new())? else {
        return Ok(());
    };
    let lines = lines(&rows.worktrees, &View::here());
    context.list(&lines, "the workspace is in no git repository of yours")
}

/// Returns one text for each worktree, followed by its overlapping files.
pub(crate) fn lines(worktrees: &[WorktreeRow], view: &View) -> Vec<String> {
    let rows = worktrees.iter().map(|row| {
        let head = row.head.as_deref().unwrap_or_default();
        let is_current = row.current == Some(true);
        vec![
            (style::GOOD, if is_current { "*" } else { " " }.to_owned()),
            (style::BOLD, branch(row)),
            (Style::new(), escaped(&row.path, MAX_NAME)),
            (style::DIM, head.chars().take(8).collect()),
            (
                style::DIM,
                if row.daemon { "daemon" } else { "" }.to_owned(),
            ),
            state(row),
        ]
    });
    let texts = TABLE.lines(rows, view.columns);
    let mut lines = Vec::new();
    for (text, row) in texts.into_iter().zip(worktrees) {
        lines.push(text);
        let room = view.columns.unwrap_or(WIDE).saturating_sub(INDENT.len());
        for overlap in &row.overlaps {
            let said = said(overlap);
            let name = cut(
                &path(&overlap.path),
                room.saturating_sub(said.len()).max(12),
            );
            let line = cut(&format!("{name}{said}"), room);
            lines.push(format!("{INDENT}{}", paint(style::WARN, &line)));
        }
    }
    lines
}

fn branch(row: &WorktreeRow) -> String {
    match &row.branch {
        Some(branch) => escaped(branch, 100),
        None => "(no branch)".into(),
    }
}

fn state(row: &WorktreeRow) -> (Style, String) {
    let said = match (row.problem, row.changed) {
        (Some(WorktreeProblem::Missing), _) => "directory is missing".into(),
        (Some(WorktreeProblem::NoCommonCommit), _) => "no common commit".into(),
        (Some(WorktreeProblem::NoAnswer), _) => "no answer".into(),
        (None, None) => String::new(),
        (None, Some(0)) => "nothing to merge".into(),
        (None, Some(changed)) => {
            let files = count(changed.into(), "file");
            match row.more_files {
                Some(true) => format!("at least {files} to merge"),
                _ => format!("{files} to merge"),
            }
        }
    };
    match row.overlaps.len() {
        0 => (Style::new(), said),
        overlaps => (style::WARN, format!("{said}, {overlaps} in common")),
    }
}

/// Returns the text after the name of an overlapping file.
fn said(overlap: &WorktreeOverlap) -> String {
    let there = match overlap.removed {
        Some(true) => "removed there".to_owned(),
        _ => format!("{} there", places(&overlap.lines)),
    };
    let by = match overlap.authors.is_empty() {
        true => String::new(),
        false => format!(" by {}", authors(&overlap.authors)),
    };
    format!(": {there}{by}, {} here", places(&overlap.own_lines))
}

fn places(lines: &[LineRange]) -> String {
    let all: Vec<String> = lines.iter().take(5).copied().map(range).collect();
    let more = if lines.len() > 5 { " and more" } else { "" };
    let plural = match lines {
        [one] if one.start == one.end => "",
        _ => "s",
    };
    format!("line{plural} {}{more}", all.join(", "))
}
