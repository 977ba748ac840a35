//! Writes `docs/performance.md`, its drawings, and the rows that the README
//! quotes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::goal::{self, Goal};
use crate::part::Part;
use crate::table;

/// The rows that the README quotes.
const QUOTED: [&str; 3] = [
    "file/status with fence",
    "write 1 KiB, then a synced query shows it",
    "one hook process",
];

const README_BEGIN: &str = "<!-- measured: written by the bench -->";
const README_END: &str = "<!-- end of measured -->";

/// The notes on goals that are not met: what prevents them.
const NOTES: &str = include_str!("../notes.md");

/// The results of one run.
#[derive(Debug)]
pub(crate) struct Report {
    /// The machine and the peers, one line each.
    pub(crate) facts: Vec<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) quick: bool,
}

impl Report {
    fn goals(&self) -> impl Iterator<Item = &Goal> {
        self.parts.iter().flat_map(|part| &part.goals)
    }

    fn goals_lines(&self) -> Vec<Vec<String>> {
        let heading = goal::HEADINGS.map(String::from).to_vec();
        let goals = self.goals().map(|goal| goal.cells().to_vec());
        std::iter::once(heading).chain(goals).collect()
    }

    fn met(&self) -> String {
        let met = self.goals().filter(|goal| goal.is_met()).count();
        format!("{met} of {} goals are met.", self.goals().count())
    }

    /// Returns the report as text for a terminal.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.facts.join("\n"));
        for part in &self.parts {
            let _ = write!(text, "\n{}\n{}", part.title, table::text(&part.rows));
        }
        let goals = table::aligned(&self.goals_lines());
        let _ = write!(text, "\nGoals\n{goals}\n{}\n", self.met());
        text
    }

    /// Writes the page, its drawings and the README's rows.
    pub(crate) fn write(&self) -> Result<()> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let drawings = top.join("docs/performance");
        fs::create_dir_all(&drawings)?;
        for plot in self.parts.iter().flat_map(|part| &part.plots) {
            let file = drawings.join(format!("{}.svg", plot.name));
            fs::write(file, plot.svg())?;
        }
        fs::write(top.join("docs/performance.md"), self.markdown())?;
        self.quote(&top.join("README.md"))
    }

    fn markdown(&self) -> String {
        let flag = if self.quick { " --quick" } else { "" };
        let mut text = format!(
            "# Performance\n\nWritten by `cargo run --profile dist -p touchmark-bench --{flag} \
             --write`; run it to measure your machine. {}\n\n\
             Compare the multiples, not the times. All numbers were measured in one run, in \
             turns: touchmark, its floor, and the other tools that are installed. The floor is \
             the time that the machine needs for the least work that would do. The goals are the \
             project's own.\n\n",
            if self.quick {
                "This was a quick run, with smaller sizes and fewer rounds, so its numbers are \
                 less reliable."
            } else {
                "It takes ten minutes on a machine that does nothing else."
            }
        );
        for fact in &self.facts {
            let _ = writeln!(text, "- {fact}");
        }
        let goals = table::marked(&self.goals_lines());
        let _ = write!(text, "\n## Goals\n\n{goals}\n{}\n\n", self.met());
        self.tell_missed(&mut text);
        self.tell_what_to_take(&mut text);
        for part in &self.parts {
            let _ = write!(
                text,
                "\n## {}\n\n{}\n\n{}",
                part.title,
                part.about,
                table::markdown(&part.rows)
            );
            for plot in &part.plots {
                let _ = write!(text, "\n![{}](performance/{}.svg)\n", plot.title, plot.name);
            }
        }
        text
    }

    fn tell_missed(&self, text: &mut String) {
        for goal in self.goals().filter(|goal| !goal.is_met()) {
            let note = note(NOTES, goal.what()).unwrap_or("Why is not known yet.");
            let _ = write!(text, "**{}**, {}. {note}\n\n", goal.what(), goal.verdict());
        }
    }

    fn tell_what_to_take(&self, text: &mut String) {
        text.push_str("## What to take from it\n\n");
        for (said, goals) in TO_TAKE {
            let mut of = self.goals().filter(|goal| goals.contains(&goal.what()));
            if of.all(Goal::is_met) {
                let _ = writeln!(text, "- {said}");
            }
        }
    }

    /// Replaces the rows between the README's markers.
    fn quote(&self, readme: &Path) -> Result<()> {
        let document = fs::read_to_string(readme)?;
        let text = put_between(&document, &self.quoted())
            .with_context(|| format!("no place for rows in {}", readme.display()))?;
        Ok(fs::write(readme, text)?)
    }

    fn quoted(&self) -> String {
        let mut lines = Vec::new();
        for (n, line) in self.goals_lines().into_iter().enumerate() {
            let of = line
                .first()
                .is_some_and(|what| QUOTED.contains(&what.as_str()));
            if n == 0 || of {
                lines.push(line.into_iter().take(3).collect());
            }
        }
        table::marked(&lines)
    }
}

/// Conclusions for the reader, each with the names of the goals that must be
/// met for it to be true.
const TO_TAKE: [(&str, &[&str]); 5] = [
    (
        "**A current answer is cheap enough to request before every edit.** It costs a few round \
         trips over a socket. There is no reason to cache it, or to query without a fence.",
        &["file/status with fence"],
    ),
    (
        "**A current answer does not cost more in a large workspace.**",
        &["one status as tracked files grow"],
    ),
    (
        "**An idle daemon costs nothing.** Reads by other programs make no events. Untracked \
         files are not looked at, unless a tracked file is in the same directory. Without \
         requests, the daemon sleeps.",
        &[
            "idle, 10,000 tracked",
            "churn of 60,000 untracked files",
            "others read 30,000 tracked files",
        ],
    ),
    (
        "**The cost is at the write.** Every change of a tracked file is read and hashed, once. \
         Watchers that report only names need not do that, and cannot say whether the content has \
         changed.",
        &[],
    ),
    (
        "**After a gap**, that is a start or an overflow of the queue, everything tracked is \
         compared with the disk before an answer. That cost grows with the number of tracked \
         files.",
        &[],
    ),
];

/// Returns the note on a goal: the text below the heading that has the goal's
/// name.
fn note<'a>(notes: &'a str, what: &str) -> Option<&'a str> {
    let mut sections = notes.split("\n## ").skip(1);
    let section = sections.find_map(|section| section.strip_prefix(what)?.strip_prefix('\n'))?;
    Some(section.trim())
}

/// Returns the document with the text between the README's markers replaced.
fn put_between(document: &str, rows: &str) -> Option<String> {
    let (before, rest) = document.split_once(README_BEGIN)?;
    let (_, after) = rest.split_once(README_END)?;
    Some(format!(
        "{before}{README_BEGIN}\n\n{rows}\n{README_END}{after}"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn report() -> Report {
        let mut part = Part::new("Part", "How.");
        part.goals = vec![
            Goal::new(QUOTED[0], "18 us").at_most(5.0, "x floor", 4.0),
            Goal::new("another", "3 ms").at_most(2.0, "ms", 3.0),
        ];
        Report {
            facts: vec!["a machine".into()],
            parts: vec![part],
            quick: false,
        }
    }

    #[test]
    fn the_readme_quotes_rows_of_the_page() {
        let report = report();
        let readme = format!("a\n{README_BEGIN}\nold\n{README_END}\nb\n");
        let readme = put_between(&readme, &report.quoted()).unwrap();
        assert!(!readme.contains("old") && !readme.contains("another"));
        assert!(readme.ends_with("\nb\n"));
        let quoted = readme
            .lines()
            .find(|line| line.starts_with("| file/status"));
        let quoted = quoted.unwrap().strip_suffix(" |").unwrap();
        assert!(report.markdown().contains(quoted), "{quoted}");
    }

    #[test]
    fn a_missed_goal_has_its_note() {
        let page = report().markdown();
        assert!(page.contains("1 of 2 goals are met."), "{page}");
        assert!(
            page.contains("**another**, no: 1.50 times too much."),
            "{page}"
        );
        let notes = "Notes\n\n## one\n\nBecause.\n\n## two\n\nTwo.\n";
        assert_eq!(note(notes, "one"), Some("Because."));
        assert_eq!(note(notes, "tw"), None);
    }
}
