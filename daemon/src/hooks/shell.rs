//! `hook/shell`: a witness for the command that an agent tells its shell to run
//! (ATTR-3).

use touchmark_engine::Input;
use touchmark_proto::commands::CommandWitness;
use touchmark_proto::hooks::{HookShell, HookShellBegun};
use touchmark_proto::{Error, ErrorCode};

use super::daemon_handle::DaemonHandle;
use super::running::Commands;
use super::shell_patch::word;
use crate::system::proc;

/// The word before a command in what an agent tells its shell to run.
const EVAL: &str = "eval ";

/// Adds a witness to the window of the command that the requesting process will
/// run.
///
/// # Errors
/// `notFound` if no hook has announced such a command, or if it has a witness.
pub(crate) async fn shell(
    daemon: &DaemonHandle,
    asked: &HookShell,
) -> Result<HookShellBegun, Error> {
    let process = daemon.cx.process.and_then(proc::placed);
    // The shell of a hook does not lead a session; the process above it does.
    let leader = process.filter(|process| process.session == process.process.pid);
    let found = leader.and_then(|leader| {
        let above = proc::and_above(leader.process.pid);
        let texts = evaluated(&asked.line);
        let begins = |commands: &mut Commands| commands.begins(&leader, &above, &texts);
        daemon.memory.commands(begins)
    });
    let Some((command, time)) = found else {
        let message = "no hook has announced this command";
        return Err(Error::new(ErrorCode::NotFound, message)
            .hint("run it without a witness; its window is what the hook opens"));
    };
    daemon.cx.inside.feed(Input::CommandBegan {
        command: command.clone(),
        time,
    });
    daemon.ask(CommandWitness::new(command.clone())).await?;
    Ok(HookShellBegun { command })
}

/// Returns what a line for a shell evaluates: the word after each `eval`.
pub(super) fn evaluated(line: &str) -> Vec<String> {
    let after = line
        .match_indices(EVAL)
        .map(|(at, _)| &line[at + EVAL.len()..]);
    let words = after.filter_map(|rest| word(&mut rest.chars().peekable()));
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_evaluated_is_one_word_without_its_quotes() {
        let quoted = evaluated("eval 'it'\"'\"'s a' && eval \"b\" | eval $x");
        assert_eq!(quoted, ["it's a", "b"]);
    }
}
