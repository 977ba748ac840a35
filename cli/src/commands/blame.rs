//! `touchmark blame PATH`: shows who wrote each line.

use std::fmt::Write as _;
use std::iter;
use std::path::PathBuf;

use anstream::adapter::strip_str;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::Error as ClientError;
use touchmark_client::blocking::Client;
use touchmark_client::proto::history::{Blame, BlameLine, FileBlame, LineCommit};
use touchmark_client::proto::{AuthorKind, LineRange, Reply};

use crate::commands::call::result_json;
use crate::complete;
use crate::context::Context;
use crate::output::Outcome;
use crate::pager::{Page, harmless};
use crate::style::{self, paint};
use crate::table::{Table, View};
use crate::text::{MAX_NAME, cut, escaped};
use crate::trace;
use crate::versions::{Said, WHO, colour, file_and_version, name, version, who};

/// The number of lines that are requested at a time: as many as one answer may
/// have.
const PAGE: u32 = 40_000;

/// How often a long file's blame begins anew.
const TRIES: usize = 8;

/// Show who wrote each line of a file.
#[derive(Debug, Args)]
#[command(after_help = super::log::VERSIONS)]
pub(crate) struct Options {
    /// The file; PATH@V for an earlier version
    #[arg(value_name = "PATH", add = ArgValueCompleter::new(complete::file_and_version))]
    file: PathBuf,
    /// The version, if `@` cannot express it
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    at: Option<Said>,
    /// Only these lines: 10,20 or 10,+5
    #[arg(long, short = 'L', value_name = "A,B", value_parser = range)]
    lines: Option<LineRange>,
    /// Name whoever changed a line's white space, too
    #[arg(long)]
    exact: bool,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Plain)]
    format: Format,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line of output for each line
    Plain,
    /// An Agent Trace record, as JSON
    AgentTrace,
}

pub(crate) fn range(text: &str) -> Result<LineRange, String> {
    let wrong = || "lines are 10,20 or 10,+5".to_owned();
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (start, end) = match text.split_once(',') {
        None => (number(text)?, number(text)?),
        Some((start, end)) => {
            let start = number(start)?;
            let end = match end.strip_prefix('+') {
                Some(count) => start.saturating_add(number(count)?).saturating_sub(1),
                None if end.is_empty() => u32::MAX,
                None => number(end)?,
            };
            (start, end)
        }
    };
    match start >= 1 && start <= end {
        true => Ok(LineRange { start, end }),
        false => Err(wrong()),
    }
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let (path, at) = file_and_version(
        context,
        &workspace,
        &client,
        &options.file,
        options.at.as_ref(),
    )?;
    let ask = FileBlame {
        path,
        at,
        range: options.lines,
        exact: options.exact.then_some(true),
        commits: None,
    };
    let parts = parts(&client, &ask)?;
    if options.format == Format::AgentTrace {
        return context.json(&trace::record(&client, &workspace, &parts.joined())?);
    }
    if context.global.json {
        let blame = Reply::FileBlame(parts.joined());
        return context.json(&result_json(blame, &workspace.root));
    }
    show(&mut Page::open(context), &parts)?;
    if let Some(cause) = parts.all().find_map(|part| part.cause.as_ref()) {
        context.note(&format!(
            "which commits lines belong to is not known: {cause}"
        ));
    }
    // The process is about to end. Of a long file, to free the lines one by one
    // takes as long as to print them.
    std::mem::forget(parts);
    Ok(())
}

/// A file's blame, in the parts in which it was requested.
struct Parts {
    first: Blame,
    rest: Vec<Blame>,
}

impl From<Blame> for Parts {
    fn from(first: Blame) -> Self {
        let rest = Vec::new();
        Self { first, rest }
    }
}

impl Parts {
    fn all(&self) -> impl Iterator<Item = &Blame> {
        iter::once(&self.first).chain(&self.rest)
    }

    fn joined(self) -> Blame {
        let mut whole = self.first;
        for part in self.rest {
            whole.lines.extend(part.lines);
            whole.cause = whole.cause.or(part.cause);
        }
        whole
    }
}

/// Requests a file's blame.
pub(crate) fn blamed(client: &Client, ask: &FileBlame) -> Result<Blame, ClientError> {
    parts(client, ask).map(Parts::joined)
}

/// Requests a file's blame, in several parts if the file is long. Begins anew if
/// the file changes in between.
fn parts(client: &Client, ask: &FileBlame) -> Result<Parts, ClientError> {
    let all = LineRange {
        start: 1,
        end: u32::MAX,
    };
    let asked = ask.range.unwrap_or(all);
    for _ in 0..TRIES {
        let mut parts: Option<Parts> = None;
        let mut start = asked.start;
        loop {
            let end = asked.end.min(start.saturating_add(PAGE - 1));
            let part = client.call(FileBlame {
                range: Some(LineRange { start, end }),
                ..ask.clone()
            })?;
            let is_last = end == asked.end || part.lines.len() < PAGE as usize;
            let all = match parts.take() {
                Some(parts) if parts.first.hash != part.hash => break,
                Some(mut parts) => {
                    parts.rest.push(part);
                    parts
                }
                None => Parts::from(part),
            };
            if is_last {
                return Ok(all);
            }
            parts = Some(all);
            start = end + 1;
        }
    }
    // The file changes all the time.
    client.call(ask.clone()).map(Parts::from)
}

/// The number of digits of a commit's id that are shown.
const DIGITS: usize = 8;

/// Returns the name of the version that added a line, or of the commit that has
/// it: as git does it, with `^` where an earlier one may have added the line.
fn added_in(line: &BlameLine) -> String {
    let Some(LineCommit { id, author, .. }) = &line.commit else {
        return name(line.clock);
    };
    let digits = id.chars().take(DIGITS);
    author
        .is_none()
        .then_some('^')
        .into_iter()
        .chain(digits)
        .collect()
}

/// Returns a line's author, with a question mark if the author is only likely.
fn likely_who(line: &BlameLine) -> String {
    let by = line
        .commit
        .as_ref()
        .and_then(|commit| commit.author.as_ref());
    if let (AuthorKind::Committed, Some(by)) = (line.author.kind, by)
        && !by.is_empty()
    {
        return cut(&escaped(by, MAX_NAME), WHO);
    }
    let mark = match line.evidence.is_likely(line.command.is_some()) {
        true => "?",
        false => "",
    };
    format!("{}{mark}", who(&line.author))
}

/// The number of bytes that are written at a time.
const WRITTEN: usize = 64 << 10;

/// Returns whether two lines look the same, apart from their numbers and texts.
fn is_alike(one: &BlameLine, other: &BlameLine) -> bool {
    let of = |line: &BlameLine| (line.time, line.evidence, line.clock, line.command.is_some());
    of(one) == of(other) && one.author == other.author && one.commit == other.commit
}

fn show(page: &mut Page, parts: &Parts) -> Outcome {
    let view = View::here();
    let mut number = parts.first.start;
    let count: usize = parts.all().map(|part| part.lines.len()).sum();
    let digits = (number as usize + count).to_string().len();
    // A long file has few different authors.
    let runs = parts.all().flat_map(|part| part.lines.chunk_by(is_alike));
    let runs: Vec<&[BlameLine]> = runs.collect();
    let rows = runs.iter().filter_map(|run| run.first()).map(|line| {
        vec![
            (style::BOLD, added_in(line)),
            (colour(&line.author), likely_who(line)),
            (style::DIM, view.ago(line.time)),
        ]
    });
    // The text of the lines is not a column of the table, since it may have any
    // width.
    let heads = Table::new(&[]).heads(&rows.collect::<Vec<_>>());
    let mut written = String::new();
    for (head, run) in heads.iter().zip(runs) {
        let plain = strip_str(head).to_string();
        for line in run {
            let text = &line.text;
            if page.is_terminal {
                let number = paint(style::DIM, &format!("{number:>digits$}"));
                page.line(format!("{head}{number}  {}", harmless(text)).trim_end())?;
            } else {
                let _ = writeln!(written, "{plain}{number:>digits$}  {text}");
                if written.len() >= WRITTEN {
                    page.bytes(written.as_bytes())?;
                    written.clear();
                }
            }
            number += 1;
        }
    }
    page.bytes(written.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_as_for_git() {
        let of = |text| range(text).map(|range| (range.start, range.end)).ok();
        assert_eq!(of("10,20"), Some((10, 20)));
        assert_eq!(of("10,+5"), Some((10, 14)));
        assert_eq!(of("10,"), Some((10, u32::MAX)));
        assert_eq!(of("7"), Some((7, 7)));
        for wrong in ["0,3", "5,4", "a", "", "3,+0"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
