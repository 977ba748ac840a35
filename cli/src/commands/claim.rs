//! `touchmark claim`: says who wrote a change.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::proto::claim::Claim;
use touchmark_client::proto::{LineRange, SessionId};

use crate::blame;
use crate::complete;
use crate::context::{self, Context};
use crate::output::{Failure, Outcome};
use crate::text::count;

/// Say who wrote a change.
///
/// What changes while an agent's command runs may be the command's or yours. A claim says which,
/// and counts from then on: in blame, log, review and undo. PATH:LINES names lines of the current
/// content, by any author; PATH or --command names what changed while a command ran.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A file or directory; or lines of a file, such as `a.txt:10-12`
    #[arg(value_name = "PATH[:LINES]", required_unless_present = "command")]
    what: Option<String>,
    /// Only changes while this command ran, such as `c5`
    #[arg(long, value_name = "C")]
    command: Option<String>,
    /// Who wrote it: `you`, or a session
    #[arg(long, value_name = "you | SESSION", add = ArgValueCompleter::new(complete::session))]
    by: String,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let connection = context.open()?;
    let by = match &*options.by {
        "you" | "me" => None,
        name => {
            let name = SessionId::new(name).map_err(|error| Failure::Usage(error.to_string()))?;
            Some(context::meant(&connection.client, &name)?)
        }
    };
    let (paths, lines) = match &options.what {
        None => (None, None),
        Some(what) => {
            let root = &connection.workspace.root;
            let (file, lines) = divided(what, |file| root.join(file).exists());
            (Some(vec![connection.path(file.as_ref())?]), lines)
        }
    };
    let claimed = connection.answer(Claim {
        session: by,
        command: options.command.clone(),
        paths,
        lines,
    })?;
    let Some(claimed) = claimed else {
        return Ok(());
    };
    let what = match claimed.lines {
        0 => count(u64::from(claimed.versions), "change"),
        lines => count(u64::from(lines), "line"),
    };
    let by = match &*options.by {
        "you" | "me" => "yours".to_owned(),
        _ => "the agent's".to_owned(),
    };
    context.say(&format!("recorded as {by}: {what}"))
}

/// Divides `PATH:LINES`. A file with that whole name is meant as a whole.
fn divided(what: &str, exists: impl Fn(&str) -> bool) -> (&str, Option<LineRange>) {
    let parts = what.rsplit_once(':').filter(|_| !exists(what));
    let parts =
        parts.and_then(|(file, lines)| Some((file, blame::range(&lines.replace('-', ",")).ok()?)));
    match parts {
        Some((file, lines)) => (file, Some(lines)),
        None => (what, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_behind_a_colon() {
        let of = |what| {
            let (file, lines) = divided(what, |file| file == "odd:3");
            (file, lines.map(|lines| (lines.start, lines.end)))
        };
        assert_eq!(of("a.txt:10-12"), ("a.txt", Some((10, 12))));
        assert_eq!(of("a.txt:7"), ("a.txt", Some((7, 7))));
        assert_eq!(of("a.txt"), ("a.txt", None));
        assert_eq!(of("odd:3"), ("odd:3", None));
        assert_eq!(of("c:d"), ("c:d", None));
    }
}
