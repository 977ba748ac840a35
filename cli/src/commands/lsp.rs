//! `touchmark lsp`: a language server on standard input and output.

use clap::Args;

use crate::context::Context;
use crate::lsp;
use crate::output::Outcome;

/// Serve the Language Server Protocol on standard input and output, for one
/// editor. Reports what its user does, and shows who wrote which line.
///
/// A file belongs to the workspace that contains it, so one server is enough for
/// several projects. No daemon is started unless the editor's settings say so:
/// see docs/lsp.md.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Ignored: editors add it to the command of a server
    #[arg(long, hide = true)]
    stdio: bool,
}

pub(crate) fn run(context: &Context, _: &Options) -> Outcome {
    let only = match context.global.workspace.is_some() {
        true => Some(context.workspace()?),
        false => None,
    };
    let start = (!context.global.no_start).then(|| context.start());
    lsp::serve(context.environment.clone(), only, start)
}
