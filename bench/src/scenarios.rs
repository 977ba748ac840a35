//! `scenarios`: runs every row of tests/scenarios.md many times, and writes the
//! table of how often each answer was wrong.
//!
//! The rows are the end-to-end tests themselves. Cargo builds them for testing,
//! and they run against the daemon of this program's profile.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The number of wrong answers of the best known earlier tracker, of 30 runs
/// unless stated otherwise. One number per delay, in the order in which the row
/// lists its delays. The numbers were published with the scenarios; the tracker
/// is not run here.
const BASELINE: &[(&str, &str)] = &[
    ("S1", "0"),
    ("S2", "0, 0, 28, 29, 30"),
    ("S3", "0"),
    ("S4", "30"),
    ("S5", "30, 30, 30, 29, 0, 0"),
    ("S6", "30, 30, 30, 0"),
    ("S7", "0; of 200 slow saves like vim's 118"),
    ("S7git", "of 100: 4, then 87, then 83"),
    ("S8", "30"),
    ("S8r", "16, 1, 0, 0, 29, 30, 30"),
    ("S8m", "30"),
    ("S8d", "30, and no change is seen afterwards"),
    ("S9", "30: no answer is right within 100 ms"),
    (
        "S10",
        "reported twice when queried during it; 2 of 1,000 kept",
    ),
    (
        "S10git",
        "2 to 12 missed; 994 reported wrongly; 174 to 321 of 1,000 seen",
    ),
    ("S11", "30"),
    ("S12", "30, 30, 29, 30"),
    ("S13", "not run"),
    ("S14", "30"),
    ("S15", "30"),
    ("S16", "of 20: the fifth edit 20"),
    ("S17", "30"),
    ("S18", "30"),
    ("S20", "reported only when it stops"),
    ("S21", "2, 0, 0"),
    ("S21n", "30"),
    ("S22", "30"),
    ("S25", "of 40: 19, 12, 0 reported twice"),
    ("S27", "of 400: 111, 66, 19"),
    ("S29", "0"),
    ("S34", "30, 30, 1"),
    ("S40", "not run"),
    ("S41", "not run"),
    ("S42", "not run"),
    ("S43", "not run"),
];

const BEGIN: &str = "<!-- results -->";
const END: &str = "<!-- end of results -->";

/// The results of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    runs: u64,
    wrong: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How often each row is played.
    #[arg(long, value_name = "N", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Play one row only, such as S7, and write nothing.
    #[arg(long, value_name = "ROW")]
    only: Option<String>,
}

/// Runs the rows and prints the table. Writes it if all rows ran.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (repeat, only) = (arguments.repeat, arguments.only.as_deref());
    let rows: Vec<(&str, &str)> = BASELINE
        .iter()
        .filter(|(row, _)| only.is_none_or(|only| only == *row))
        .copied()
        .collect();
    ensure!(
        !rows.is_empty(),
        "there is no row {}",
        only.unwrap_or_default()
    );

    let (counts, passed) = play(repeat, only)?;
    let table = table(&rows, &counts)?;
    print!("{}\n\n{table}", crate::machine::line());
    if only.is_none() {
        write(&table)?;
    }
    let wrong: u64 = counts.values().map(|count| count.wrong).sum();
    ensure!(wrong == 0, "{wrong} wrong");
    ensure!(passed, "no row was wrong, and yet a test failed");
    Ok(())
}

/// Runs the tests. Returns the results of each row, and whether all tests
/// passed.
fn play(repeat: u32, only: Option<&str>) -> Result<(BTreeMap<String, Count>, bool)> {
    let binary = crate::binary()?;
    let place = tempfile::tempdir()?;
    let report = place.path().join("report");
    fs::write(&report, "")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tests = Command::new(cargo);
    tests
        .args(["test", "--package", "touchmark-tests", "--no-fail-fast"])
        .args(["--test", "all", "--"])
        // Two tests run in parallel, so that they disturb each other.
        .args(["--test-threads", "2"])
        .arg(match only {
            Some(row) => format!("::{}_", row.to_lowercase()),
            None => "scenarios_".to_owned(),
        })
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TOUCHMARK_BIN", binary)
        .env("TOUCHMARK_REPEAT", repeat.to_string())
        .env("TOUCHMARK_SCENARIO_REPORT", &report);
    let passed = tests.status().context("running the tests")?.success();
    Ok((counts(&fs::read_to_string(report)?)?, passed))
}

/// Adds up the lines of a report. A row's name is the part of its tests' names
/// before the first underscore.
fn counts(report: &str) -> Result<BTreeMap<String, Count>> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for line in report.lines() {
        let said: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let field = |name: &str| {
            said[name]
                .as_u64()
                .with_context(|| format!("no {name} in {line}"))
        };
        let test = said["test"].as_str().context("a test has a name")?;
        let row = test.split('_').next().unwrap_or(test).to_owned();
        let count = counts.entry(row).or_default();
        count.runs += field("runs")?;
        count.wrong += field("wrong")?;
    }
    Ok(counts)
}

fn table(rows: &[(&str, &str)], counts: &BTreeMap<String, Count>) -> Result<String> {
    let mut text =
        String::from("| | runs | wrong | baseline, wrong |\n| --- | ---: | ---: | --- |\n");
    for (row, baseline) in rows {
        let count = counts
            .get(&row.to_lowercase())
            .with_context(|| format!("{row} did not run"))?;
        writeln!(
            text,
            "| {row} | {} | {} | {baseline} |",
            count.runs, count.wrong
        )?;
    }
    Ok(text)
}

/// Writes the table between the document's markers.
fn write(table: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scenarios.md");
    let document = fs::read_to_string(&path)?;
    let (before, rest) = document.split_once(BEGIN).context("no place for results")?;
    let (_, after) = rest.split_once(END).context("no end of results")?;
    let machine = crate::machine::line();
    let text = format!("{before}{BEGIN}\n\n{machine}\n\n{table}\n{END}{after}");
    Ok(fs::write(path, text)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_row_is_the_sum_of_its_tests() {
        let report = "{\"test\": \"s8_a\", \"runs\": 30, \"wrong\": 0}\n\
                      {\"test\": \"s8r_b\", \"runs\": 30, \"wrong\": 1}\n\
                      {\"test\": \"s8_c\", \"runs\": 30, \"wrong\": 2}\n";
        let counts = counts(report).unwrap();
        let text = table(&[("S8", "30"), ("S8r", "16, 1")], &counts).unwrap();
        assert!(text.contains("\n| S8 | 60 | 2 | 30 |\n"), "{text}");
        assert!(text.contains("\n| S8r | 30 | 1 | 16, 1 |\n"), "{text}");
        assert!(table(&[("S9", "30")], &counts).is_err());
    }
}
