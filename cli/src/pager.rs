//! Output that may be longer than a terminal. It is shown in a pager, as by
//! git.

use std::io::{self, IsTerminal as _, Write};
use std::process::{Child, Command, Stdio};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};

use crate::context::Context;
use crate::output::Outcome;
use crate::progress;
use crate::system::terminal::is_terminal;
use crate::text::is_hidden;

/// The destination of long output.
pub(crate) struct Page {
    out: Box<dyn Write>,
    colours: bool,
    pager: Option<Child>,
    /// Whether the output is a terminal. Control characters in files are then
    /// replaced.
    pub(crate) is_terminal: bool,
}

impl Page {
    /// Opens the output. On a terminal this is a pager: `$TOUCHMARK_PAGER`,
    /// `$PAGER`, else `less -FRX`. Without a pager, or if its name is empty or
    /// `cat`, it is standard output.
    pub(crate) fn open(context: &Context) -> Self {
        progress::end();
        let is_terminal = is_terminal();
        let mut pager = (is_terminal && !context.global.json)
            .then(program)
            .flatten()
            .and_then(|program| {
                Command::new("sh")
                    .args(["-c", &program])
                    .env("LESS", std::env::var("LESS").unwrap_or("FRX".into()))
                    .stdin(Stdio::piped())
                    .spawn()
                    .ok()
            });
        let choice = AutoStream::choice(&io::stdout());
        let colours = !matches!(choice, ColorChoice::Never);
        let out: Box<dyn Write> = match pager.as_mut().and_then(|pager| pager.stdin.take()) {
            Some(input) => Box::new(input),
            None => Box::new(io::stdout()),
        };
        Self {
            out,
            colours,
            pager,
            is_terminal,
        }
    }

    /// Writes one line.
    pub(crate) fn line(&mut self, text: &str) -> Outcome {
        match self.colours {
            true => writeln!(self.out, "{text}")?,
            false => writeln!(self.out, "{}", strip_str(text))?,
        }
        Ok(())
    }

    /// Writes a file's bytes unchanged. On a terminal, hidden characters are
    /// replaced.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        let out = &mut self.out;
        match self.is_terminal {
            true => out.write_all(harmless(&String::from_utf8_lossy(bytes)).as_bytes())?,
            false => out.write_all(bytes)?,
        }
        Ok(())
    }
}

/// Waits until the user has left the pager.
impl Drop for Page {
    fn drop(&mut self) {
        let _output_is_closed = self.out.flush();
        self.out = Box::new(io::sink());
        if let Some(mut pager) = self.pager.take() {
            let _it_has_ended = pager.wait();
        }
    }
}

/// Returns a line of a file with hidden characters replaced, for a terminal.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c| match is_hidden(c) && !matches!(c, '\n' | '\t') {
        true => '\u{fffd}',
        false => c,
    };
    text.chars().map(shown).collect()
}

fn program() -> Option<String> {
    // Without keyboard input the user could not leave a pager.
    if !io::stdin().is_terminal() {
        return None;
    }
    let said = ["TOUCHMARK_PAGER", "PAGER"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let program = said.unwrap_or_else(|| "less -FRX".into());
    (!matches!(program.trim(), "" | "cat")).then_some(program)
}
