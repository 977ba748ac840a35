//! `touchmark restore PATH@V`: restores a version of a file.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::proto::history::{FileDiff, FileRestore, Restoration};
use touchmark_client::proto::{At, Reply};

use crate::complete;
use crate::confirm;
use crate::context::Context;
use crate::hunks;
use crate::output::{Failure, Outcome};
use crate::pager::Page;
use crate::text::path;
use crate::versions::{VersionName, file_and_version, name, version};

/// Restore a version of a file.
///
/// The current content is stored: `touchmark recovered` lists it, and its version stays in
/// `touchmark log`. A version without a file removes the file.
#[derive(Debug, Args)]
#[command(after_help = crate::versions::NAMES)]
pub(crate) struct Options {
    /// The file and the version
    #[arg(value_name = "PATH@V", add = ArgValueCompleter::new(complete::file_and_version))]
    file: PathBuf,
    /// The version, if `@` cannot express it
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    at: Option<VersionName>,
    /// Only put back the lines of the version that the file lacks. Nothing is taken away, and
    /// nothing is asked
    #[arg(long, conflicts_with = "dry_run")]
    missing: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Write also where the present content cannot be kept, and so cannot be brought back
    #[arg(long)]
    no_redo: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let connection = context.open()?;
    let (file, at) = file_and_version(&connection, &options.file, options.at.as_ref())?;
    let at = at.ok_or_else(|| {
        Failure::Usage("which version? Say PATH@V; `touchmark log PATH` has them".into())
    })?;
    if options.dry_run || !(options.yes || options.missing) {
        let ask = FileDiff::new(At::Now).path(file.clone()).to(at.clone());
        let diff = connection.client.call(ask)?;
        if context.global.json && options.dry_run {
            return connection.json(Reply::FileDiff(diff));
        }
        let Some(changed) = diff.files.first() else {
            return context.say("it has that content already");
        };
        if options.dry_run {
            let hunks = diff.hunks.unwrap_or_default();
            return hunks::show(&mut Page::open(context), changed, &hunks);
        }
        let what = match (changed.to_hash, changed.lines) {
            (None, _) => "remove it".to_owned(),
            (Some(_), Some(lines)) => format!("+{} -{} lines", lines.added, lines.removed),
            (Some(_), None) => "all of it".to_owned(),
        };
        let file = path(&changed.path);
        // A long name is on a separate line.
        let gap = if file.len() > 40 { "\n" } else { " " };
        let lost = match options.no_redo {
            true => "; what it has now is not stored and cannot be brought back",
            false => "",
        };
        let question = format!(
            "{file}:{gap}back to version {} ({what}{lost})?",
            name(changed.to_clock)
        );
        let instead = "use --yes, or --dry-run to see what would change";
        if !confirm::agreed(&question, instead)? {
            return Err(Failure::No("nothing was restored".into()));
        }
    }
    let ask = FileRestore::new(file, at)
        .no_redo(options.no_redo)
        .missing(options.missing);
    let Some(restored) = connection.answer(ask)? else {
        return Ok(());
    };
    for file in &restored.files {
        let of = path(&file.path);
        context.say(&match file.outcome {
            Restoration::Restored if options.missing => {
                let version = name(file.clock);
                format!("{of} has the lines of version {version} again")
            }
            Restoration::Restored => format!("{of} is as in version {}", name(file.clock)),
            Restoration::Removed => format!("{of} is removed, as in version {}", name(file.clock)),
            Restoration::Unchanged if options.missing => {
                format!("{of} lacks no line of version {}", name(file.clock))
            }
            Restoration::Unchanged => format!("{of} has that content already"),
        })?;
        if !file.recovered.is_empty() {
            context.say("the previous content is stored: touchmark recovered")?;
        } else if options.no_redo && file.outcome != Restoration::Unchanged {
            context.say("the previous content is not stored")?;
        }
    }
    Ok(())
}
