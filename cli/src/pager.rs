//! What may be longer than a terminal: shown in a pager, as git does.

use std::io::{self, IsTerminal as _, Write};
use std::process::{Child, Command, Stdio};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};

use crate::context::{Context, is_terminal};
use crate::output::Outcome;
use crate::text::is_hidden;

/// Where long output goes.
pub(crate) struct Page {
    out: Box<dyn Write>,
    colours: bool,
    pager: Option<Child>,
    /// A person reads it, so no character of a file's is trusted.
    pub(crate) is_terminal: bool,
}

impl Page {
    /// A pager, where a person reads: `$TOUCHMARK_PAGER`, `$PAGER`, else
    /// `less -FRX`. None if that is empty or `cat`, or cannot be started.
    pub(crate) fn open(context: &Context) -> Self {
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

    /// One line.
    pub(crate) fn line(&mut self, text: &str) -> Outcome {
        match self.colours {
            true => writeln!(self.out, "{text}")?,
            false => writeln!(self.out, "{}", strip_str(text))?,
        }
        Ok(())
    }

    /// A file's bytes, as they are; on a terminal without what a person does
    /// not see.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        let out = &mut self.out;
        match self.is_terminal {
            true => out.write_all(harmless(&String::from_utf8_lossy(bytes)).as_bytes())?,
            false => out.write_all(bytes)?,
        }
        Ok(())
    }
}

/// Waits until the person has read it.
impl Drop for Page {
    fn drop(&mut self) {
        let _nobody_reads = self.out.flush();
        self.out = Box::new(io::sink());
        if let Some(mut pager) = self.pager.take() {
            let _it_has_ended = pager.wait();
        }
    }
}

/// A line of a file for a terminal.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c| match is_hidden(c) && !matches!(c, '\n' | '\t') {
        true => '\u{fffd}',
        false => c,
    };
    text.chars().map(shown).collect()
}

fn program() -> Option<String> {
    // Where keys cannot be read nobody can leave a pager.
    if !io::stdin().is_terminal() {
        return None;
    }
    let said = ["TOUCHMARK_PAGER", "PAGER"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let program = said.unwrap_or_else(|| "less -FRX".into());
    (!matches!(program.trim(), "" | "cat")).then_some(program)
}
