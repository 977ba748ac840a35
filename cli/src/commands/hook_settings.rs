//! `touchmark hook install` and `uninstall`: changes agents' settings.

use clap::Args;
use serde_json::json;

use crate::confirm;
use crate::context::Context;
use crate::output::{self, Failure, Outcome};
use crate::settings::{Agent, Direction, Places, Plan, Scope, Which, coloured};
use crate::text::directory;

/// The agent, and the settings to change.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The agent
    agent: Agent,
    /// Change the user's settings, for every project [default]
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Change the workspace's settings
    #[arg(long)]
    project: bool,
    /// Write without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Only show what would be written
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, options: &Options, action: Direction) -> Outcome {
    let scope = if options.project {
        Scope::Project
    } else {
        Scope::User
    };
    let workspace = context.workspace()?;
    let places = Places::of(&context.environment, &workspace.root)?;
    for plan in places.plans(options.agent, scope, action, Which::Hooks)? {
        carry_out(context, options, action, &plan?)?;
    }
    Ok(())
}

fn carry_out(context: &Context, options: &Options, action: Direction, plan: &Plan) -> Outcome {
    let note = options
        .agent
        .note()
        .filter(|_| action == Direction::Install);
    let name = directory(&plan.path);
    if !plan.changes() {
        return tell(
            context,
            plan,
            note,
            false,
            &format!("nothing to do: {}", said(action, &name)),
        );
    }
    let lines = plan.difference(&name);
    if !context.global.json && (!context.global.quiet || options.dry_run) {
        for line in &lines {
            output::line(&coloured(line))?;
        }
    }
    if options.dry_run {
        return tell(
            context,
            plan,
            note,
            false,
            &format!("nothing is written: {name}"),
        );
    }
    if !options.yes && !confirm::agreed("Write this?", "use --yes to write this, or --dry-run")? {
        return Err(Failure::No(format!("{name} is left as it is")));
    }
    plan.carry_out()?;
    tell(context, plan, note, true, &said(action, &name))?;
    match note.filter(|_| !context.global.json) {
        Some(note) => context.say(note),
        None => Ok(()),
    }
}

fn said(action: Direction, name: &str) -> String {
    match action {
        Direction::Install => format!("the hooks are in {name}"),
        Direction::Uninstall => format!("{name} has no hooks of touchmark"),
    }
}

fn tell(context: &Context, plan: &Plan, note: Option<&str>, written: bool, text: &str) -> Outcome {
    if !context.global.json {
        return context.say(text);
    }
    context.json(&json!({
        "file": plan.path.to_string_lossy(),
        "changed": plan.changes(),
        "written": written,
        "difference": plan.difference(&plan.path.to_string_lossy()),
        "note": note,
    }))
}
