//! `touchmark man`: the manual pages, generated from the command line's
//! definition.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::help;
use crate::output::Outcome;

/// Print the manual page, or write all of them.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let command = help::command();
    match &options.dir {
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(command, directory))
                .with_context(|| format!("write pages into {}", directory.display()))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            std::io::stdout().write_all(&page)?;
        }
    }
    Ok(())
}
