//! `touchmark setup`: adds touchmark to the settings of the agents on this
//! machine, and removes it.

mod prove;
mod show;

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum as _};
use touchmark_client::{Workspace, witness_program};

use crate::confirm;
use crate::context::Context;
use crate::daemon::doctor::Finding;
use crate::findings;
use crate::output::{Failure, Outcome};
use crate::settings::{Agent, Direction, Kind, Places, Plan, Present, Scope, Which, WriteOptions};
use crate::text::{count, directory};

/// Find the agents on this machine, show what would be added to their settings,
/// ask once, and test what was installed. Hooks report to touchmark what an
/// agent's own tools read and write. The MCP server gives agents touchmark's
/// tools.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Remove everything that was added
    #[arg(long)]
    remove: bool,
    /// Only these agents [default: all that are found]
    #[arg(long, value_name = "NAME", num_args = 1..)]
    agent: Vec<Agent>,
    #[command(flatten)]
    write: WriteOptions,
    /// Do not change the settings of MCP servers
    #[arg(long)]
    no_mcp: bool,
    /// Also let the kernel tell which files an agent's shell commands write, so that what you save meanwhile is yours (Claude Code, on Linux) [default: ask]
    #[arg(long, conflicts_with = "project")]
    witness: bool,
    /// Do the same for other agents: write programs of their names for the beginning of your PATH, which start them so (Linux)
    #[arg(long, conflicts_with = "project")]
    shims: bool,
}

/// What a witness is, before the question.
const WITNESS: &str =
    "The kernel can tell which files an agent's shell commands write: what you save
meanwhile is then yours, and `touchmark undo` need not ask. Opening a file for
writing takes about 17 us more; sudo and ping gain no rights in such commands.
docs/witness.md has the rest; `touchmark setup --remove` turns it off.";

/// What is done, and for which settings.
struct Setup<'a> {
    context: &'a Context,
    workspace: &'a Workspace,
    places: Places<'a>,
    scope: Scope,
    action: Direction,
    which: Which,
}

/// An agent, and the changes of its settings.
struct AgentPlans {
    agent: Agent,
    found: Option<Present>,
    plans: Vec<Outcome<Plan>>,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let workspace = context.workspace()?;
    let places = Places::of(&context.environment, &workspace.root)?;
    let mut setup = Setup {
        context,
        workspace: &workspace,
        places,
        scope: options.write.scope(),
        action: match options.remove {
            true => Direction::Uninstall,
            false => Direction::Install,
        },
        which: Which {
            servers: !options.no_mcp,
            witness: options.witness || options.remove,
            shims: options.shims || options.remove,
        },
    };
    if setup.action == Direction::Install && setup.scope == Scope::User {
        // What the user has chosen before stays.
        setup.which.shims |= setup.has(Kind::Shim)?;
        setup.which.witness |= setup.has(Kind::Witness)? || setup.wants_witness(options)?;
    }
    let rows = setup.rows(&options.agent)?;
    if rows.is_empty() {
        return Err(Failure::No(
            "no supported agent was found on this machine: name one with --agent".into(),
        ));
    }
    let changes = rows.iter().flat_map(AgentPlans::changes).count();
    setup.show(&rows)?;
    let mut findings = Vec::new();
    if options.write.dry_run {
        findings.extend(rows.iter().flat_map(|row| setup.wrong(row)));
    } else {
        let verb = setup.action.verb();
        let question = format!("{verb} {}?", count(changes as u64, "file"));
        let agreed =
            changes == 0 || options.write.yes || confirm::agreed(&question, confirm::WRITE)?;
        if !agreed {
            return Err(Failure::No("everything is left as it is".into()));
        }
        for row in &rows {
            findings.extend(setup.carry_out(row));
        }
    }
    setup.tell(&rows, &findings, changes > 0 && !options.write.dry_run)?;
    findings::verdict(&findings)
}

impl AgentPlans {
    fn changes(&self) -> impl Iterator<Item = &Plan> {
        self.plans.iter().flatten().filter(|plan| plan.changes())
    }
}

impl Setup<'_> {
    /// Returns the selected agents, with the changes for each.
    fn rows(&self, named: &[Agent]) -> Outcome<Vec<AgentPlans>> {
        let found = self.places.present();
        let all = Agent::value_variants().iter().copied();
        let mut rows = Vec::new();
        for agent in all {
            let found = found.iter().find(|found| found.agent == agent);
            let meant = match named {
                [] => found.is_some() || self.action == Direction::Uninstall,
                named => named.contains(&agent),
            };
            if !meant {
                continue;
            }
            let mut plans = self.plans(agent)?;
            if named.is_empty() && self.action == Direction::Uninstall {
                // For an agent that is not on this machine, only what touchmark
                // added counts.
                plans.retain(|plan| match plan {
                    Ok(plan) => plan.changes() || plan.theirs,
                    Err(_) => found.is_some(),
                });
            }
            rows.push(AgentPlans {
                agent,
                found: found.cloned(),
                plans,
            });
        }
        Ok(rows)
    }

    /// Returns whether some agent has what is of this kind.
    fn has(&self, kind: Kind) -> Outcome<bool> {
        for agent in Agent::value_variants() {
            let installed = self.places.installed(*agent, self.scope)?;
            if installed.iter().any(|one| one.kind == kind) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Asks whether to let agents' commands be witnessed. `false` if no question
    /// can be asked, or if no agent is concerned.
    fn wants_witness(&self, options: &Options) -> Outcome<bool> {
        let present = self.places.present().into_iter().map(|found| found.agent);
        let titles: Vec<&str> = present
            .filter(|agent| options.agent.is_empty() || options.agent.contains(agent))
            .filter(|agent| agent.settings().shell.is_some())
            .map(|agent| agent.settings().title)
            .collect();
        let asks = !options.write.yes
            && !options.write.dry_run
            && !options.witness
            && std::io::stdin().is_terminal();
        if titles.is_empty() || witness_program().is_none() || !asks {
            return Ok(false);
        }
        self.context.say(WITNESS)?;
        let question = format!("Witness the commands of {}?", titles.join(" and "));
        confirm::agreed(&question, confirm::WRITE)
    }

    fn plans(&self, agent: Agent) -> Outcome<Vec<Outcome<Plan>>> {
        self.places
            .plans(agent, self.scope, self.action, self.which)
    }

    /// Writes an agent's files and tests what is in them. The files are read
    /// again, since the user may have taken long to answer.
    fn carry_out(&self, row: &AgentPlans) -> Vec<Finding> {
        let mut findings = self.wrong(row);
        let fresh = match self.plans(row.agent) {
            Ok(fresh) => fresh,
            Err(failure) => return vec![wrong(row.agent.name(), &failure)],
        };
        for shown in row.changes() {
            let check = format!("{} {}", row.agent.name(), kinds(&shown.kinds));
            let plan = fresh.iter().flatten().find(|plan| plan.path == shown.path);
            let written = match plan {
                Some(plan) if plan.does_as(shown) => plan.carry_out(),
                _ => Err(Failure::No(format!(
                    "{} was changed meanwhile: run `touchmark setup` again",
                    directory(&shown.path)
                ))),
            };
            match written {
                Err(failure) => findings.push(wrong(&check, &failure)),
                Ok(()) if self.action == Direction::Uninstall => {
                    let name = directory(&shown.path);
                    findings.push(Finding::good(
                        row.agent.name(),
                        format!("removed from {name}"),
                    ));
                }
                Ok(()) => {}
            }
        }
        let theirs = row.plans.iter().flatten().filter(|plan| plan.theirs);
        findings.extend(theirs.map(|plan| {
            Finding::note(
                row.agent.name(),
                format!(
                    "{} has an MCP server touchmark that `touchmark setup` did not write: it is left unchanged",
                    directory(&plan.path)
                ),
                "",
            )
        }));
        match self.action {
            Direction::Install => findings.extend(self.try_out(row)),
            Direction::Uninstall => findings.extend(self.elsewhere(row.agent)),
        }
        findings
    }

    /// Returns a finding for each file that cannot be changed.
    fn wrong(&self, row: &AgentPlans) -> Vec<Finding> {
        let failures = row.plans.iter().filter_map(|plan| plan.as_ref().err());
        failures
            .map(|failure| wrong(row.agent.name(), failure))
            .collect()
    }

    /// Runs what is now in an agent's settings, as the agent would.
    fn try_out(&self, row: &AgentPlans) -> Vec<Finding> {
        let all = match self.places.installed(row.agent, self.scope) {
            Ok(all) => all,
            Err(failure) => return vec![wrong(row.agent.name(), &failure)],
        };
        let is_in = !all.is_empty();
        let meant = all.into_iter().filter(|one| self.which.is(one.kind));
        let mut findings: Vec<Finding> = meant
            .map(|one| {
                let check = format!("{} {}", row.agent.name(), one.kind.name());
                let place = directory(&one.path);
                if !one.current {
                    // The entry may name any program, so it is not run.
                    let says = format!("the entry in {place} was not written by this touchmark");
                    return Finding::wrong(check, says, "`touchmark setup` replaces it");
                }
                match prove::run(self.context, self.workspace, row.agent, &one) {
                    Ok(said) => Finding::good(check, format!("in {place}; {said}")),
                    Err(prove::Unproved::Untried(why)) => {
                        Finding::note(check, format!("in {place}; not tried: {why}"), "")
                    }
                    Err(prove::Unproved::Failed(why)) => Finding::wrong(
                        check,
                        format!("in {place}; it was tried, and {why}"),
                        "`touchmark doctor` looks for the cause",
                    ),
                }
            })
            .collect();
        let check = format!("{} {}", row.agent.name(), Kind::Hooks.name());
        let off = self.places.switched_off(row.agent, check);
        findings.extend(off.filter(|_| is_in));
        let notes = self.places.notes(row.agent, self.scope);
        findings.extend(
            notes
                .into_iter()
                .filter(|_| is_in)
                .map(|note| Finding::note(row.agent.name(), note, "")),
        );
        findings
    }

    /// Returns a finding about what is left in the settings of the other scope.
    fn elsewhere(&self, agent: Agent) -> Option<Finding> {
        let (other, option) = match self.scope {
            Scope::User => (Scope::Project, " --project"),
            Scope::Project => (Scope::User, ""),
        };
        let left = self.places.installed(agent, other);
        let left = left.unwrap_or_default().into_iter().next()?;
        Some(Finding::note(
            agent.name(),
            format!("{} is still in {}", left.kind.name(), directory(&left.path)),
            format!("`touchmark setup --remove{option}`"),
        ))
    }
}

fn wrong(check: &str, failure: &Failure) -> Finding {
    Finding::wrong(check.to_owned(), failure.to_string(), "")
}

fn kinds(kinds: &[Kind]) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    names.join(" and ")
}
