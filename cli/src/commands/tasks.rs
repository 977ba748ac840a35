//! `touchmark tasks`: lists background tasks that agents have saved.

use anstyle::Style;
use clap::Args;
use touchmark_client::proto::tasks::{TaskList, TaskRow, TaskRows, TaskType};
use touchmark_client::proto::{Reply, SessionId};

use crate::commands::call::result_json;
use crate::context::{self, Context, pages};
use crate::output::{self, Outcome};
use crate::style;
use crate::table::{Step, Table, View};
use crate::text::{MAX_NAME, called, escaped};

/// State, session, id, type, process, time, command.
const TABLE: Table = Table::new(&[
    Step::Start(2, 8),
    Step::Out(3),
    Step::Middle(1, 12),
    Step::Out(4),
])
.with_remarks();

/// List background tasks that agents have saved.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Include tasks whose process has exited
    #[arg(long)]
    all: bool,
    /// Only this session's tasks
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let mut tasks = pages(|cursor| {
        let answer = client.call(TaskList {
            session: options.session.clone(),
            limit: None,
            cursor,
        })?;
        Ok((answer.tasks, answer.more))
    })?;
    let known = tasks.len();
    // A task without a process id may still be running.
    tasks.retain(|task| options.all || task.alive != Some(false));
    if context.global.json {
        let rows = TaskRows { tasks, more: None };
        return context.json(&result_json(Reply::TaskList(rows), &workspace.root));
    }
    if tasks.is_empty() {
        return context.say(match known {
            0 => "no tasks",
            _ => "no task runs; --all shows those that did",
        });
    }
    let lines = lines(&tasks, &View::here());
    lines.iter().try_for_each(|line| output::line(line))
}

/// Returns one text for each task.
pub(crate) fn lines(tasks: &[TaskRow], view: &View) -> Vec<String> {
    let rows = tasks.iter().map(|task| {
        let (state, state_style) = state(task);
        vec![
            (state_style, state.to_owned()),
            (style::AGENT, called(&task.session, task.label.as_deref())),
            (style::BOLD, escaped(&task.id, 60)),
            (Style::new(), kind(task.task_type).to_owned()),
            (Style::new(), process(task)),
            (style::DIM, view.ago(task.start_time)),
            (Style::new(), command(task)),
        ]
    });
    TABLE.lines(rows.collect(), view.columns)
}

fn state(task: &TaskRow) -> (&'static str, Style) {
    match task.alive {
        Some(true) => ("runs", style::GOOD),
        Some(false) => ("exited", style::DIM),
        None => ("unknown", style::UNKNOWN),
    }
}

fn kind(kind: TaskType) -> &'static str {
    match kind {
        TaskType::Shell => "shell",
        TaskType::Process => "process",
        TaskType::Agent => "agent",
    }
}

fn process(task: &TaskRow) -> String {
    task.pid.map_or_else(String::new, |pid| pid.to_string())
}

fn command(task: &TaskRow) -> String {
    let said = task.command.as_deref().unwrap_or_default();
    format!(
        "{} in {}",
        escaped(said, MAX_NAME),
        escaped(&task.working_directory, MAX_NAME)
    )
}
