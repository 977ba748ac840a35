//! Asks the user at the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use crate::output::{Failure, Outcome};

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
    write!(anstream::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes" | "Yes"))
}
