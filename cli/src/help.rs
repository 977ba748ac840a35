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

/// The examples in the order of the commands: what one types behind
/// `touchmark`, two blanks or more, and what that does.
const EXAMPLES: &str = include_str!("../parts/examples.txt");

/// Returns the examples of a command: what one types, and what that does.
pub(crate) fn examples(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = EXAMPLES.lines().filter_map(|line| line.split_once("  "));
    let all = all.map(|(typed, what)| (typed, what.trim_start()));
    all.filter(move |(typed, _)| typed.split(' ').next() == Some(name))
}

/// Returns the command line's definition with the groups and the examples.
pub(crate) fn with_examples(mut command: Command) -> Command {
    let groups = groups(&command);
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        command = command.mut_subcommand(name, |command| {
            let more = command.get_after_help().map(|more| format!("{more}\n\n"));
            command.after_help(more.unwrap_or_default() + &shown(name))
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

/// Returns the lines with a command's examples.
fn shown(name: &str) -> String {
    let mut text = heading("Examples:");
    for (line, what) in examples(name) {
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
        let shown = EXAMPLES.lines().map(|line| line.split(' ').next().unwrap());
        assert_eq!(shown.map(str::to_owned).collect::<BTreeSet<_>>(), names());
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
        for name in names() {
            for (line, _) in examples(&name) {
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
