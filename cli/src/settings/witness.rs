//! The file through which an agent starts its shell commands, so that they are
//! witnessed (ATTR-3), and the setting that names it.

use std::path::Path;

use super::agent::Agent;
use super::document::Unreadable;
use super::hooks::{shell_word, value};
use super::json::Json;
use super::made::Made;
use super::member::Member;
use super::server::Presence;
use crate::daemon::agent::ShellPrefix;

/// Returns the text of the file. It runs the line as the agent would: hooks by
/// `sh`, commands by the agent's shell. Without touchmark it does so, too.
pub(super) fn script(agent: Agent, prefix: &ShellPrefix, program: &str) -> String {
    let (title, id) = (agent.settings().title, prefix.agent);
    let (program, call) = (shell_word(program), agent.call(program));
    format!(
        "#!/bin/sh
# {title} starts its shell commands through this file, so that touchmark sees
# which files they write. `touchmark setup --remove` removes it.
[ \"$PPID\" = \"${id}\" ] || exec /bin/sh -c \"$1\"
shell=/bin/sh
case ${{SHELL##*/}} in bash | zsh) shell=$SHELL ;; esac
if command -v {program} > /dev/null 2>&1; then
    exec {call} shell \"$shell\" \"$1\"
fi
exec \"$shell\" -c \"$1\"
"
    )
}

/// Returns the text of the file that stands for an agent's program on the PATH. It
/// runs the next program of this name.
pub(super) fn shim(agent: Agent, name: &str, program: &str) -> String {
    let (program, call) = (shell_word(program), agent.call(program));
    format!(
        "#!/bin/sh
# {name} is started through this file, so that touchmark sees which files its
# commands write. `touchmark setup --remove` removes it.
set -f
IFS=:
for directory in $PATH; do
    real=${{directory:-.}}/{name}
    [ -x \"$real\" ] && [ ! -d \"$real\" ] || continue
    [ \"$real\" -ef \"$0\" ] && continue
    if command -v {program} > /dev/null 2>&1; then
        exec {call} run \"$real\" \"$@\"
    fi
    exec \"$real\" \"$@\"
done
echo \"{name}: the PATH has no other program of this name than $0\" >&2
exit 127
"
    )
}

/// Returns the setting that names the file.
pub(super) fn setting(prefix: &ShellPrefix, script: &Path) -> Option<Member> {
    let script = script.to_str()?;
    Some(Member {
        within: prefix.within,
        name: prefix.name,
        value: Json::Text(script.to_owned()),
    })
}

/// Returns the current state of the setting.
pub(super) fn found(
    setting: &Member,
    text: &str,
    made: Option<&Made>,
) -> Result<Presence, Unreadable> {
    Ok(match setting.found(text)? {
        None => Presence::Nothing,
        Some(_) if !made.is_some_and(|made| made.members.contains(&setting.place())) => {
            Presence::Theirs
        }
        Some(found) if found == value(&setting.value.to_string()) => Presence::Ours,
        Some(_) => Presence::Older,
    })
}
