//! Agents' processes, as far as the system shows them: whether one is above a
//! process, and what it was started with (OFF-3, OFF-5).

use std::path::Path;

use touchmark_proto::off::BYPASS_VARIABLE;

use crate::system::proc;
use crate::system::process::Process;

/// Programs in whose terminal the user works as well.
pub(crate) const EDITORS: [&str; 2] = ["cursor", "windsurf"];

/// Programs whose first argument is the program that they run.
const INTERPRETERS: [&str; 9] = [
    "node", "bun", "deno", "python", "python3", "sh", "bash", "dash", "env",
];

/// Shells that run the command of a hook.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];

/// The variables that agents set for the commands that they run, and that of
/// `touchmark run`.
const MARKS: [&str; 7] = [
    "CLAUDECODE",
    "GEMINI_CLI",
    "QWEN_CODE",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "OPENCODE",
    "TOUCHMARK_SESSION",
];

/// Whether a hook has an effect.
pub(super) enum Run {
    /// It has none: this agent was started with the variable.
    Bypassed(Process),
    /// It has, although its environment has the variable; with the reason.
    Watched(String),
}

/// Returns whether the agent above a hook's process was started with
/// `TOUCHMARK_BYPASS`. The hook's own environment proves nothing: an agent adds
/// to it what a repository's settings say.
pub(super) fn run(hook: u32, programs: &[&str]) -> Run {
    let above = proc::and_above(hook);
    let mut above = above.iter().skip(1).skip_while(|one| runs_hook(one.pid));
    let Some(nearest) = above.next() else {
        return Run::Watched("the agent's process cannot be seen".into());
    };
    // An agent that another one has started, and one that has started itself
    // again with a different environment.
    let named = above.filter(|one| agent(one.pid, programs).is_some());
    for process in std::iter::once(nearest).chain(named) {
        let environment = proc::environment(process.pid);
        let who = called(process.pid);
        if !says(&environment, BYPASS_VARIABLE) {
            return Run::Watched(format!("{who} was started without it"));
        }
        if let Some(mark) = mark(&environment) {
            return Run::Watched(format!("{who} was started below an agent ({mark} is set)"));
        }
    }
    Run::Bypassed(*nearest)
}

/// Returns an agent's process that was started with `TOUCHMARK_BYPASS`; `None` if
/// it was not, or if this is a hook's process.
pub(super) fn bypassed(process: u32) -> Option<Process> {
    if proc::runs_this_program(process) {
        return None;
    }
    let environment = proc::environment(process);
    let counts = says(&environment, BYPASS_VARIABLE) && mark(&environment).is_none();
    let own = proc::and_above(process).first().copied();
    own.filter(|_| counts)
}

/// Returns which agent a process runs below, for people; `None` if it is known
/// to run below none. `programs` are the names of agents' programs.
pub fn agent_above(process: u32, programs: &[&str]) -> Option<String> {
    let above = proc::and_above(process);
    let found = above
        .iter()
        .skip(1)
        .find_map(|one| agent(one.pid, programs));
    // A process that has left its agent's still has the environment.
    let marked = || mark(&proc::environment(process));
    found.or_else(|| Some(format!("an agent ({} is set)", marked()?)))
}

/// Returns a running process of one of these agents' programs that has this home
/// directory, for people; `None` if none is seen.
pub fn running(programs: &[&str], home: &Path) -> Option<String> {
    let home = format!("HOME={}", home.to_str()?);
    let is_own = |pid: u32| {
        let environment = proc::environment(pid);
        let mut all = environment.split(|byte| *byte == 0);
        all.any(|variable| variable == home.as_bytes())
    };
    let all = proc::all().into_iter().map(|one| one.process.pid);
    all.filter_map(|pid| Some((pid, agent(pid, programs)?)))
        .find_map(|(pid, name)| is_own(pid).then_some(name))
}

/// Returns a process's program and number, for people.
pub(crate) fn called(pid: u32) -> String {
    let line = proc::command_line(pid);
    format!("{} ({pid})", program(&line).unwrap_or("a process"))
}

/// Returns an agent's process, for people; `None` if the process runs another
/// program.
fn agent(pid: u32, programs: &[&str]) -> Option<String> {
    let line = proc::command_line(pid);
    let program = program(&line)?;
    let is_agents = programs.contains(&program) && !EDITORS.contains(&program);
    is_agents.then(|| format!("{program} ({pid})"))
}

/// Returns the name of the program that a command line runs.
fn program(line: &[String]) -> Option<&str> {
    let first = name(line.first()?)?;
    if !INTERPRETERS.contains(&first) {
        return Some(first);
    }
    let mut words = line.iter().skip(1);
    let is_code = |word: &&String| ["-c", "-e", "-p", "-m", "eval"].contains(&word.as_str());
    let script = words.find(|word| is_code(word) || !word.starts_with('-'));
    let script = script.filter(|word| !is_code(word));
    Some(script.and_then(|word| name(word)).unwrap_or(first))
}

/// Returns the name of a program without its directory and a script's ending.
fn name(word: &str) -> Option<&str> {
    // Some agents write a title over their command line.
    let word = word.split(' ').next()?;
    let name = Path::new(word).file_name()?.to_str()?;
    let name = name.strip_prefix('-').unwrap_or(name);
    let endings = [".js", ".mjs", ".cjs", ".py", ".exe"];
    Some(
        endings
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name),
    )
}

/// Returns whether a process is the shell in which an agent runs its hook.
fn runs_hook(pid: u32) -> bool {
    let line = proc::command_line(pid);
    let is_shell = line.first().and_then(|word| name(word));
    let is_hook = |word: &String| word.contains("touchmark") && word.contains("hook");
    is_shell.is_some_and(|shell| SHELLS.contains(&shell))
        && line.get(1).is_some_and(|option| option.starts_with('-'))
        && line.iter().skip(2).any(is_hook)
}

/// Returns whether an environment sets a variable to something else than nothing
/// or 0.
fn says(environment: &[u8], variable: &str) -> bool {
    let mut all = environment.split(|byte| *byte == 0);
    all.any(|one| {
        let value = one.strip_prefix(variable.as_bytes());
        let value = value.and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| !value.is_empty() && value != b"0")
    })
}

/// Returns the variable by which an environment is one of an agent's commands.
fn mark(environment: &[u8]) -> Option<&'static str> {
    MARKS.into_iter().find(|mark| says(environment, mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_a_command_line() {
        let of = |line: &str| {
            let line: Vec<String> = line.split('|').map(str::to_owned).collect();
            program(&line).map(str::to_owned)
        };
        for (line, expected) in [
            ("claude|-p|x", "claude"),
            ("/usr/bin/node|--no-warnings|/usr/bin/gemini|-y", "gemini"),
            ("node|/x/lib/opencode.js", "opencode"),
            ("gemini --yolo", "gemini"),
            ("/bin/sh|/home/me/claude", "claude"),
            ("python3|-c|import os", "python3"),
            ("node|-e|x|claude", "node"),
            ("-bash", "bash"),
            ("vim|claude", "vim"),
        ] {
            assert_eq!(of(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_variable_says_something_or_not() {
        let environment = b"A=1\0TOUCHMARK_BYPASS=0\0CLAUDECODE=1\0B=\0";
        assert!(says(environment, "A"));
        assert!(!says(environment, "B"));
        assert!(!says(environment, BYPASS_VARIABLE));
        assert!(!says(environment, "TOUCHMARK"));
        assert_eq!(mark(environment), Some("CLAUDECODE"));
        assert_eq!(mark(b"A=1"), None);
    }
}
