//! The few colours in use. Where the output is no terminal, or `NO_COLOR` is
//! set, the stream takes them out again.

use anstyle::{AnsiColor, Style};

/// Headings and names that matter.
pub(crate) const BOLD: Style = Style::new().bold();
/// What is only there for completeness.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The user.
pub(crate) const USER: Style = AnsiColor::Yellow.on_default().bold();
/// An agent's session.
pub(crate) const AGENT: Style = AnsiColor::Cyan.on_default();
/// Nobody that touchmark could name.
pub(crate) const UNKNOWN: Style = AnsiColor::Magenta.on_default();
/// Good, and lines added.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Bad, and lines removed.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// What asks for attention.
pub(crate) const WARN: Style = AnsiColor::Red.on_default().bold();

/// The text in that style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{style}{text}{style:#}")
    }
}
