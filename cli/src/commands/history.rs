//! `touchmark history FILE`: all versions of a file, newest first.

use std::path::PathBuf;

use anstyle::Style;
use clap::Args;
use touchmark_client::proto::files::{FileHistory, Versions};
use touchmark_client::proto::{AuthorKind, Evidence, FileMode};

use crate::context::Context;
use crate::output::{self, Outcome};
use crate::style;
use crate::table::{Step, Table, View};
use crate::text::{author, bytes};
use crate::versions::{colour, remarks, verb};

/// Time, author, what happened, hash, size, remarks.
const TABLE: Table =
    Table::new(&[Step::Middle(1, 16), Step::Out(3), Step::Middle(1, 10)]).with_remarks();

/// All versions of a file.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The file
    file: PathBuf,
    /// At most this many
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: u32,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let connection = context.open()?;
    let ask = FileHistory::new(connection.path(&options.file)?).limit(options.limit);
    let Some(history) = connection.answer(ask)? else {
        return Ok(());
    };
    if history.versions.is_empty() {
        return context.say("no versions: no session has named this file");
    }
    output::lines(&lines(&history, &View::here()))?;
    if history.more.is_some() {
        context.say("older versions: ask for more with -n")?;
    }
    Ok(())
}

/// Returns one text for each version.
pub(crate) fn lines(history: &Versions, view: &View) -> Vec<String> {
    let oldest = history.versions.len().saturating_sub(1);
    let rows = history.versions.iter().enumerate().map(|(at, version)| {
        // The author of the first content that touchmark saw is not known.
        let found = version.author.kind == AuthorKind::Unknown && version.evidence == Evidence::Gap;
        let is_link = version.mode.is_some_and(FileMode::is_link);
        let (by, did, remarks) = if found && at == oldest && history.more.is_none() {
            (String::new(), "baseline", "as first seen".to_owned())
        } else if found && is_link {
            (String::new(), "was", "a link that was replaced".to_owned())
        } else {
            let what = version.amends.map_or(verb(version.kind), |_| "corrected");
            (author(&version.author), what, remarks(version))
        };
        // These digits distinguish the versions of one file, and name them.
        let hash = version
            .hash
            .map_or_else(|| "-".into(), |hash| hash.to_string()[..12].to_owned());
        vec![
            (style::DIM, view.ago(version.time)),
            (colour(&version.author), by),
            (Style::new(), did.to_owned()),
            (style::DIM, hash),
            (
                Style::new(),
                version
                    .hash
                    .map_or_else(String::new, |_| bytes(version.size)),
            ),
            (style::DIM, remarks),
        ]
    });
    TABLE.lines(rows, view.columns)
}
