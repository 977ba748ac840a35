//! `touchmark service`: the systemd user units that start the daemon.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::context::Context;
use crate::daemon;
use crate::output::{self, Failure, Outcome};
use crate::service::{Manager, Service};
use crate::text::{MAX_NAME, directory, escaped};

/// Install, remove or show the systemd user units of this workspace. They start
/// its daemon when a client connects, restart it after a failure, and run it in
/// a sandbox.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make systemd listen for this workspace's daemon, now and after each login
    Install,
    /// Remove the units; the daemon stops, its state stays
    Uninstall,
    /// Show whether the service is installed, listens and runs
    Status {
        /// Show the services of all of this user's workspaces
        #[arg(long)]
        all: bool,
    },
}

/// A hint: how to keep the service running without a login session.
const LINGER: &str = "it ends with your last session; to keep it: `loginctl enable-linger`";

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    match options.action {
        Action::Install => install(context),
        Action::Uninstall => uninstall(context),
        Action::Status { all: true } => all(context),
        Action::Status { all: false } => status(context),
    }
}

fn install(context: &Context) -> Outcome {
    let workspace = context.workspace()?;
    let manager = Manager::reach()?;
    let service = Service::of(&context.environment, workspace.root.clone());
    let ended = daemon::end(&workspace)?;
    service.install(&manager)?;
    if context.global.json {
        let mut said = facts(&service, &manager)?;
        said["endedDaemon"] = ended.into();
        return context.json(&said);
    }
    context.say(&format!(
        "installed: {} listens for {}",
        service.socket(),
        directory(&workspace.root)
    ))?;
    match manager.lingers() {
        Some(false) => context.say(LINGER),
        _ => Ok(()),
    }
}

fn uninstall(context: &Context) -> Outcome {
    let service = installed(context)?;
    let manager = Manager::reach()?;
    let was = service.uninstall(&manager)?;
    let name = directory(&service.workspace);
    let text = match was {
        true => {
            format!("uninstalled: the service for {name}; clients start the daemon by themselves")
        }
        false => format!("no service is installed for {name}"),
    };
    context.tell(&json!({ "uninstalled": was }), &text)
}

/// Returns the service of the workspace, which may no longer exist.
fn installed(context: &Context) -> Outcome<Service<'_>> {
    let failure = match context.workspace() {
        Ok(workspace) => return Ok(Service::of(&context.environment, workspace.root)),
        Err(failure) => failure,
    };
    let named = context.global.workspace.as_ref();
    let named: Option<PathBuf> = named.and_then(|named| std::path::absolute(named).ok());
    named
        .map(|named| Service::of(&context.environment, named))
        .filter(Service::is_installed)
        .ok_or(failure)
}

fn status(context: &Context) -> Outcome {
    let service = installed(context)?;
    let facts = facts(&service, &Manager::reach()?)?;
    match context.global.json {
        true => context.json(&facts)?,
        false => output::lines(&lines(&service, &facts))?,
    }
    if facts["listening"] == true {
        return Ok(());
    }
    let name = directory(&service.workspace);
    Err(Failure::No(match service.is_installed() {
        true => format!("the service for {name} does not listen"),
        false => format!("no service is installed for {name}"),
    }))
}

fn all(context: &Context) -> Outcome {
    let services = Service::all(&context.environment);
    let mut found = Vec::new();
    if !services.is_empty() {
        let manager = Manager::reach()?;
        for service in services {
            let facts = facts(&service, &manager)?;
            found.push((service, facts));
        }
    }
    if context.global.json {
        return context.json(&found.into_iter().map(|(_, facts)| facts).collect());
    }
    if found.is_empty() {
        return context.say("no service is installed");
    }
    let mut found = found.iter();
    found.try_for_each(|(service, facts)| output::lines(&lines(service, facts)))
}

/// Returns the manager's facts about a service.
fn facts(service: &Service<'_>, manager: &Manager) -> Outcome<Value> {
    let (socket, daemon) = (service.socket(), service.daemon());
    let of = |unit: &str, name: &str| manager.property(Some(unit), name);
    let pid: u32 = of(&daemon, "MainPID")?.parse().unwrap_or(0);
    let text = |text: String| (!text.is_empty()).then_some(text);
    Ok(json!({
        "workspace": service.workspace.to_string_lossy(),
        "key": service.places.key,
        "installed": service.is_installed(),
        "listening": of(&socket, "ActiveState")? == "active",
        "socketUnit": socket,
        "serviceUnit": daemon,
        "state": of(&daemon, "ActiveState")?,
        "pid": (pid > 0).then_some(pid),
        "says": text(of(&daemon, "StatusText")?),
        "restarts": of(&daemon, "NRestarts")?.parse::<u64>().unwrap_or(0),
        "socket": service.places.socket.to_string_lossy(),
        "lingering": manager.lingers(),
    }))
}

fn lines(service: &Service<'_>, facts: &Value) -> Vec<String> {
    let name = directory(&service.workspace);
    if !service.is_installed() {
        return Vec::new();
    }
    let listens = match facts["listening"] == true {
        true => "listens",
        false => "does not listen",
    };
    let says = |field: &str| escaped(facts[field].as_str().unwrap_or_default(), MAX_NAME);
    let mut lines = vec![format!("{name}: {} {listens}", says("socketUnit"))];
    lines.push(match facts["pid"].as_u64() {
        Some(pid) => format!("  {}, pid {pid}, {}", says("state"), says("says")),
        None => format!("  {}, started when a client connects", says("state")),
    });
    if let Some(restarts) = facts["restarts"].as_u64().filter(|count| *count > 0) {
        lines.push(format!("  restarted {restarts} times"));
    }
    if facts["lingering"] == false {
        lines.push(format!("  {LINGER}"));
    }
    lines
}
