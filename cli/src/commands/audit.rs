//! `touchmark audit`: compares the daemon's records with the disk.

use clap::Args;
use touchmark_client::proto::daemon::{Audit, Difference, Holds};
use touchmark_client::proto::{Hash, Reply};

use crate::commands::call::result_json;
use crate::context::Context;
use crate::output::{self, Failure, Outcome};
use crate::style::{self, paint};
use crate::text::{count, path};

/// Reads every tracked file and compares it with what the daemon believes.
#[derive(Debug, Args)]
pub(crate) struct Options {}

pub(crate) fn run(context: &Context) -> Outcome {
    let workspace = context.workspace()?;
    let audited = context.connect(&workspace)?.call(Audit {})?;
    let (checked, differences) = (audited.checked, audited.differences.len() as u64);
    if context.global.json {
        context.json(&result_json(Reply::Audit(audited), &workspace.root))?;
    } else {
        for difference in &audited.differences {
            output::line(&row(difference))?;
        }
    }
    let checked = count(checked, "file");
    if differences > 0 {
        return Err(Failure::No(format!(
            "{checked} compared, {} by which belief and disk differed; the disk is believed now",
            count(differences, "file")
        )));
    }
    if context.global.json {
        return Ok(());
    }
    context.say(&format!("{checked} compared, all as believed"))
}

fn row(difference: &Difference) -> String {
    format!(
        "{} {}: believed {}, is {}",
        paint(style::WARN, "differs"),
        path(&difference.path),
        holds(difference.believed),
        holds(difference.disk)
    )
}

fn holds(holds: Holds) -> String {
    match holds {
        Holds::File(hash) => short(hash),
        Holds::Absent => "no file".into(),
        Holds::Unreadable => "unreadable".into(),
    }
}

fn short(hash: Hash) -> String {
    hash.to_string().chars().take(12).collect()
}
