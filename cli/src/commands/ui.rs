//! `touchmark ui`: the page.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::output::{self, Outcome};
use crate::ui::{self, End, browser};

/// A page in the browser: who has read what, what changed, and what to keep.
///
/// It is served to you alone, on this machine, until the page is closed or
/// Ctrl-C is pressed. The address that is printed works once.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print the address, and do not open it in the browser
    #[arg(long)]
    no_open: bool,
    /// The port on 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Stop this number of seconds after the page is closed
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    linger: u32,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    // Starts the daemon, or fails with the reason. The page has connections of
    // its own.
    let workspace = context.open()?.workspace;
    let linger = Duration::from_secs(options.linger.into());
    let end = ui::serve(workspace, options.port, linger, |address| {
        if context.global.json {
            output::json(&json!({"address": address}), false)?;
        } else {
            output::line(address)?;
            context.say("Ctrl-C stops it; so does closing the page.")?;
        }
        if !options.no_open && !browser::open(address) {
            context.say("No browser was found: open the address yourself.")?;
        }
        Ok(())
    })?;
    match end {
        End::Signal => Ok(()),
        End::Closed => context.say("The page was closed."),
        End::NeverOpened => context.say("The page was not opened."),
    }
}
