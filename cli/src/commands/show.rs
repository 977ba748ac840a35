//! `touchmark show PATH@V`: prints a version of a file.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use touchmark_client::proto::Reply;
use touchmark_client::proto::files::TextEncoding;
use touchmark_client::proto::history::FileContent;

use crate::complete;
use crate::context::Context;
use crate::hunks::decoded;
use crate::output::Outcome;
use crate::pager::Page;
use crate::versions::{Said, file_and_version, version};
use crate::wire::result_json;

/// Print a version of a file.
#[derive(Debug, Args)]
#[command(after_help = crate::versions::NAMES)]
pub(crate) struct Options {
    /// The file and the version [default: the current content]
    #[arg(value_name = "PATH@V", add = ArgValueCompleter::new(complete::file_and_version))]
    file: PathBuf,
    /// The version, if `@` cannot express it
    #[arg(long, value_name = "V", value_parser = version, add = ArgValueCompleter::new(complete::version))]
    at: Option<Said>,
}

pub(crate) fn run(context: &Context, options: Options) -> Outcome {
    let workspace = context.workspace()?;
    let client = context.connect(&workspace)?;
    let (path, at) = file_and_version(
        context,
        &workspace,
        &client,
        &options.file,
        options.at.as_ref(),
    )?;
    let content = client.call(FileContent { path, at })?;
    if context.global.json {
        return context.json(&result_json(Reply::FileContent(content), &workspace.root));
    }
    let bytes = match content.encoding {
        TextEncoding::Utf8 => content.text.into_bytes(),
        TextEncoding::Base64 => decoded(&content.text).unwrap_or_default(),
    };
    Page::open(context).bytes(&bytes)
}
