//! `touchmark attest [REV]`: shows who wrote the lines that a commit added.

use std::collections::BTreeMap;

use anstyle::Style;
use clap::Args;
use serde_json::json;
use touchmark_client::blocking::Client;
use touchmark_client::proto::{Author, SessionId};

use crate::attest::git::{Repository, short};
use crate::attest::note::{self, NotedAgent};
use crate::attest::{Attested, Totals, attest};
use crate::context::{Context, all_sessions};
use crate::output::{Failure, Outcome};
use crate::pager::Page;
use crate::progress;
use crate::style::{self, paint};
use crate::system::terminal::columns;
use crate::table::{Step, Table};
use crate::text::{MAX_NAME, author, count, cut, escaped, path};
use crate::trace::model;
use crate::versions::colour;

/// The longest commit message that is shown, in characters. The whole line has 80.
const SUBJECT: usize = 58;

/// The longest author's name with the model's, in characters.
const NAME: usize = 34;

/// Show who wrote the lines that a commit added or changed.
///
/// A merge is compared with all its parents. Lines of files that touchmark has not seen have
/// the author `unknown`. Nothing is written into the repository without --write.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Commits as git names them: REV or A..B
    #[arg(value_name = "REV", default_value = "HEAD")]
    commits: Vec<String>,
    /// Also write a note to refs/notes/ai, in the format of git-ai (authorship/3.0.0)
    #[arg(long)]
    write: bool,
    /// Replace another program's note
    #[arg(long, requires = "write")]
    force: bool,
}

/// The result of writing a commit's note.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// The note was written.
    New,
    /// The note existed already.
    Unchanged,
    /// No note is needed, since no agent wrote any of the lines.
    Nothing,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let workspace = context.workspace()?;
    let repository = Repository::of(&workspace)?;
    let mut commits = Vec::new();
    for named in &options.commits {
        commits.extend(repository.commits(named)?);
    }
    let client = context.connect(&workspace)?;
    let agents = agents(&client)?;
    let all = commits.len();
    let found = commits.into_iter().enumerate().map(|(done, commit)| {
        progress::count(done, all);
        let attested = attest(&client, &repository, &workspace.root, commit)?;
        let own = of_commit(&client, &attested, &agents);
        let note = match options.write {
            true => Some(write(&repository, &attested, &own, options.force)?),
            false => None,
        };
        Ok((attested, own, note))
    });
    if context.global.json {
        let told =
            found.map(|one| one.and_then(|(attested, own, note)| json(&attested, &own, note)));
        let told = told.collect::<Outcome<Vec<_>>>()?;
        return context.json(&json!({ "commits": told }));
    }
    if all == 0 {
        return context.say("there is no commit in that range");
    }
    // All are found before the first is shown: a pager may take the terminal.
    let (mut shown, mut failed) = (Vec::new(), Ok(()));
    for one in found {
        match one {
            Ok(one) => shown.push(one),
            Err(failure) => {
                failed = Err(failure);
                break;
            }
        }
    }
    let mut page = Page::open(context);
    for (attested, own, note) in &shown {
        show(&mut page, attested, own, *note)?;
    }
    failed
}

/// Returns the programs of all sessions.
fn agents(client: &Client) -> Outcome<BTreeMap<String, NotedAgent>> {
    let agents = all_sessions(client)?.into_iter().map(|row| {
        let tool = row.agent.map(|program| program.name);
        (row.session.to_string(), NotedAgent { tool, model: None })
    });
    Ok(agents.collect())
}

/// Returns the sessions that wrote lines of a commit, with their models.
fn of_commit(
    client: &Client,
    attested: &Attested,
    agents: &BTreeMap<String, NotedAgent>,
) -> BTreeMap<String, NotedAgent> {
    let mut own: BTreeMap<String, NotedAgent> = BTreeMap::new();
    let ranges = attested.files.iter().flat_map(|file| &file.ranges);
    for session in ranges.filter_map(|range| range.author.session.as_ref()) {
        own.entry(session.to_string())
            .or_insert_with(|| NotedAgent {
                model: model(client, session),
                ..agents.get(session.as_str()).cloned().unwrap_or_default()
            });
    }
    own
}

fn write(
    repository: &Repository,
    attested: &Attested,
    agents: &BTreeMap<String, NotedAgent>,
    force: bool,
) -> Outcome<(Written, usize)> {
    let note = note::note(attested, agents);
    let there = repository.note(note::REFERENCE, &attested.commit)?;
    let is_own = there.as_deref().is_some_and(note::is_own);
    let written = match &there {
        Some(there) if there.trim_ascii() == note.text.trim().as_bytes() => Written::Unchanged,
        None if attested.totals.agents == 0 => Written::Nothing,
        Some(_) if !is_own && !force => {
            return Err(Failure::No(format!(
                "{} has a note of another program in refs/notes/ai; --force replaces it",
                short(&attested.commit)
            )));
        }
        there => {
            let force = there.is_some();
            repository.write_note(note::REFERENCE, &attested.commit, &note.text, force)?;
            Written::New
        }
    };
    Ok((written, note.left_out))
}

fn json(
    attested: &Attested,
    agents: &BTreeMap<String, NotedAgent>,
    note: Option<(Written, usize)>,
) -> Outcome<serde_json::Value> {
    let mut value = serde_json::to_value(attested).map_err(anyhow::Error::from)?;
    value["agents"] = agents
        .iter()
        .map(|(session, agent)| json!({"session": session, "agent": agent.tool, "model": agent.model}))
        .collect();
    if let Some((written, left_out)) = note {
        value["note"] = match written {
            Written::New => "written",
            Written::Unchanged => "unchanged",
            Written::Nothing => "nothing",
        }
        .into();
        if left_out > 0 {
            value["notInNote"] = left_out.into();
        }
    }
    Ok(value)
}

fn show(
    page: &mut Page,
    attested: &Attested,
    agents: &BTreeMap<String, NotedAgent>,
    note: Option<(Written, usize)>,
) -> Outcome {
    let subject = escaped(&attested.subject, SUBJECT);
    let head = format!("commit {}", short(&attested.commit));
    page.line(&format!("{}  {subject}", paint(style::BOLD, &head)))?;
    for file in &attested.files {
        let room = columns().unwrap_or(usize::MAX);
        page.line(&cut(&path(&file.path), room))?;
        let rows: Vec<_> = file
            .ranges
            .iter()
            .map(|range| {
                let lines = match range.start == range.end {
                    true => range.start.to_string(),
                    false => format!("{}-{}", range.start, range.end),
                };
                let known = range.evidence.map(crate::versions::evidence);
                vec![
                    (Style::new(), format!("  {lines:>9}")),
                    (colour(&range.author), name(&range.author, agents)),
                    (style::DIM, known.unwrap_or("not known").to_owned()),
                ]
            })
            .collect();
        for line in Table::new(&[Step::Middle(1, 12)]).lines(rows, columns()) {
            page.line(&line)?;
        }
        if let Some(cause) = &file.cause {
            let cause = format!("  not known: {}", escaped(cause, MAX_NAME));
            for line in crate::text::wrapped(&cause, 79, "    ") {
                page.line(&paint(style::DIM, &line))?;
            }
        }
    }
    page.line(&totals(attested.totals))?;
    let Some((written, left_out)) = note else {
        return Ok(());
    };
    page.line(match written {
        Written::New => "note written to refs/notes/ai",
        Written::Unchanged => "the note in refs/notes/ai is up to date",
        Written::Nothing => "no note: no agent is known to have written any of it",
    })?;
    match left_out {
        0 => Ok(()),
        _ => page.line(&format!(
            "not in the note, which has no way to name them: {}",
            count(left_out as u64, "file")
        )),
    }
}

/// Returns an author's name, with the model if it is known.
fn name(of: &Author, agents: &BTreeMap<String, NotedAgent>) -> String {
    let agent = of.session.as_ref().map(SessionId::as_str);
    let model = agent.and_then(|session| agents.get(session)?.model.as_deref());
    let name = author(of);
    let name = match model {
        Some(model) => format!("{name} ({})", escaped(model, MAX_NAME)),
        None => name,
    };
    crate::text::cut(&name, NAME)
}

fn totals(totals: Totals) -> String {
    let Totals {
        lines,
        agents,
        user,
        unknown,
    } = totals;
    let lines = count(u64::from(lines), "line");
    format!("{lines}: {agents} by agents, {user} by you, {unknown} by unknown")
}
