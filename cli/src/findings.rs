//! Findings of `doctor` and `setup`, as text and as JSON.

use anstyle::Style;
use serde_json::{Value, json};

use crate::context::Context;
use crate::daemon::doctor::{Finding, Level};
use crate::output::{self, Failure, Outcome};
use crate::style::{self, paint};
use crate::system::terminal::columns;
use crate::text::{MAX_NAME, escaped, wrapped};

/// The indentation of a finding's lines, which is as wide as its mark.
const INDENT: &str = "      ";

/// Prints findings, in lines that fit the terminal.
pub(crate) fn print(context: &Context, findings: &[Finding]) -> Outcome {
    let width = columns().map_or(usize::MAX, |columns| columns.max(40));
    for finding in findings {
        let (mark, how): (&str, Style) = match finding.level {
            Level::Good if context.global.quiet => continue,
            Level::Good => ("ok   ", style::GOOD),
            Level::Note => ("note ", style::BOLD),
            Level::Wrong => ("wrong", style::WARN),
        };
        let says = escaped(&finding.says, 2 * MAX_NAME);
        let says = wrapped(&format!("{INDENT}{}: {says}", finding.check), width, INDENT);
        output::line(&format!("{} {}", paint(how, mark), says[0].trim_start()))?;
        output::lines(&says[1..])?;
        if !finding.hint.is_empty() {
            let hint = escaped(&finding.hint, 2 * MAX_NAME);
            output::lines(&wrapped(&format!("{INDENT}{hint}"), width, INDENT))?;
        }
    }
    Ok(())
}

/// Returns findings as JSON values.
pub(crate) fn json(findings: &[Finding]) -> Vec<Value> {
    let all = findings.iter();
    all.map(|finding| {
        json!({
            "check": finding.check,
            "level": finding.level.as_str(),
            "says": finding.says,
            "hint": finding.hint,
        })
    })
    .collect()
}

/// Returns the number of findings that say that something is wrong.
pub(crate) fn wrong(findings: &[Finding]) -> usize {
    let wrong = findings.iter().filter(|one| one.level == Level::Wrong);
    wrong.count()
}

/// Fails if something is wrong.
///
/// # Errors
/// The number of things that are wrong.
pub(crate) fn verdict(findings: &[Finding]) -> Outcome {
    match wrong(findings) {
        0 => Ok(()),
        1 => Err(Failure::No("1 thing is wrong".into())),
        wrong => Err(Failure::No(format!("{wrong} things are wrong"))),
    }
}
