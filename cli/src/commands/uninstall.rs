//! `touchmark uninstall`: removes everything of touchmark from this machine
//! except the program itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum as _};
use serde_json::json;
use touchmark_client::Workspace;
use touchmark_client::proto::{self, Holder};

use crate::confirm;
use crate::context::Context;
use crate::daemon;
use crate::output::{self, Failure, Outcome};
use crate::service::{Manager, Service};
use crate::settings::{Agent, Direction, Places, Plan, Scope, Which};
use crate::style;
use crate::table::{Step, Table, View};
use crate::text::{count, directory};

/// Kind, path, whose.
const TABLE: Table = Table::new(&[Step::Middle(1, 20)]).with_remarks();

/// Remove touchmark from the settings of all agents, both the user's and those
/// of every project that it was added to, remove its systemd units, and stop
/// all daemons. Prints what it leaves.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Also remove what is stored for every workspace
    #[arg(long)]
    state: bool,
    /// With --state: also remove the contents that `touchmark recovered` lists
    #[arg(long, requires = "state")]
    recovered: bool,
    /// Do not ask
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
}

/// Something to remove. The order of the variants is the order of removal: what
/// starts a daemon is removed before the daemon is stopped.
enum Item<'e> {
    Settings {
        agent: Agent,
        scope: Scope,
        workspace: PathBuf,
        plan: Plan,
    },
    Service(Service<'e>),
    Daemon(Workspace),
    /// Everything stored, and the directory of the sockets.
    State(PathBuf),
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let mut failed = Vec::new();
    let items = items(context, options, &mut failed)?;
    if !context.global.json && !items.is_empty() {
        context.say("To be removed:")?;
        let rows: Vec<_> = items.iter().map(Item::row).collect();
        for line in TABLE.lines(rows, View::here().without(2).columns) {
            context.say(&format!("  {line}"))?;
        }
    }
    let mut done = Vec::new();
    if !options.dry_run && !items.is_empty() {
        let question = "Remove all of this?";
        if !options.yes
            && !confirm::agreed(question, "use --yes to remove all of this, or --dry-run")?
        {
            return Err(Failure::No("everything is left as it is".into()));
        }
        for item in &items {
            // The stored records contain what was added to settings, and how to
            // remove it.
            let result = match item {
                Item::State(_) if !failed.is_empty() => Err(Failure::No(
                    "the stored state is left until that is fixed".into(),
                )),
                item => item.take_away(context, options),
            };
            done.push(result.is_ok());
            failed.extend(result.err().map(|failure| failure.to_string()));
        }
    }
    tell(context, options, &items, &done, &failed)?;
    match failed.len() {
        0 => Ok(()),
        wrong => Err(Failure::No(format!(
            "{} could not be removed",
            count(wrong as u64, "thing")
        ))),
    }
}

/// Returns everything that can be removed. What cannot be read is added to
/// `failed`.
fn items<'e>(
    context: &'e Context,
    options: &Options,
    failed: &mut Vec<String>,
) -> Outcome<Vec<Item<'e>>> {
    let environment = &context.environment;
    let services = Service::all(environment);
    let workspaces = workspaces(context, &services)?;
    let mut items = Vec::new();
    // If the home directory is a project, the user's settings are also a
    // project's.
    let mut seen = BTreeSet::new();
    for &agent in Agent::value_variants() {
        let user = [(Scope::User, Path::new("/"))];
        let projects = workspaces
            .iter()
            .map(|workspace| (Scope::Project, workspace.as_path()));
        for (scope, workspace) in user.into_iter().chain(projects) {
            let places = Places::of(environment, workspace)?;
            for plan in places.plans(agent, scope, Direction::Uninstall, Which::ALL)? {
                match plan {
                    Ok(plan) if plan.changes() && seen.insert(plan.path.clone()) => {
                        items.push(Item::Settings {
                            agent,
                            scope,
                            workspace: workspace.to_owned(),
                            plan,
                        })
                    }
                    Ok(_) => {}
                    Err(failure) => failed.push(failure.to_string()),
                }
            }
        }
    }
    items.extend(services.into_iter().map(Item::Service));
    let known = workspaces
        .iter()
        .filter_map(|root| Workspace::at(root, environment).ok());
    items.extend(known.filter(Workspace::is_running).map(Item::Daemon));
    let state = environment.base.state_directory();
    if options.state && state.exists() {
        items.push(Item::State(state));
    }
    Ok(items)
}

/// Returns the existing workspaces that have a daemon's lock, a service, or
/// settings that something was added to.
fn workspaces(context: &Context, services: &[Service<'_>]) -> Outcome<BTreeSet<PathBuf>> {
    let base = &context.environment.base;
    let locks = [base.state_directory(), base.runtime_directory()];
    let locks = locks.iter().flat_map(|all| entries(all));
    let locked = locks
        .filter(|path| path.extension().is_some_and(|end| end == "lock"))
        .filter_map(|path| Some(Holder::parse(&fs::read(path).ok()?)?.workspace));
    let served = services.iter().map(|service| service.workspace.clone());
    let here = context.workspace().ok().map(|workspace| workspace.root);
    let written = Places::projects(&context.environment)?;
    let all = locked.chain(served).chain(here).chain(written);
    Ok(all
        .filter(|path| path.is_absolute() && path.is_dir())
        .collect())
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

impl Item<'_> {
    /// Returns the kind, the owner and the path.
    fn says(&self) -> (&'static str, String, &Path) {
        match self {
            Self::Settings { agent, plan, .. } => ("settings", agent.name().into(), &plan.path),
            Self::Service(service) => ("service", service.socket(), &service.workspace),
            Self::Daemon(workspace) => ("daemon", String::new(), &workspace.root),
            Self::State(path) => ("state", String::new(), path),
        }
    }

    fn row(&self) -> Vec<(anstyle::Style, String)> {
        let (kind, whose, path) = self.says();
        let plain = anstyle::Style::new();
        vec![
            (style::BOLD, kind.to_owned()),
            (plain, directory(path)),
            (style::DIM, whose),
        ]
    }

    fn take_away(&self, context: &Context, options: &Options) -> Outcome {
        let environment = &context.environment;
        match self {
            Self::Settings {
                agent,
                scope,
                workspace,
                plan,
            } => {
                // The file is read again, since the user may have taken long to
                // answer, and two agents may read one file.
                let places = Places::of(environment, workspace)?;
                let fresh = places.plans(*agent, *scope, Direction::Uninstall, Which::ALL)?;
                let mut fresh = fresh.into_iter().flatten();
                match fresh.find(|fresh| fresh.path == plan.path) {
                    Some(fresh) => fresh.carry_out(),
                    None => plan.carry_out(),
                }
            }
            Self::Service(service) => service.uninstall(&Manager::reach()?).map(drop),
            Self::Daemon(workspace) => daemon::end(workspace).map(drop),
            Self::State(path) => remove_state(context, path, options.recovered),
        }
    }
}

/// Removes what is stored for each workspace under its lock, then everything
/// else.
fn remove_state(context: &Context, path: &Path, recovered: bool) -> Outcome {
    let base = &context.environment.base;
    let is_key = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(proto::Places::is_key)
    };
    let states: Vec<PathBuf> = entries(path).filter(is_key).collect();
    let places = states
        .iter()
        .filter_map(|state| Some(proto::Places::of_key(base, state.file_name()?.to_str()?)));
    let places: Vec<proto::Places> = places.collect();
    if !recovered {
        // These contents may be stored nowhere else.
        let kept: usize = places.iter().map(daemon::kept).sum();
        if kept > 0 {
            return Err(Failure::No(format!(
                "recovered contents of {} may be stored nowhere else: see `touchmark recovered list` in their workspaces, then add --recovered",
                count(kept as u64, "file")
            )));
        }
    }
    for places in places {
        let holder = fs::read(&places.lock).ok();
        let holder = holder.and_then(|lock| Holder::parse(&lock));
        let root = holder.map_or_else(|| PathBuf::from("/"), |holder| holder.workspace);
        daemon::forget(&Workspace { root, places })?;
    }
    for path in [path, &base.runtime_directory()] {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let failed = anyhow::Error::new(error);
                return Err(failed.context(format!("remove {}", path.display())).into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns what is left on purpose, each with the way to remove it.
fn left(context: &Context, options: &Options) -> Outcome<Vec<String>> {
    let base = &context.environment.base;
    let mut left = Vec::new();
    let state = base.state_directory();
    if !options.state && state.exists() {
        let name = directory(&state);
        left.push(format!(
            "{name}: the stored state; `touchmark uninstall --state` removes it"
        ));
    }
    for file in [base.config_file(), base.trusted_file()] {
        if file.exists() {
            left.push(format!("{}: you wrote it", directory(&file)));
        }
    }
    let program = std::env::current_exe().context("find this program")?;
    left.push(format!(
        "{}: the program; remove it as it was installed",
        directory(&program)
    ));
    Ok(left)
}

fn tell(
    context: &Context,
    options: &Options,
    items: &[Item<'_>],
    done: &[bool],
    failed: &[String],
) -> Outcome {
    let left = left(context, options)?;
    if context.global.json {
        let done = done.iter().copied().chain(std::iter::repeat(false));
        let items = items.iter().zip(done).map(|(item, done)| {
            let (kind, whose, path) = item.says();
            json!({
                "kind": kind,
                "name": (!whose.is_empty()).then_some(whose),
                "path": path.to_string_lossy(),
                "done": done,
            })
        });
        return context.json(&json!({
            "dryRun": options.dry_run,
            "items": items.collect::<Vec<_>>(),
            "failed": failed,
            "left": left,
        }));
    }
    for failure in failed {
        output::line(&style::paint(style::WARN, failure))?;
    }
    let gone = done.iter().filter(|done| **done).count();
    context.say(&match (options.dry_run, items.is_empty()) {
        (_, true) => "nothing to do: no settings, no services, no daemons".to_owned(),
        (true, false) => "nothing was removed".to_owned(),
        (false, false) => format!("removed: {}", count(gone as u64, "thing")),
    })?;
    context.say("Left:")?;
    for line in left {
        context.say(&format!("  {line}"))?;
    }
    Ok(())
}
