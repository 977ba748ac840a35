//! A configuration file as text. Comments, order and every other entry stay as
//! they are.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use crate::output::{Failure, Outcome};

/// Returns a value as it is written on one line.
pub(super) fn inline(value: &toml::Value) -> String {
    match value {
        toml::Value::Table(table) => {
            let members = table.iter().map(|(name, value)| {
                let name = toml_edit::Key::new(name);
                format!("{} = {}", name.display_repr(), inline(value))
            });
            let members: Vec<String> = members.collect();
            match members.is_empty() {
                true => "{}".to_owned(),
                false => format!("{{ {} }}", members.join(", ")),
            }
        }
        value => value.to_string(),
    }
}

/// Returns what a typed text may stand for: the value that it is in TOML, and
/// the text itself.
pub(super) fn meant(typed: &str) -> Vec<Value> {
    let value = typed.parse::<Value>().ok();
    value.into_iter().chain([Value::from(typed)]).collect()
}

/// Sets a key in a file's text.
///
/// # Errors
/// The text is not TOML, or has something else than a table where the key's
/// table belongs.
pub(super) fn set(text: &str, key: &str, value: &Value) -> Outcome<String> {
    let mut document = parsed(text)?;
    let (table, name) = match key.split_once('.') {
        None => (document.as_table_mut() as &mut dyn TableLike, key),
        Some((table, name)) => {
            let item = document.entry(table).or_insert(Item::Table(Table::new()));
            let is_none = || Failure::No(format!("`{table}` is not a table in this file"));
            (item.as_table_like_mut().ok_or_else(is_none)?, name)
        }
    };
    let mut value = value.clone();
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) => {
            // A comment behind the value stays.
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(name, Item::Value(value))),
    }
    let parent = key
        .split_once('.')
        .and_then(|(table, _)| document.get_mut(table));
    if let Some(table) = parent.and_then(Item::as_inline_table_mut) {
        table.fmt();
    }
    Ok(document.to_string())
}

/// Removes a key from a file's text. Returns `None` if it is not there.
///
/// # Errors
/// The text is not TOML.
pub(super) fn unset(text: &str, key: &str) -> Outcome<Option<String>> {
    let mut document = parsed(text)?;
    let removed = match key.split_once('.') {
        None => document.remove(key),
        Some((table, name)) => {
            let table = document.get_mut(table).and_then(Item::as_table_like_mut);
            table.and_then(|table| table.remove(name))
        }
    };
    Ok(removed.map(|_| document.to_string()))
}

fn parsed(text: &str) -> Outcome<DocumentMut> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        Failure::No(format!("the file is not TOML: {}", error.message()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn everything_else_stays() {
        let text = "# mine\nidle_exit = \"2 h\" # long\n\n[marks]\nlate = 3\n";
        let (inline, dotted) = ("calls = { keep = 1 }\n", "calls.keep = 1\n");
        for (text, key, typed, after) in [
            (text, "idle_exit", "\"1 h\"", &*text.replace("2 h", "1 h")),
            (
                text,
                "marks.edit_ttl",
                "5",
                &format!("{text}edit_ttl = 5\n"),
            ),
            (
                text,
                "watch",
                "\"off\"",
                &text.replace("# long\n", "# long\nwatch = \"off\"\n"),
            ),
            (
                text,
                "hooks.gate",
                "\"off\"",
                &format!("{text}\n[hooks]\ngate = \"off\"\n"),
            ),
            ("", "calls.keep", "5", "[calls]\nkeep = 5\n"),
            (inline, "calls.age", "5", "calls = { keep = 1, age = 5 }\n"),
            (dotted, "calls.keep", "5", "calls.keep = 5\n"),
        ] {
            assert_eq!(set(text, key, &meant(typed)[0]).unwrap(), after, "{key}");
        }
        assert_eq!(unset(text, "hooks.gate").unwrap(), None);
        assert_eq!(
            unset(text, "marks.late").unwrap().unwrap(),
            text.replace("late = 3\n", "")
        );
        assert!(set("a = ", "watch", &meant("off")[0]).is_err());
        assert!(set("marks = 3", "marks.late", &meant("1")[0]).is_err());
    }

    #[test]
    fn a_table_is_shown_on_one_line() {
        let value: toml::Value = toml::from_str("a = [\"b\"]\n\"c d\" = 1\n").unwrap();
        assert_eq!(inline(&value), "{ a = [\"b\"], \"c d\" = 1 }");
    }
}
