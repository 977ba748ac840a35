//! What `--help` and the manual pages say beyond the options: the commands by
//! what one wants to do, and examples of each.

use std::fmt::Write as _;

use clap::Command;

use crate::style::{self, paint};

/// The commands, as `touchmark help` lists them.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    (
        "Connect agents",
        &["setup", "doctor", "run", "hook", "mcp", "uninstall"],
    ),
    (
        "See who changed what",
        &[
            "ui",
            "watch",
            "log",
            "diff",
            "blame",
            "attest",
            "show",
            "history",
            "checkpoints",
            "sessions",
            "files",
            "modified",
            "worktrees",
        ],
    ),
    (
        "Get something back",
        &[
            "undo",
            "redo",
            "rewind",
            "review",
            "claim",
            "restore",
            "recovered",
        ],
    ),
    (
        "The daemon",
        &[
            "status", "fleet", "start", "stop", "restart", "service", "logs", "audit", "daemon",
            "socket",
        ],
    ),
    ("What is stored", &["stats", "checkpoint", "forget"]),
    (
        "Learn, and use in scripts",
        &["demo", "call", "completions", "man"],
    ),
];

/// For each command what one types, behind `touchmark`, and what that does.
pub(crate) const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "attest",
        &[
            ("attest", "who wrote the lines of the newest commit"),
            (
                "attest main..topic",
                "who wrote the lines of each commit of a branch",
            ),
            (
                "attest --write",
                "also write it as a git note, for other tools",
            ),
        ],
    ),
    (
        "audit",
        &[("audit", "compare all tracked files with the disk")],
    ),
    (
        "blame",
        &[
            ("blame src/a.rs", "who wrote each line"),
            ("blame src/a.rs -L 10,20", "who wrote lines 10 to 20"),
            (
                "blame src/a.rs --at 2h",
                "who had written each line two hours ago",
            ),
        ],
    ),
    (
        "call",
        &[
            ("call ping", "ask whether the daemon answers"),
            (
                r#"call file/status '{"session":"claude-1"}'"#,
                "the states of a session's copies",
            ),
        ],
    ),
    (
        "claim",
        &[
            ("claim a.txt:10-12 --by you", "these lines are yours"),
            (
                "claim --command c5 --by claude-1",
                "what changed while a command ran is the agent's",
            ),
        ],
    ),
    (
        "checkpoint",
        &[
            (
                "checkpoint create --session claude-1 before-lunch",
                "create a checkpoint",
            ),
            (
                "checkpoint detect --session claude-1 before-lunch",
                "which files were edited since",
            ),
        ],
    ),
    (
        "checkpoints",
        &[
            ("checkpoints", "what each session was asked, and changed"),
            ("checkpoints claude-1", "only one session"),
        ],
    ),
    (
        "completions",
        &[("completions bash", "the script that bash reads")],
    ),
    (
        "daemon",
        &[(
            "daemon",
            "run it in the foreground, as a service manager does",
        )],
    ),
    (
        "demo",
        &[("demo", "a tour of a minute, in a temporary directory")],
    ),
    (
        "diff",
        &[
            ("diff", "what changed since the last prompt"),
            (
                "diff --from 10m src",
                "what changed in ten minutes, below src",
            ),
            ("diff --by claude-1", "what one session changed"),
            (
                "diff --from seen:claude-1",
                "what changed since a session last saw it",
            ),
        ],
    ),
    (
        "doctor",
        &[("doctor", "which agents are connected, and what is wrong")],
    ),
    (
        "files",
        &[
            (
                "files --stale",
                "which copies are out of date, of all sessions",
            ),
            ("files --session claude-1", "what one session has read"),
        ],
    ),
    (
        "fleet",
        &[(
            "fleet status",
            "every workspace: its daemon, what that uses and what it waits for",
        )],
    ),
    (
        "forget",
        &[
            (
                "forget --session claude-1",
                "what one session has read and stored",
            ),
            ("forget --contents", "the stored contents of all files"),
            ("forget --vanished", "workspaces that no longer exist"),
        ],
    ),
    (
        "history",
        &[("history src/a.rs", "every version, with its evidence")],
    ),
    (
        "hook",
        &[
            ("hook install claude", "the hooks of one agent alone"),
            ("hook uninstall claude", "remove them again"),
        ],
    ),
    (
        "log",
        &[
            ("log", "what was done, and who changed which files"),
            ("log --files", "also each file of a command or an undo"),
            ("log --since 2h --by me", "your changes of two hours"),
            ("log -p src/a.rs", "one file's changes, as patches"),
        ],
    ),
    (
        "logs",
        &[("logs --follow", "what the daemon logs from now on")],
    ),
    (
        "man",
        &[("man --dir man1", "write all manual pages into man1")],
    ),
    (
        "mcp",
        &[(
            "mcp --session fix-42",
            "serve an MCP client on standard input",
        )],
    ),
    (
        "modified",
        &[(
            "modified --session claude-1",
            "what changed that a session has not seen",
        )],
    ),
    (
        "recovered",
        &[
            ("recovered list", "contents that lost their file name"),
            (
                "recovered restore 3",
                "restore number 3 under its file name",
            ),
        ],
    ),
    (
        "redo",
        &[
            ("redo", "reverse the newest undo"),
            ("redo u2", "reverse the undo u2"),
        ],
    ),
    ("restart", &[("restart", "after an update of touchmark")]),
    (
        "restore",
        &[
            ("restore src/a.rs@17", "the version that `log` calls 17"),
            (
                "restore src/a.rs --at 10m --dry-run",
                "show what that would change",
            ),
        ],
    ),
    (
        "review",
        &[
            ("review", "go through what agents changed, hunk by hunk"),
            ("review --list", "only list it"),
            (
                "review --keep-all claude-1",
                "keep all that one session did",
            ),
            (
                "review --command c5 --undo-all",
                "undo what one command did",
            ),
        ],
    ),
    (
        "rewind",
        &[
            (
                "rewind k2 --dry-run",
                "the lines that agents changed since a prompt",
            ),
            ("rewind k2", "undo them; your lines stay"),
            ("rewind k2 --session claude-1", "only those of one session"),
        ],
    ),
    (
        "run",
        &[
            (
                "run --session fix-42 -- make fmt",
                "what it changes is the session's",
            ),
            (
                "run --formatter -- prettier -w .",
                "what it changes is a formatter's",
            ),
        ],
    ),
    (
        "service",
        &[
            ("service install", "have systemd start and watch the daemon"),
            ("service status", "show whether it listens and runs"),
        ],
    ),
    (
        "sessions",
        &[("sessions", "who has worked here, and on how much")],
    ),
    (
        "setup",
        &[
            ("setup", "connect the agents on this machine; asks first"),
            ("setup --dry-run", "only show what would be written"),
            ("setup --remove", "remove it again"),
        ],
    ),
    (
        "show",
        &[
            ("show src/a.rs@10m", "as it was ten minutes ago"),
            ("show src/a.rs@seen:claude-1", "as a session saw it last"),
        ],
    ),
    ("socket", &[("socket", "where editors and scripts connect")]),
    (
        "start",
        &[("start", "start it before the first agent connects")],
    ),
    (
        "stats",
        &[
            ("stats", "what was refused, repeated, saved"),
            ("stats --survival", "how many lines of agents are left"),
        ],
    ),
    (
        "status",
        &[
            ("status", "one screen"),
            ("status --all", "all your workspaces"),
        ],
    ),
    (
        "stop",
        &[
            ("stop", "end this workspace's daemon"),
            ("stop --all", "end the daemons of all your workspaces"),
        ],
    ),
    (
        "ui",
        &[
            ("ui", "open the page in the browser"),
            ("ui --no-open", "print its address, as for a tunnel"),
            (
                "ui --port 4711 --linger 3600",
                "at one port, for an hour after it is closed",
            ),
        ],
    ),
    (
        "undo",
        &[
            ("undo claude-1", "all that a session did; asks first"),
            (
                "undo claude-1 --prompt last",
                "what it did since its last prompt; asks first",
            ),
            (
                "undo --last --dry-run",
                "show what the newest change's undo does",
            ),
            ("undo --command c5", "what one shell command did"),
            ("undo src/a.rs@17", "one version, as `log` names it"),
            (
                "undo claude-1 -- src",
                "what a session did below src; asks first",
            ),
            (
                "undo claude-1 --check 'cargo test'",
                "only if the tests pass without it",
            ),
        ],
    ),
    (
        "uninstall",
        &[
            ("uninstall --dry-run", "list what would be removed"),
            (
                "uninstall --state",
                "also what is stored for every workspace",
            ),
        ],
    ),
    (
        "watch",
        &[
            (
                "watch",
                "the changes of the last ten minutes, then each new one",
            ),
            ("watch --session claude-1", "what concerns one session"),
            ("watch --since 14:30", "begin with what changed since then"),
        ],
    ),
    (
        "worktrees",
        &[
            ("worktrees", "where other worktrees changed the same lines"),
            ("worktrees --json", "the same, for scripts"),
        ],
    ),
];

/// Returns the command line's definition with the groups and the examples.
pub(crate) fn with_examples(mut command: Command) -> Command {
    let groups = groups(&command);
    for (name, examples) in EXAMPLES {
        command = command.mut_subcommand(name, |command| {
            let text = shown(examples);
            let more = command.get_after_help().map(ToString::to_string);
            command.after_help(more.map_or(text.clone(), |more| format!("{more}\n\n{text}")))
        });
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n{}\n{{options}}{{after-help}}",
        heading("Options:")
    ))
}

fn heading(text: &str) -> String {
    paint(style::BOLD.underline(), text)
}

/// Returns the list of commands in their groups.
fn groups(command: &Command) -> String {
    let about = |name: &str| {
        let command = command.find_subcommand(name);
        let about = command.and_then(Command::get_about);
        about.map(ToString::to_string).unwrap_or_default()
    };
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "\n{}", heading(&format!("{title}:")));
        for name in *names {
            let padding = " ".repeat(13_usize.saturating_sub(name.len()));
            let _ = writeln!(
                text,
                "  {}{padding}{}",
                paint(style::BOLD, name),
                about(name)
            );
        }
    }
    text
}

/// Returns the lines of some examples.
fn shown(examples: &[(&str, &str)]) -> String {
    let mut text = heading("Examples:");
    for (line, what) in examples {
        let _ = write!(text, "\n  touchmark {line}\n      {what}");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::{Arguments, definition};

    fn names() -> BTreeSet<String> {
        let command = Arguments::command();
        let names = command.get_subcommands().map(|one| one.get_name().into());
        names.collect()
    }

    #[test]
    fn every_command_is_in_one_group_and_has_examples() {
        let grouped: Vec<String> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().map(|name| (*name).to_owned()))
            .collect();
        assert_eq!(grouped.len(), names().len());
        assert_eq!(grouped.into_iter().collect::<BTreeSet<_>>(), names());
        let shown = EXAMPLES.iter().map(|(name, _)| (*name).to_owned());
        assert_eq!(shown.collect::<BTreeSet<_>>(), names());
    }

    /// A line as a shell splits it: at spaces, but not between single quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec!["touchmark".to_owned()];
        for (number, part) in line.split('\'').enumerate() {
            match number % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    #[test]
    fn every_example_is_understood() {
        for (name, examples) in EXAMPLES {
            for (line, _) in *examples {
                assert_eq!(line.split(' ').next(), Some(*name), "{line}");
                if let Err(error) = definition().try_get_matches_from(words(line)) {
                    panic!("{line}: {error}");
                }
            }
        }
    }

    #[test]
    fn the_list_of_commands_fits_a_terminal() {
        let listed = groups(&Arguments::command());
        for line in anstream::adapter::strip_str(&listed).to_string().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
