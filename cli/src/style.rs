//! The colours in use. Where the output is not a terminal, or `NO_COLOR` is
//! set, the stream removes them.

use anstyle::{AnsiColor, Style};

/// For headings and important names.
pub(crate) const BOLD: Style = Style::new().bold();
/// For less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// For the user.
pub(crate) const USER: Style = AnsiColor::Yellow.on_default().bold();
/// For an agent's session.
pub(crate) const AGENT: Style = AnsiColor::Cyan.on_default();
/// For an unknown author.
pub(crate) const UNKNOWN: Style = AnsiColor::Magenta.on_default();
/// For good results and added lines.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For bad results and removed lines.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// For warnings.
pub(crate) const WARN: Style = AnsiColor::Red.on_default().bold();

/// Returns the text in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{style}{text}{style:#}")
    }
}
