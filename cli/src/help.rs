//! What `--help` and the manual pages say beyond the options: the commands by
//! purpose, and examples of each.

use std::fmt::Write as _;

use clap::Command;

use crate::style::{self, paint};

/// The groups of commands: the title, and the first command. A group ends where
/// the next one begins.
pub(crate) const GROUPS: &[(&str, &str)] = &[
    ("Connect agents", "setup"),
    ("See who changed what", "ui"),
    ("Get something back", "undo"),
    ("The daemon", "status"),
    ("What is stored", "stats"),
    ("Learn, and use in scripts", "demo"),
];

/// The examples in the order of the commands: what the user types after
/// `touchmark`, at least two blanks, and the effect.
const EXAMPLES: &str = include_str!("../parts/examples.txt");

/// Returns the examples of a command: what the user types, and the effect.
pub(crate) fn examples(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = EXAMPLES.lines().filter_map(|line| line.split_once("  "));
    let all = all.map(|(typed, what)| (typed, what.trim_start()));
    all.filter(move |(typed, _)| typed.split(' ').next() == Some(name))
}

/// Returns the command line's definition with the groups and the examples.
pub(crate) fn with_examples(mut command: Command) -> Command {
    let groups = groups(&command);
    command = command.mut_subcommands(|command| {
        let more = command.get_after_help().map(|more| format!("{more}\n\n"));
        let examples = shown(command.get_name());
        command.after_help(more.unwrap_or_default() + &examples)
    });
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n{}\n{{options}}{{after-help}}",
        heading("Options:")
    ))
}

fn heading(text: &str) -> String {
    paint(style::BOLD.underline(), text)
}

/// Returns the commands in their groups, each with its title.
pub(crate) fn grouped(command: &Command) -> Vec<(&'static str, Vec<&Command>)> {
    let mut grouped: Vec<(&str, Vec<&Command>)> = Vec::new();
    for one in command.get_subcommands() {
        let begins = GROUPS.iter().find(|(_, first)| *first == one.get_name());
        grouped.extend(begins.map(|(title, _)| (*title, Vec::new())));
        if let Some((_, group)) = grouped.last_mut() {
            group.push(one);
        }
    }
    grouped
}

/// Returns the list of commands in their groups.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (title, commands) in grouped(command) {
        let _ = writeln!(text, "\n{}", heading(&format!("{title}:")));
        for command in commands {
            let name = command.get_name();
            let padding = " ".repeat(13_usize.saturating_sub(name.len()));
            let about = command.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let _ = writeln!(text, "  {}{padding}{about}", paint(style::BOLD, name));
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
    fn every_command_is_in_a_group_and_has_examples() {
        let command = definition();
        let groups = grouped(&command);
        assert_eq!(groups.len(), GROUPS.len());
        assert!(groups.iter().all(|(_, group)| group.len() > 2));
        assert_eq!(groups[0].1[0].get_name(), GROUPS[0].1);
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

    fn fits(command: &Command) {
        let mut shown = command.clone().term_width(80);
        for help in [shown.render_help(), shown.render_long_help()] {
            for line in help.to_string().lines() {
                let name = command.get_name();
                assert!(crate::text::width(line) <= 80, "{name}: {line}");
            }
        }
        command.get_subcommands().for_each(fits);
    }

    #[test]
    fn help_fits_a_terminal() {
        let mut command = definition();
        command.build();
        fits(&command);
    }

    #[test]
    fn the_list_of_commands_fits_a_terminal() {
        let listed = groups(&Arguments::command());
        for line in anstream::adapter::strip_str(&listed).to_string().lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
