//! `touchmark allow PATH`: lets the next write of a file pass after a denial
//! (OFF-4).

use std::path::PathBuf;

use clap::Args;
use touchmark_client::proto::hooks::HookAllow;
use touchmark_client::proto::off::UsersOnly;

use crate::context::{Context, label};
use crate::off::by_the_user;
use crate::output::Outcome;
use crate::text::path;

/// Let an agent's next write of a file pass, once, after a hook has denied it.
///
/// The agent has to try again. An agent cannot do this.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The file whose write was denied
    path: PathBuf,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    context.check_project()?;
    by_the_user(&context.workspace()?, context, false, UsersOnly::Allow)?;
    let connection = context.open_running()?;
    let ask = HookAllow::new().path(connection.path(&options.path)?);
    let Some(allowed) = connection.answer(ask)? else {
        return Ok(());
    };
    let file = allowed.path.as_ref().map(path).unwrap_or_default();
    for who in allowed.sessions {
        context.say(&format!(
            "the next write of {} to {file} passes",
            label(&connection.client, &who)?
        ))?;
    }
    Ok(())
}
