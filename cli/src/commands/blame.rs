//! `touchmark blame PATH`: shows who wrote each line.

use std::fmt::Write as _;
use std::path::PathBuf;

use anstream::adapter::strip_str;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::proto::history::{Blame, BlameLine, FileBlame, LineCommit};
use touchmark_client::proto::{AuthorKind, LineRange, Reply};

use crate::blame::{blamed, range};
use crate::complete;
use crate::context::Context;
use crate::output::Outcome;
use crate::pager::{Page, harmless};
use crate::style::{self, paint};
use crate::table::{Table, View};
use crate::text::{MAX_NAME, cut, escaped};
use crate::trace;
use crate::versions::{VersionName, WHO, colour, file_and_version, name, version, who};

/// Show who wrote each line of a file.
#[derive(Debug, Args)]
#[command(after_help = crate::versions::NAMES)]
pub(crate) struct Options {
    /// The file; PATH@V for an earlier version
    #[arg(value_name = "PATH", add = ArgValueCompleter::new(complete::file_and_version))]
    file: PathBuf,
    /// The version, if `@` cannot express it
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    at: Option<VersionName>,
    /// Only these lines: 10,20 or 10,+5
    #[arg(long, short = 'L', value_name = "A,B", value_parser = range)]
    lines: Option<LineRange>,
    /// Also name the author of a change of white space alone
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

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let connection = context.open()?;
    let (path, at) = file_and_version(&connection, &options.file, options.at.as_ref())?;
    let ask = FileBlame {
        at,
        range: options.lines,
        exact: options.exact.then_some(true),
        ..FileBlame::new(path)
    };
    let blame = blamed(&connection.client, &ask)?;
    if options.format == Format::AgentTrace {
        return context.json(&trace::record(&connection, &blame)?);
    }
    if context.global.json {
        return connection.json(Reply::FileBlame(blame));
    }
    show(&mut Page::open(context), &blame)?;
    if let Some(cause) = &blame.cause {
        context.note(&format!(
            "which commits lines belong to is not known: {cause}"
        ));
    }
    // The process is about to end. Of a long file, to free the lines one by one
    // takes as long as to print them.
    std::mem::forget(blame);
    Ok(())
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
    let mark = match line.is_likely() {
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

fn show(page: &mut Page, blame: &Blame) -> Outcome {
    let view = View::here();
    let mut number = blame.start;
    let digits = (number as usize + blame.lines.len()).to_string().len();
    // A long file has few different authors.
    let runs: Vec<&[BlameLine]> = blame.lines.chunk_by(is_alike).collect();
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
