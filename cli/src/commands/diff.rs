//! `touchmark diff`: shows what changed between two versions, and who changed it.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::blocking::Client;
use touchmark_client::proto::history::{DiffHunk, FileDiff, FileDifference, FileDiffs};
use touchmark_client::proto::{At, Millis, Reply};

use crate::checkpoints::checkpoints;
use crate::complete;
use crate::context::{Connection, Context, all_sessions};
use crate::hunks;
use crate::output::{Failure, Outcome};
use crate::pager::Page;
use crate::style::{self, paint};
use crate::text::{called, escaped, zone};
use crate::versions::{By, VersionName, file_and_version, files, version, when};

/// Show what changed, and who changed it.
///
/// Without --from: since the newest checkpoint of any session, or since the newest session began,
/// whichever is later. Agents' hooks make a checkpoint at each prompt.
#[derive(Debug, Args)]
#[command(after_help = crate::versions::NAMES)]
pub(crate) struct Options {
    /// Only these files, and files below these directories; a single PATH@V means --from V
    #[arg(add = ArgValueCompleter::new(complete::file_and_version))]
    paths: Vec<PathBuf>,
    /// The older version
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    from: Option<VersionName>,
    /// The newer version [default: the files as they are now]
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    to: Option<VersionName>,
    /// Only hunks with a change by `me`, by this session, or by any `command`
    #[arg(long, value_name = "WHO", add = ArgValueCompleter::new(complete::by))]
    by: Option<String>,
    /// Show only how many lines of each file changed, and by whom
    #[arg(long)]
    stat: bool,
    /// The number of lines around each change
    #[arg(long, short = 'U', value_name = "N", default_value_t = 3)]
    unified: u32,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let connection = context.open()?;
    let client = &connection.client;
    let by = By::said(client, options.by.as_deref())?;
    let (paths, since) = named(&connection, options)?;
    let (from, since) = match since {
        Some(from) => (from, None),
        None => {
            let (from, told) = newest_moment(client)?;
            (from, Some(told))
        }
    };
    let mut ask = FileDiff {
        paths,
        to: VersionName::resolved(options.to.as_ref(), client)?,
        ..FileDiff::new(from).context(options.unified)
    };
    // A hash and `seen:` name a version of one file, so the request must name the file alone.
    if let (At::Hash(_) | At::Seen(_), Some([path])) = (&ask.from, ask.paths.as_deref()) {
        ask.path = Some(path.clone());
        ask.paths = None;
    }
    let mut found: Vec<(FileDifference, Vec<DiffHunk>)> = Vec::new();
    loop {
        let mut answer = client.call(ask.clone())?;
        for mut file in answer.files {
            let hunks = file.hunks.take().or_else(|| answer.hunks.take());
            let mut hunks = hunks.unwrap_or_default();
            if let Some(by) = &by {
                hunks::only(by, &mut hunks);
                if hunks.is_empty() {
                    continue;
                }
            }
            found.push((file, hunks));
        }
        ask.cursor = answer.more;
        if ask.cursor.is_none() {
            break;
        }
    }
    if context.global.json {
        let files = found.into_iter().map(|(mut file, hunks)| {
            file.hunks = (file.lines.is_some()).then_some(hunks);
            file
        });
        let diffs = FileDiffs {
            files: files.collect(),
            hunks: None,
            more: None,
        };
        return connection.json(Reply::FileDiff(diffs));
    }
    if found.is_empty() {
        let since = since.map_or_else(String::new, |since| format!(" since {since}"));
        return context.say(&format!("nothing changed{since}"));
    }
    let mut page = Page::open(context);
    if let Some(since) = since.filter(|_| page.is_terminal && !context.global.quiet) {
        page.line(&paint(style::DIM, &format!("since {since}")))?;
    }
    if options.stat {
        return hunks::stat(&mut page, &found);
    }
    let mut files = found.iter();
    files.try_for_each(|(file, hunks)| hunks::show(&mut page, file, hunks))
}

type Named = (Option<Vec<touchmark_client::proto::ClientPath>>, Option<At>);

/// Returns the files, and the version that one of them names.
fn named(connection: &Connection<'_>, options: &Options) -> Outcome<Named> {
    if let ([one], None) = (options.paths.as_slice(), &options.from)
        && let (path, Some(at)) = file_and_version(connection, one, None)?
    {
        return Ok((Some(vec![path]), Some(at)));
    }
    Ok((
        files(connection, &options.paths)?,
        VersionName::resolved(options.from.as_ref(), &connection.client)?,
    ))
}

/// Returns the newest checkpoint or beginning of a session, with a description.
fn newest_moment(client: &Client) -> Outcome<(At, String)> {
    let mut newest: Option<(Millis, At, String)> = None;
    let mut take = |time: Millis, at: At, told: String| {
        if newest.as_ref().is_none_or(|newest| newest.0 < time) {
            newest = Some((time, at, told));
        }
    };
    for row in all_sessions(client)? {
        let name = called(&row.session, row.label.as_deref());
        let began = jiff::Timestamp::from_millisecond(i64::try_from(row.opened_at).unwrap_or(0));
        if let Ok(began) = began {
            let at = At::Time(touchmark_client::proto::at::When::Exact(began));
            take(row.opened_at, at, format!("the beginning of {name}"));
        }
        if let Some(last) = checkpoints(client, &row.session)?.last() {
            let at = At::Clock {
                epoch: Some(last.clock.epoch),
                n: last.clock.n,
            };
            let told = format!("{name}/{}", escaped(&last.checkpoint, 20));
            take(last.time, at, told);
        }
    }
    let (time, at, told) = newest.ok_or_else(|| {
        Failure::Usage("since when? There is no session yet: name a version by --from".into())
    })?;
    Ok((at, format!("{told}, {}", when(time, &zone()))))
}
