//! `touchmark man`: the manual pages, generated from the command line's
//! definition.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};

use crate::help;
use crate::output::Outcome;

/// Print the manual page, or write all of them.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, mut command: Command) -> Outcome {
    // Sub-commands get their whole names.
    command.build();
    match &options.dir {
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .map_err(anyhow::Error::from)
                .and_then(|()| {
                    for (name, page) in pages(&command)? {
                        std::fs::write(directory.join(name), page)?;
                    }
                    Ok(())
                })
                .with_context(|| format!("write pages into {}", directory.display()))?;
        }
        None => std::io::stdout().write_all(page(&command)?.as_bytes())?,
    }
    Ok(())
}

/// Returns the pages of all commands by their file names.
fn pages(command: &Command) -> anyhow::Result<Vec<(String, String)>> {
    fn add(command: &Command, pages: &mut Vec<(String, String)>) -> anyhow::Result<()> {
        let name = clap_mangen::Man::new(command.clone()).get_filename();
        pages.push((name, page(command)?));
        let below = command.get_subcommands();
        let mut below = below.filter(|one| !one.is_hide_set() && one.get_name() != "help");
        below.try_for_each(|one| add(one, pages))
    }
    let mut pages = Vec::new();
    add(command, &mut pages)?;
    Ok(pages)
}

/// Returns a page in roff.
fn page(command: &Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(with_sections(&String::from_utf8(page)?))
}

/// Gives what `--help` prints at its end sections of their own, and lists the
/// commands in the groups of `touchmark help`.
fn with_sections(page: &str) -> String {
    let (before, commands, after) = match page.split_once(".SH SUBCOMMANDS\n") {
        Some((before, rest)) if rest.contains("touchmark\\-watch(1)") => {
            let end = rest.find("\n.SH ").map_or(rest.len(), |at| at + 1);
            (before, grouped(&rest[..end]), &rest[end..])
        }
        _ => (page, String::new(), ""),
    };
    let page = format!("{before}{commands}{after}");
    let Some((before, extra)) = page.split_once(".SH EXTRA\n") else {
        return page;
    };
    let end = extra.find("\n.SH ").map_or(extra.len(), |at| at + 1);
    let (extra, after) = extra.split_at(end);
    // Their lines stay as they are.
    let extra = extra
        .replace("Versions (V):\n", ".SH VERSIONS\n.nf\n")
        .replace("Exit codes: ", ".SH EXIT STATUS\n")
        .replace("\n\nExamples:\n", "\n.fi\nExamples:\n")
        .replace("Examples:\n", ".SH EXAMPLES\n.nf\n");
    let fill = if extra.contains(".nf\n") { ".fi\n" } else { "" };
    format!("{before}{extra}{fill}{after}")
}

/// Returns the list of commands with the titles of their groups.
fn grouped(commands: &str) -> String {
    let own = commands.split(".TP\ntouchmark\\-help(1)").next();
    let list = format!(".SH COMMANDS\n{}", own.unwrap_or_default());
    help::GROUPS.iter().fold(list, |list, (title, first)| {
        let entry = format!(".TP\ntouchmark\\-{first}(1)");
        list.replace(&entry, &format!(".SS \"{title}\"\n{entry}"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashMap;

    use super::*;

    /// Returns the names of all commands, in their groups.
    fn groups() -> Vec<Vec<String>> {
        let command = crate::commands::definition();
        let groups = help::grouped(&command).into_iter();
        let names = |group: Vec<&Command>| group.iter().map(|one| one.get_name().into()).collect();
        groups.map(|(_, group)| names(group)).collect()
    }

    fn pages() -> HashMap<String, String> {
        let mut command = crate::commands::definition();
        command.build();
        super::pages(&command).unwrap().into_iter().collect()
    }

    #[test]
    fn every_page_of_a_command_has_its_examples() {
        let pages = pages();
        for name in groups().concat() {
            let page = &pages[&format!("touchmark-{name}.1")];
            let (_, shown) = page.split_once("\n.SH EXAMPLES\n.nf\n").unwrap();
            let (shown, _) = shown.split_once("\n.fi\n").unwrap();
            let shown = shown.replace('\\', "");
            for (line, _) in help::examples(&name) {
                let line = line.replace('\'', "*(Aq");
                assert!(
                    shown.contains(&format!("touchmark {line}")),
                    "{line}: {shown}"
                );
            }
            assert!(
                !page.contains(".SH EXTRA") && !page.contains('\u{1b}'),
                "{page}"
            );
        }
        assert!(pages["touchmark-log.1"].contains(".SH VERSIONS\n.nf\n  17, "));
        assert!(pages.contains_key("touchmark-checkpoint-create.1"));
    }

    #[test]
    fn the_first_page_has_all_commands_in_their_groups() {
        let page = &pages()["touchmark.1"];
        let (_, listed) = page.split_once(".SH COMMANDS\n").unwrap();
        let (listed, _) = listed.split_once("\n.SH ").unwrap();
        assert!(!listed.contains("\\-help(1)"), "{listed}");
        let shown = listed.split(".SS ").skip(1).map(|group| {
            let names = group.split("touchmark\\-").skip(1);
            names
                .map(|name| name.split("(1)").next().unwrap().to_owned())
                .collect()
        });
        assert_eq!(shown.collect::<Vec<Vec<String>>>(), groups());
        assert!(page.contains(".SH EXIT STATUS\n0 done"), "{page}");
    }
}
