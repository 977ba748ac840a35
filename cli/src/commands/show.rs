//! `touchmark show PATH@V`: prints a version of a file.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::proto::files::TextEncoding;
use touchmark_client::proto::history::FileContent;

use crate::complete;
use crate::context::Context;
use crate::hunks::decoded;
use crate::output::Outcome;
use crate::pager::Page;
use crate::versions::{VersionName, file_and_version, version};

/// Print a version of a file.
#[derive(Debug, Args)]
#[command(after_help = crate::versions::NAMES)]
pub(crate) struct Options {
    /// The file and the version [default: the current content]
    #[arg(value_name = "PATH@V", add = ArgValueCompleter::new(complete::file_and_version))]
    file: PathBuf,
    /// The version, if `@` cannot express it
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    at: Option<VersionName>,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let connection = context.open()?;
    let (path, at) = file_and_version(&connection, &options.file, options.at.as_ref())?;
    let Some(content) = connection.answer(FileContent { path, at })? else {
        return Ok(());
    };
    let bytes = match content.encoding {
        TextEncoding::Utf8 => content.text.into_bytes(),
        TextEncoding::Base64 => decoded(&content.text).unwrap_or_default(),
    };
    Page::open(context).bytes(&bytes)
}
