//! `touchmark warning take`: takes a session's stored warning.

use clap::{Args, Subcommand};
use touchmark_client::proto::checkpoints::WarningTake;
use touchmark_client::proto::sessions::Warning;
use touchmark_client::proto::{Reply, SessionId};

use crate::commands::call::result_json;
use crate::context::{self, Context};
use crate::output::{self, Outcome};
use crate::text::{count, escaped, path};

/// Take a session's stored warning, which is returned once.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The action.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Take the warning; it is returned once
    Take {
        /// The session [default: TOUCHMARK_SESSION]
        #[arg(long, short, value_name = "S", value_parser = context::session)]
        session: Option<SessionId>,
    },
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let Action::Take { session } = options.action;
    let session = context::named(session)?;
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let session = context::meant(&client, &session)?;
    let taken = client.call(WarningTake { session })?;
    if context.global.json {
        return context.json(&result_json(Reply::WarningTake(taken), &workspace.root));
    }
    let Some(warning) = taken.warning else {
        return context.say("no warning");
    };
    if let Some(note) = &warning.note {
        output::line(&escaped(note, 2000))?;
    }
    warning
        .files
        .iter()
        .try_for_each(|file| output::line(&path(file)))
}

/// Returns what a warning is about.
pub(crate) fn about(warning: &Warning) -> String {
    count(warning.files.len() as u64, "file")
}
