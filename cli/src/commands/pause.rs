//! `touchmark pause` and `touchmark resume`: touchmark does nothing for a while
//! (OFF-2).

use clap::Args;
use serde_json::json;
use touchmark_client::Workspace;
use touchmark_client::proto::Millis;
use touchmark_client::proto::off::{OffCause, UsersOnly};

use crate::context::Context;
use crate::daemon::off;
use crate::off::by_the_user;
use crate::output::{Failure, Outcome};
use crate::text::{directory, duration, now};

/// Let hooks pass everything for a while: nothing is denied, told or recorded.
///
/// What changes meanwhile has the author `unknown`. Everything that was recorded before stays. An
/// agent cannot do this.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// End the pause after that long: 30m, 2h, 1d [default: until `touchmark resume`]
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    lasts: Option<Millis>,
    #[command(flatten)]
    which: Which,
}

/// End a pause.
#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Which {
    /// In all workspaces, not only in this one
    #[arg(long, conflicts_with = "workspace")]
    all: bool,
}

impl Which {
    /// Returns the workspace, after a check that no agent asks.
    fn workspace(&self, context: &Context, what: UsersOnly) -> Outcome<Workspace> {
        if !self.all {
            context.check_project()?;
        }
        let workspace = context.workspace()?;
        by_the_user(&workspace, context, self.all, what)?;
        Ok(workspace)
    }

    /// Returns the key of the workspace; `None` for all workspaces.
    fn key<'w>(&self, workspace: &'w Workspace) -> Option<&'w str> {
        (!self.all).then_some(workspace.places.key.as_str())
    }

    fn name(&self, workspace: &Workspace) -> String {
        match self.all {
            true => "all workspaces".to_owned(),
            false => directory(&workspace.root),
        }
    }
}

pub(crate) fn pause(context: &Context, options: &Options) -> Outcome {
    let which = &options.which;
    let workspace = which.workspace(context, UsersOnly::Pause)?;
    let now = now();
    let until = options.lasts.map(|lasts| now + lasts);
    off::change_pauses(&workspace.places, |pauses| {
        pauses.set(which.key(&workspace), now, until);
    })?;
    let ends = match (options.lasts, which.all) {
        (Some(lasts), _) => format!("ends after {}", duration(lasts)),
        (None, true) => "`touchmark resume --all` ends it".to_owned(),
        (None, false) => "`touchmark resume` ends it".to_owned(),
    };
    let facts = json!({ "paused": true, "all": which.all, "since": now, "until": until });
    let name = which.name(&workspace);
    context.tell(
        &facts,
        &format!("paused in {name}; {ends}. What changes meanwhile has the author `unknown`."),
    )
}

pub(crate) fn resume(context: &Context, options: &ResumeOptions) -> Outcome {
    let which = &options.which;
    let workspace = which.workspace(context, UsersOnly::Resume)?;
    let places = &workspace.places;
    let was = off::off(places, &workspace.root, now());
    off::change_pauses(places, |pauses| pauses.clear(which.key(&workspace)))?;
    let still = off::off(places, &workspace.root, now()).map(|off| off.cause);
    if still == Some(OffCause::PausedEverywhere) {
        return Err(Failure::No(
            "touchmark is paused in all workspaces: `touchmark resume --all` ends that".into(),
        ));
    }
    let facts = json!({ "paused": false, "all": which.all });
    let name = which.name(&workspace);
    let text = match was {
        Some(_) => format!("touchmark works again in {name}"),
        None => format!("touchmark was not paused in {name}"),
    };
    context.tell(&facts, &text)?;
    match still {
        Some(_) => Err(Failure::No(
            "`off` in your configuration still has this directory".into(),
        )),
        None => Ok(()),
    }
}

/// Parses a length of time such as `90m`, in milliseconds.
fn span(text: &str) -> Result<Millis, String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "s" | "sec" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return Err("a time is a number with s, m, h or d, such as 90m".into()),
    };
    let number: Millis = number.parse().unwrap_or_default();
    match number.checked_mul(unit) {
        Some(span) if (1..=36_500 * 86_400_000).contains(&span) => Ok(span),
        _ => Err("a pause lasts at least a second and at most 36500 days".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        assert_eq!(span("1h"), Ok(3_600_000));
        assert_eq!(span("90 min"), Ok(5_400_000));
        assert_eq!(span("30s"), Ok(30_000));
        assert_eq!(span("2d"), Ok(172_800_000));
        for wrong in ["", "h", "1", "0h", "-1h", "1w", "99999999999999999999h"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
