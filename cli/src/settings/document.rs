//! A settings file as text: JSON, which may have comments and trailing commas.
//! Members and elements are inserted and removed in place. Every other byte
//! stays unchanged, and removing an item undoes inserting it.

use std::collections::HashSet;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult, parse_to_ast};

/// Why a file is left unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    /// The line number, from 1.
    pub(super) line: usize,
    /// What is wrong in that line.
    pub(super) reason: String,
}

/// An object or a list in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    /// The offset after the opening bracket, in bytes.
    open: usize,
    /// The offset of the closing bracket, in bytes.
    close: usize,
    /// The byte ranges of its members or elements.
    children: Vec<(usize, usize)>,
    /// The byte ranges of the members' values, or of the elements.
    values: Vec<(usize, usize)>,
    /// The members' names; empty for a list.
    names: Vec<String>,
}

impl Container {
    pub(super) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Returns the text of one of its elements, or of a member's value.
    pub(super) fn value<'a>(&self, text: &'a str, index: usize) -> Option<&'a str> {
        let (start, end) = *self.values.get(index)?;
        text.get(start..end)
    }

    /// Returns the texts of its elements, or of its members' values.
    pub(super) fn values<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        self.values.iter().map(|&(start, end)| &text[start..end])
    }

    /// Returns the text between its brackets.
    pub(super) fn inside<'a>(&self, text: &'a str) -> &'a str {
        &text[self.open..self.close]
    }

    /// Returns the text around it.
    pub(super) fn around(&self, text: &str) -> String {
        format!("{}{}", &text[..self.open - 1], &text[self.close + 1..])
    }

    /// Returns the index of a member; `None` if there is none with this name.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|found| found == name)
    }
}

/// A step from a container to one inside it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// A member that is an object.
    Object(&'a str),
    /// A member that is a list.
    List(&'a str),
    /// An element that is an object.
    Element(usize),
}

/// Returns the container at the end of the steps; `None` if a member is
/// missing, or the text has no value at all.
///
/// # Errors
/// The line where the text cannot be parsed, or where a value has another type.
pub(super) fn find(text: &str, steps: &[Step<'_>]) -> Result<Option<Container>, Unreadable> {
    let parsed = parsed(text)?;
    let Some(root) = parsed.value else {
        return Ok(None);
    };
    let mut here = &root;
    expect_object(text, here, "the settings")?;
    for step in steps {
        let next = match (step, here) {
            (Step::Object(name) | Step::List(name), Value::Object(object)) => {
                member(text, object, name)?
            }
            (Step::Element(index), Value::Array(list)) => list.elements.get(*index),
            _ => None,
        };
        let Some(next) = next else {
            return Ok(None);
        };
        match step {
            Step::Object(name) => _ = expect_object(text, next, &format!("{name:?}"))?,
            Step::List(name) => expect_list(text, next, name)?,
            Step::Element(_) => {}
        }
        here = next;
    }
    Ok(container(here))
}

/// Returns the lists in the object with this name, each with its own name. The
/// text is parsed once, however many there are.
///
/// # Errors
/// Those of [`find`].
pub(super) fn lists(text: &str, name: &str) -> Result<Vec<(String, Container)>, Unreadable> {
    let parsed = parsed(text)?;
    let Some(root) = &parsed.value else {
        return Ok(Vec::new());
    };
    let root = expect_object(text, root, "the settings")?;
    let Some(within) = member(text, root, name)? else {
        return Ok(Vec::new());
    };
    let within = expect_object(text, within, &format!("{name:?}"))?;
    let mut known = HashSet::new();
    let lists = within.properties.iter().map(|property| {
        let name = property.name.as_str();
        if !known.insert(name) {
            return Err(twice(text, property, name));
        }
        expect_list(text, &property.value, name)?;
        let list = container(&property.value);
        Ok(list.map(|list| (name.to_owned(), list)))
    });
    lists.filter_map(Result::transpose).collect()
}

fn parsed(text: &str) -> Result<ParseResult<'_>, Unreadable> {
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
        ..ParseOptions::default()
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    parsed.map_err(|error| Unreadable {
        line: error.line_display(),
        reason: error.kind().to_string(),
    })
}

fn expect_object<'a, 'b>(
    text: &str,
    value: &'b Value<'a>,
    what: &str,
) -> Result<&'b Object<'a>, Unreadable> {
    let object = value.as_object();
    object.ok_or_else(|| wrong(text, value.start(), format!("{what} is no object")))
}

fn expect_list(text: &str, value: &Value<'_>, name: &str) -> Result<(), Unreadable> {
    match value.as_array() {
        Some(_) => Ok(()),
        None => Err(wrong(text, value.start(), format!("{name:?} is no list"))),
    }
}

fn twice(text: &str, second: &ObjectProp<'_>, name: &str) -> Unreadable {
    wrong(text, second.start(), format!("{name:?} is there twice"))
}

fn member<'a, 'b>(
    text: &str,
    object: &'b Object<'a>,
    name: &str,
) -> Result<Option<&'b Value<'a>>, Unreadable> {
    let mut found = object
        .properties
        .iter()
        .filter(|property| property.name.as_str() == name);
    let first = found.next();
    // Agents use the last member of this name, and people see the first.
    if let Some(second) = found.next() {
        return Err(twice(text, second, name));
    }
    Ok(first.map(|property| &property.value))
}

fn wrong(text: &str, at: usize, reason: String) -> Unreadable {
    Unreadable {
        line: text[..at].matches('\n').count() + 1,
        reason,
    }
}

fn container(value: &Value<'_>) -> Option<Container> {
    let (children, values, names) = match value {
        Value::Object(object) => (
            object
                .properties
                .iter()
                .map(|one| (one.start(), one.end()))
                .collect(),
            object
                .properties
                .iter()
                .map(|one| (one.value.start(), one.value.end()))
                .collect(),
            object
                .properties
                .iter()
                .map(|one| one.name.as_str().to_owned())
                .collect(),
        ),
        Value::Array(list) => {
            let elements: Vec<_> = list
                .elements
                .iter()
                .map(|one| (one.start(), one.end()))
                .collect();
            (elements.clone(), elements, Vec::new())
        }
        _ => return None,
    };
    Some(Container {
        open: value.start() + 1,
        close: value.end() - 1,
        children,
        values,
        names,
    })
}

/// The formatting of a file.
#[derive(Clone, Debug)]
pub(super) struct Style {
    newline: &'static str,
    indent: String,
    /// Whether the whole object is on one line.
    one_line: bool,
}

impl Style {
    pub(super) fn of(text: &str) -> Self {
        let newline = Self::newline_of(text);
        let indented = text.lines().find_map(|line| {
            let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
            (blank > 0 && blank < line.trim_end().len()).then(|| &line[..blank])
        });
        let root = find(text, &[]).ok().flatten();
        Self {
            newline,
            indent: indented.unwrap_or("  ").to_owned(),
            one_line: root
                .is_some_and(|root| !root.is_empty() && !root.inside(text).contains('\n')),
        }
    }

    /// Returns the line end of the first line.
    pub(super) fn newline_of(text: &str) -> &'static str {
        match text.find('\n') {
            Some(at) if text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    pub(super) fn newline(&self) -> &'static str {
        self.newline
    }
}

/// Inserts an item after the last one. `depth` is the number of containers
/// around this one.
pub(super) fn insert(
    text: &str,
    container: &Container,
    item: &str,
    depth: usize,
    style: &Style,
) -> String {
    let inside = container.inside(text);
    let Some(&(start, end)) = container.children.last() else {
        let (before, after) = text.split_at(container.open);
        if style.one_line {
            return format!("{before}{item}{after}");
        }
        let around = style.indent.repeat(depth);
        let newline = style.newline;
        let tail = match inside.contains('\n') {
            true => String::new(),
            false => format!("{newline}{around}"),
        };
        return format!(
            "{before}{newline}{around}{}{item}{tail}{after}",
            style.indent
        );
    };
    let comma = comma(text, end, container.close);
    let mut at = comma.map_or(end, |comma| comma + 1);
    let gap = if inside.contains('\n') {
        at = past_remarks(text, at, container.close);
        let indent =
            own_indent(text, start).map_or_else(|| style.indent.repeat(depth + 1), str::to_owned);
        format!("{}{indent}", style.newline)
    } else {
        " ".to_owned()
    };
    match comma {
        Some(_) => format!("{}{gap}{item},{}", &text[..at], &text[at..]),
        None => format!(
            "{},{}{gap}{item}{}",
            &text[..end],
            &text[end..at],
            &text[at..]
        ),
    }
}

/// Removes an item. `inside` is the text that the container had while it was
/// empty; `None` if that is not known.
pub(super) fn remove(
    text: &str,
    container: &Container,
    index: usize,
    inside: Option<&str>,
) -> String {
    let Some(&(start, end)) = container.children.get(index) else {
        return text.to_owned();
    };
    let before = index
        .checked_sub(1)
        .map(|previous| container.children[previous].1);
    let next = container.children.get(index + 1).map(|next| next.0);
    let gap = gap_before(text, start, before.unwrap_or(container.open));
    let comma_behind = comma(text, end, next.unwrap_or(container.close));
    let cut = comma_behind.map_or(end, |comma| comma + 1);
    if container.children.len() == 1 {
        let rest = format!(
            "{}{}",
            &text[container.open..gap],
            &text[cut..container.close]
        );
        let same = |left: &str, right: &str| left.split_whitespace().eq(right.split_whitespace());
        let rest = match inside {
            Some(inside) if same(inside, &rest) => inside,
            None if rest.trim().is_empty() => "",
            _ => rest.as_str(),
        };
        return format!(
            "{}{rest}{}",
            &text[..container.open],
            &text[container.close..]
        );
    }
    match (comma_behind, before) {
        (None, Some(before)) => {
            // The last item: the comma before it was inserted with it.
            let comma = comma(text, before, start).unwrap_or(before);
            let kept = (comma + 1).min(gap);
            format!("{}{}{}", &text[..comma], &text[kept..gap], &text[end..])
        }
        _ => {
            // After the first item of a line, the blank is removed, too.
            let blank = text[cut..].len() - text[cut..].trim_start_matches(' ').len();
            let blank = if index == 0 && gap == container.open {
                blank
            } else {
                0
            };
            format!("{}{}", &text[..gap], &text[cut + blank..])
        }
    }
}

/// Returns the offset of the comma between two offsets. Commas in comments do
/// not count.
fn comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    while at < to {
        let rest = &text[at..to];
        if rest.starts_with(',') {
            return Some(at);
        }
        at += match remark(rest) {
            Some(length) => length,
            None => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    None
}

/// Returns the length of the comment at the start of a text; `None` if there is
/// none.
fn remark(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        let line = text.split('\n').next().unwrap_or_default();
        return Some(line.trim_end_matches('\r').len());
    }
    let inside = text.strip_prefix("/*")?;
    Some(inside.find("*/").map_or(text.len(), |end| end + 4))
}

/// Returns the offset after the comments on the same line.
fn past_remarks(text: &str, from: usize, to: usize) -> usize {
    let (mut past, mut at) = (from, from);
    while at < to {
        let rest = &text[at..to];
        if let Some(length) = remark(rest) {
            if rest[..length].contains('\n') {
                break;
            }
            at += length;
            past = at;
        } else if rest.starts_with([' ', '\t']) {
            at += 1;
        } else {
            break;
        }
    }
    past
}

/// Returns the blanks before an offset; `None` if anything else is before it on
/// its line.
fn own_indent(text: &str, at: usize) -> Option<&str> {
    let line = text[..at].rfind('\n')? + 1;
    let before = &text[line..at];
    before
        .trim_matches([' ', '\t'])
        .is_empty()
        .then_some(before)
}

/// Returns where the blanks before an offset begin, including the line end
/// before them.
fn gap_before(text: &str, at: usize, floor: usize) -> usize {
    let blanks = text[floor..at].trim_end_matches([' ', '\t']);
    let line = blanks
        .strip_suffix('\n')
        .map_or(blanks, |rest| rest.strip_suffix('\r').unwrap_or(rest));
    floor + line.len()
}
