//! `touchmark models`: lists the models that sessions used.

use anstyle::Style;
use clap::Args;
use touchmark_client::blocking::Client;
use touchmark_client::proto::models::{ModelEntries, ModelEntry, ModelList};
use touchmark_client::proto::sessions::SessionList;
use touchmark_client::proto::{Reply, SessionId};

use crate::commands::call::result_json;
use crate::context::{self, Context, pages};
use crate::output::{self, Outcome};
use crate::style;
use crate::table::{Step, Table, View};
use crate::text::{called, escaped};

/// Time, session, model, provider, mode.
const TABLE: Table = Table::new(&[
    Step::Out(4),
    Step::Out(3),
    Step::Middle(2, 20),
    Step::Middle(1, 12),
]);

/// List the models that sessions used.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only this session's models
    #[arg(long, short, value_name = "S", value_parser = context::session)]
    session: Option<SessionId>,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let sessions = match options.session {
        Some(session) => vec![(session, None)],
        None => pages(|cursor| {
            let answer = client.call(SessionList {
                limit: None,
                cursor,
            })?;
            let rows = answer.sessions.into_iter();
            let names = rows.map(|row| (row.session, row.label));
            Ok((names.collect(), answer.more))
        })?,
    };
    let mut used = Vec::new();
    for (session, label) in sessions {
        let entries = of(&client, &session)?;
        if !entries.is_empty() {
            used.push((session, label, entries));
        }
    }
    if context.global.json {
        let rows: Vec<_> = used
            .into_iter()
            .map(|(session, _, entries)| {
                let entries = ModelEntries {
                    entries,
                    more: None,
                };
                let mut row = result_json(Reply::ModelList(entries), &workspace.root);
                row["session"] = session.as_str().into();
                row
            })
            .collect();
        return context.json(&serde_json::json!({ "sessions": rows }));
    }
    if used.is_empty() {
        return context.say("no models");
    }
    let lines = lines(&used, &View::here());
    lines.iter().try_for_each(|line| output::line(line))
}

/// A session, its label, and the models that it used.
type Used = (SessionId, Option<String>, Vec<ModelEntry>);

/// Returns one line for each use of a model.
pub(crate) fn lines(used: &[Used], view: &View) -> Vec<String> {
    let rows = used
        .iter()
        .flat_map(|(id, label, entries)| {
            let name = called(id, label.as_deref());
            entries.iter().map(move |entry| (name.clone(), entry))
        })
        .map(|(name, entry)| {
            vec![
                (style::DIM, view.ago(entry.time)),
                (style::AGENT, name),
                (style::BOLD, escaped(&entry.model_id, 80)),
                (Style::new(), escaped(&entry.provider_id, 60)),
                (Style::new(), escaped(&entry.mode, 40)),
            ]
        });
    TABLE.lines(rows.collect(), view.columns)
}

fn of(client: &Client, session: &SessionId) -> Outcome<Vec<ModelEntry>> {
    pages(|cursor| {
        let answer = client.call(ModelList {
            session: session.clone(),
            limit: None,
            cursor,
        })?;
        Ok((answer.entries, answer.more))
    })
}
