//! touchmark's table in Codex's configuration: `[mcp_servers.touchmark]`. Only
//! the text of the table is edited, and every other byte stays unchanged.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::settings::agent::NAME;
use crate::settings::document::{Style, Unreadable};
use crate::settings::made::Made;

/// The table's name in a record.
pub(in crate::settings) const PLACE: &str = "mcp_servers/touchmark";

const SERVERS: &str = "mcp_servers";

/// The member that lists the variables to pass on.
pub(in crate::settings) const VARIABLES: &str = "env_vars";

/// Returns the table; `None` if there is none.
pub(in crate::settings) fn entry(text: &str) -> Result<Option<Value>, Unreadable> {
    parsed(text)?;
    let all: toml::Table = toml::from_str(text).map_err(|error| unreadable(text, &error))?;
    let entry = all.get(SERVERS).and_then(|servers| servers.get(NAME));
    Ok(entry.map(|entry| serde_json::to_value(entry).unwrap_or_default()))
}

/// Adds the table at the end of the text, where a separate table is always
/// allowed.
pub(in crate::settings) fn put(
    text: &str,
    program: &str,
    variables: &[&str],
    made: &mut Made,
) -> Result<String, Unreadable> {
    let newline = Style::newline_of(text);
    let mut put = String::new();
    if !text.is_empty() {
        put.push_str(if text.ends_with('\n') { "" } else { newline });
        put.push_str(newline);
    }
    let program = toml::Value::from(program);
    let mut lines = vec![
        format!("[{SERVERS}.{NAME}]"),
        format!("command = {program}"),
        r#"args = ["mcp"]"#.to_owned(),
    ];
    if !variables.is_empty() {
        let variables = toml::Value::from(variables.to_vec());
        lines.push(format!("{VARIABLES} = {variables}"));
    }
    for line in &lines {
        put.push_str(line);
        put.push_str(newline);
    }
    let with = format!("{text}{put}");
    made.put = Some(put);
    match entry(&with) {
        Ok(Some(_)) => Ok(with),
        // `mcp_servers = { ... }` cannot be extended with tables.
        _ => Err(Unreadable {
            line: line_of(text, text.find(SERVERS).unwrap_or_default()),
            reason: format!("{SERVERS:?} is an inline table: add touchmark to it by hand"),
        }),
    }
}

/// Removes the table, with what was added to it.
pub(in crate::settings) fn take(text: &str, made: &Made) -> Result<String, Unreadable> {
    let mut text = text.to_owned();
    if let Some(put) = &made.put
        && text.matches(put.as_str()).count() == 1
        && let Some(at) = text.find(put.as_str())
    {
        text = cut(&text, at..at + put.len());
    }
    for lines in lines_of(&text)?.into_iter().rev() {
        text = cut(&text, lines);
    }
    match entry(&text)? {
        None => Ok(text),
        Some(_) => Err(Unreadable {
            line: line_of(&text, text.find(SERVERS).unwrap_or_default()),
            reason: format!("{SERVERS}.{NAME} is not a separate table: remove it by hand"),
        }),
    }
}

fn cut(text: &str, lines: Range<usize>) -> String {
    let (before, after) = (&text[..lines.start], &text[lines.end..]);
    // If the text before has no line end, but other text follows, a line end is
    // inserted.
    let joined = !before.is_empty() && !before.ends_with('\n') && !after.is_empty();
    let between = if joined { Style::newline_of(text) } else { "" };
    format!("{before}{between}{after}")
}

/// Returns the lines of the table and of the tables below it, in order. Each
/// range is from the header to the last value.
fn lines_of(text: &str) -> Result<Vec<Range<usize>>, Unreadable> {
    let all = parsed(text)?;
    let servers = all.get_ref().get(SERVERS).map(Spanned::get_ref);
    let table = match servers {
        Some(DeValue::Table(servers)) => servers.get(NAME),
        _ => None,
    };
    let mut found = Vec::new();
    if let Some(table) = table {
        below(text, table, &mut found);
    }
    found.sort_by_key(|lines| lines.start);
    Ok(found)
}

/// Adds the lines of a table with a header, and of those in it, to `found`. For
/// any other value, returns where its text ends.
fn below(text: &str, value: &Spanned<DeValue<'_>>, found: &mut Vec<Range<usize>>) -> usize {
    let span = value.span();
    let is_header = |at: usize| text[at..].starts_with('[');
    let DeValue::Table(table) = value.get_ref() else {
        return span.end;
    };
    let own = table.values().map(|value| below(text, value, found));
    let end = own.fold(span.end, usize::max);
    if !is_header(span.start) {
        // An inline table, or a table that is only named in the headers of its
        // members.
        return if text[span.start..].starts_with('{') {
            span.end
        } else {
            0
        };
    }
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    // Include the empty line before it.
    let blank = ["\r\n", "\n"].iter().find_map(|end| {
        let rest = text[..start].strip_suffix(end)?;
        rest.ends_with('\n').then_some(rest.len())
    });
    found.push(blank.unwrap_or(start)..end);
    0
}

fn parsed(text: &str) -> Result<Spanned<DeTable<'_>>, Unreadable> {
    DeTable::parse(text).map_err(|error| unreadable(text, &error))
}

fn unreadable(text: &str, error: &toml::de::Error) -> Unreadable {
    Unreadable {
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        reason: error.message().to_owned(),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()
        .iter()
        .take(at)
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}
