//! `touchmark forget`: removes stored state.

use clap::Args;
use serde_json::json;
use touchmark_client::proto::daemon::ContentsForget;
use touchmark_client::proto::sessions::SessionClose;
use touchmark_client::proto::{Places, SessionId};

use crate::confirm;
use crate::context::{self, Context};
use crate::daemon::{self, Vanished, forget, forget_vanished, kept};
use crate::output::{Failure, Outcome};
use crate::text::{count, directory, session};

/// Remove stored state.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The state to remove.
    #[command(flatten)]
    selected: Selected,
    /// With --all or --vanished: also remove the contents that `touchmark recovered` lists
    #[arg(long, conflicts_with_all = ["session", "contents"])]
    recovered: bool,
    /// With --all: do not ask
    #[arg(long, conflicts_with_all = ["session", "contents", "vanished"])]
    yes: bool,
}

/// The state to remove: exactly one of these options.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Selected {
    /// What this session has read and stored; the versions stay
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
    /// The contents stored for line counts and previews
    #[arg(long)]
    contents: bool,
    /// Everything stored for this workspace; stops the daemon
    #[arg(long)]
    all: bool,
    /// Everything stored for workspaces that no longer exist
    #[arg(long)]
    vanished: bool,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let name = directory(&workspace.root);
    if let Some(forgotten) = options.selected.session {
        let said = session(&forgotten);
        let client = context.open()?.client;
        let session = context::meant(&client, &forgotten)?;
        client.call(SessionClose::new(session).forget(true))?;
        let text = format!("removed: what {said} has read and stored");
        return context.tell(&json!({ "forgotten": "session" }), &text);
    }
    if options.selected.contents {
        context.open()?.client.call(ContentsForget {})?;
        let text = format!("removed: the contents stored for {name}");
        return context.tell(&json!({ "forgotten": "contents" }), &text);
    }
    if options.selected.vanished {
        return vanished(context, &workspace.places, options.recovered);
    }
    let kept = kept(&workspace.places);
    if kept > 0 && !options.recovered {
        // These contents may be stored nowhere else.
        return Err(Failure::No(format!(
            "recovered contents of {} may be stored nowhere else: see `touchmark recovered list`, then add --recovered",
            count(kept as u64, "file")
        )));
    }
    let question = format!("Remove everything that is stored for {name}?");
    if !options.yes && !confirm::agreed(&question, "use --yes to remove it")? {
        return Err(Failure::No("nothing was removed".into()));
    }
    daemon::end(&workspace)?;
    let said = match forget(&workspace)? {
        true => format!("removed: everything stored for {name}"),
        false => format!("nothing is stored for {name}"),
    };
    context.tell(&json!({ "forgotten": "all" }), &said)
}

fn vanished(context: &Context, own: &Places, recovered: bool) -> Outcome {
    let Vanished { removed, kept } = forget_vanished(own, recovered);
    if context.global.json {
        context.json(&json!({ "forgotten": "vanished", "removed": removed, "kept": kept }))?;
    } else if removed.is_empty() && kept.is_empty() {
        context.say("nothing is stored for workspaces that no longer exist")?;
    } else {
        for workspace in &removed {
            context.say(&format!(
                "removed: everything stored for {}",
                directory(workspace)
            ))?;
        }
    }
    if kept.is_empty() {
        return Ok(());
    }
    // These contents may be stored nowhere else.
    let named: Vec<String> = kept.iter().map(|path| directory(path)).collect();
    Err(Failure::No(format!(
        "recovered contents of {} may be stored nowhere else: add --recovered to remove them, too",
        named.join(", ")
    )))
}
