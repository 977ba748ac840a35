//! `touchmark hook install` and `uninstall`: changes agents' settings.

use clap::Args;
use serde_json::json;

use crate::confirm;
use crate::context::Context;
use crate::output::{self, Failure, Outcome};
use crate::settings::{Agent, Direction, Places, Plan, Which, WriteOptions, coloured};
use crate::text::directory;

/// The agent, and the settings to change.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The agent
    agent: Agent,
    #[command(flatten)]
    write: WriteOptions,
}

pub(crate) fn run(context: &Context, options: &Options, direction: Direction) -> Outcome {
    let workspace = context.workspace()?;
    let places = Places::of(&context.environment, &workspace.root)?;
    let scope = options.write.scope();
    for plan in places.plans(options.agent, scope, direction, Which::HOOKS)? {
        carry_out(context, options, direction, &plan?)?;
    }
    Ok(())
}

fn carry_out(context: &Context, options: &Options, direction: Direction, plan: &Plan) -> Outcome {
    let WriteOptions { yes, dry_run, .. } = options.write;
    let name = directory(&plan.path);
    if !context.global.json && (!context.global.quiet || dry_run) {
        for line in plan.difference(&name) {
            output::line(&coloured(&line))?;
        }
    }
    let writes = plan.changes() && !dry_run;
    if writes {
        let question = format!("{} this?", direction.verb());
        if !yes && !confirm::agreed(&question, confirm::WRITE)? {
            return Err(Failure::No(format!("{name} is left as it is")));
        }
        plan.carry_out()?;
    }
    let note = options.agent.settings().note;
    let note = note.filter(|_| direction == Direction::Install);
    if context.global.json {
        return context.json(&json!({
            "file": plan.path.to_string_lossy(),
            "changed": plan.changes(),
            "written": writes,
            "difference": plan.difference(&plan.path.to_string_lossy()),
            "note": note,
        }));
    }
    let done = match direction {
        Direction::Install => format!("the hooks are in {name}"),
        Direction::Uninstall => format!("{name} has no hooks of touchmark"),
    };
    context.say(&match (plan.changes(), writes) {
        (false, _) => format!("nothing to do: {done}"),
        (true, false) => format!("nothing is written: {name}"),
        (true, true) => done,
    })?;
    match note.filter(|_| writes) {
        Some(note) => context.say(note),
        None => Ok(()),
    }
}
