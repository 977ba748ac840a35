//! The output of `setup`, as text and as JSON.

use serde_json::json;

use super::{AgentPlans, Setup, kinds};
use crate::daemon::doctor::Finding;
use crate::findings;
use crate::output::{self, Outcome};
use crate::settings::{Direction, Scope, coloured};
use crate::style::{self, paint};
use crate::system::terminal::columns;
use crate::table::{Cell, Step, Table, View};
use crate::text::{count, directory, width, wrapped};

/// Agent, places.
const FOUND: Table = Table::new(&[]).with_remarks();

/// Agent, what it is about, file.
const CHANGES: Table = Table::new(&[Step::Middle(2, 20)]);

/// The maximum number of lines of a difference that are shown. Only a plug-in
/// has more.
const MOST_LINES: usize = 200;

impl Setup<'_> {
    /// Prints the agents found and the planned changes.
    pub(super) fn show(&self, rows: &[AgentPlans]) -> Outcome {
        if self.context.global.json || self.context.global.quiet {
            return Ok(());
        }
        if self.action == Direction::Install {
            output::lines(&FOUND.lines(rows.iter().map(found), columns()))?;
        }
        let width = columns().unwrap_or(usize::MAX);
        for plan in rows.iter().flat_map(AgentPlans::changes) {
            output::line("")?;
            let lines = plan.difference(&directory(&plan.path));
            let (shown, rest) = lines.split_at(lines.len().min(MOST_LINES));
            for part in shown.iter().flat_map(|line| folded(line, width)) {
                output::line(&coloured(&part))?;
            }
            if !rest.is_empty() {
                let more = count(rest.len() as u64, "line");
                output::line(&paint(style::DIM, &format!("… and {more} more")))?;
            }
        }
        self.list(rows)
    }

    /// Lists the files that would be written, since the differences may have
    /// scrolled away.
    fn list(&self, rows: &[AgentPlans]) -> Outcome {
        let changes = rows.iter().flat_map(|row| {
            row.changes().map(move |plan| {
                let name = row.agent.name().to_owned();
                let texts = [name, kinds(&plan.kinds), directory(&plan.path)];
                texts.map(|text| (anstyle::Style::new(), text)).into()
            })
        });
        let changes: Vec<Vec<Cell>> = changes.collect();
        if changes.is_empty() {
            return Ok(());
        }
        output::line("")?;
        output::line(match self.action {
            Direction::Install => "To be written:",
            Direction::Uninstall => "To be removed:",
        })?;
        for line in CHANGES.lines(changes, View::here().without(2).columns) {
            output::line(&format!("  {line}"))?;
        }
        output::line("")
    }

    /// Prints the result.
    pub(super) fn tell(&self, rows: &[AgentPlans], findings: &[Finding], written: bool) -> Outcome {
        if self.context.global.json {
            return self.context.json(&json!({
                "workspace": self.workspace.root.to_string_lossy(),
                "scope": match self.scope {
                    Scope::User => "user",
                    Scope::Project => "project",
                },
                "written": written,
                "agents": rows.iter().map(facts_of).collect::<Vec<_>>(),
                "checks": findings::json(findings),
            }));
        }
        findings::print(self.context, findings)?;
        let changes = rows.iter().flat_map(AgentPlans::changes).next().is_some();
        match (self.action, changes, written) {
            (_, true, false) => self.context.say("nothing is written"),
            (Direction::Install, true, true) => self
                .context
                .say("Agents that are already running load this at their next start."),
            (Direction::Install, false, _) => self.context.say("nothing had to be written"),
            (Direction::Uninstall, false, _) => self
                .context
                .say("nothing to do: touchmark has no entry in these settings"),
            (Direction::Uninstall, true, true) => Ok(()),
        }
    }
}

/// Returns a table row with an agent and where it was found.
fn found(row: &AgentPlans) -> Vec<(anstyle::Style, String)> {
    let places = row.found.iter().flat_map(|found| {
        let program = found.program.as_deref().map(directory);
        program
            .into_iter()
            .chain(found.directory.as_deref().map(directory))
    });
    let places: Vec<String> = places.collect();
    let mut places = match places.is_empty() {
        true => "not found here".to_owned(),
        false => places.join(", "),
    };
    if let Some(untried) = row.agent.untried() {
        places = format!("{places}; {untried}");
    }
    vec![
        (style::BOLD, row.agent.name().to_owned()),
        (style::DIM, places),
    ]
}

fn facts_of(row: &AgentPlans) -> serde_json::Value {
    let place =
        |path: Option<&std::path::PathBuf>| path.map(|path| path.to_string_lossy().into_owned());
    let found = row.found.as_ref();
    let files: Vec<_> = row
        .plans
        .iter()
        .flatten()
        .map(|plan| {
            let kinds: Vec<_> = plan.kinds.iter().map(|kind| kind.name()).collect();
            json!({
                "file": plan.path.to_string_lossy(),
                "about": kinds,
                "changed": plan.changes(),
                "difference": plan.difference(&plan.path.to_string_lossy()),
            })
        })
        .collect();
    json!({
        "agent": row.agent.name(),
        "title": row.agent.settings().title,
        "untried": row.agent.untried(),
        "program": place(found.and_then(|found| found.program.as_ref())),
        "directory": place(found.and_then(|found| found.directory.as_ref())),
        "files": files,
    })
}

/// Wraps a line of a difference to a width. Each part keeps the sign.
fn folded(line: &str, columns: usize) -> Vec<String> {
    let Some(sign) = line.chars().next().filter(|sign| "+- ".contains(*sign)) else {
        return vec![line.to_owned()];
    };
    if width(line) <= columns || line.starts_with("+++") || line.starts_with("---") {
        return vec![line.to_owned()];
    }
    let text = &line[1..];
    let blank = &text[..text.len() - text.trim_start().len()];
    let indent = format!("{blank}    ");
    let lines = wrapped(text, columns.saturating_sub(1), &indent);
    lines
        .into_iter()
        .map(|line| format!("{sign}{line}"))
        .collect()
}
