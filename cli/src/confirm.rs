//! Questions to the user at the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use crate::output::{self, Failure, Outcome};
use crate::progress;

/// What to do without a terminal, before a command writes files.
pub(crate) const WRITE: &str = "use --yes to write this, or --dry-run";

/// Asks a yes-or-no question. Any answer other than yes is no.
///
/// # Errors
/// A usage error with `instead`, if standard input is not a terminal.
pub(crate) fn agreed(question: &str, instead: &str) -> Outcome<bool> {
    let input = io::stdin();
    if !input.is_terminal() {
        return Err(Failure::Usage(format!(
            "standard input is not a terminal, so no question can be asked: {instead}"
        )));
    }
    progress::end();
    write!(anstream::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}

/// Asks for a line of text. Returns `None` at the end of the input.
pub(crate) fn text(question: &str) -> Outcome<Option<String>> {
    progress::end();
    write!(anstream::stderr(), "{question} ")?;
    let mut said = String::new();
    let is_any = io::stdin().read_line(&mut said)? > 0;
    Ok(is_any.then(|| said.trim().to_owned()))
}

/// Asks a question until the answer is one of `answers`, each with its letter
/// and its word. After any other answer `help` is printed. Returns `None` at the
/// end of the input.
pub(crate) fn choice<T: Copy>(
    question: &str,
    answers: &[(&str, &str, T)],
    help: &str,
) -> Outcome<Option<T>> {
    loop {
        progress::end();
        write!(anstream::stderr(), "{question} ")?;
        let mut said = String::new();
        if io::stdin().read_line(&mut said)? == 0 {
            return Ok(None);
        }
        let said = said.trim();
        let mut meant = answers.iter();
        match meant.find(|(letter, word, _)| said == *letter || said == *word) {
            Some((_, _, answer)) => return Ok(Some(*answer)),
            None if help.is_empty() => {}
            None => output::line(help)?,
        }
    }
}
