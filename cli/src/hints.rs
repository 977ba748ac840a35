//! Hints in the words of the command line.
//!
//! A hint of the daemon names a method and its parameters, since most of its
//! readers are programs. A person needs the command. `touchmark call` shows
//! hints as the daemon wrote them.

use touchmark_client::Error;
use touchmark_client::proto::ErrorCode;

/// The daemon's text, and the text for a person that replaces it. Of two texts
/// that begin alike, the longer one is first.
const TABLE: &[(&str, &str)] = &[
    (" (`file/log`)", ""),
    (" (`touchmark log`)", ""),
    (" (`touchmark log PATH`)", ""),
    (
        "request the whole text by `file/content`, or a `range` by `file/blame`",
        "`touchmark show` prints the whole text, `touchmark blame -L 10,20` some lines",
    ),
    (
        "read the file itself and record it with `file/read`",
        "read the file itself",
    ),
    (
        "read the file itself, or parts of it by `file/readText`",
        "read the file itself",
    ),
    (
        "remove some with `task/remove` or `task/cleanup`",
        "the agent that saved them can remove some",
    ),
    (
        "`session/close` with `forget`",
        "`touchmark forget --session NAME`",
    ),
    (
        "one opens by `session/open`, or by what it records",
        "one opens when an agent reads or changes a file",
    ),
    (
        "end some with `command/end`, or bind them to their connection",
        "wait until some have ended",
    ),
    (
        "to write a whole file, use `file/write`",
        "write the whole file",
    ),
    (
        "mark it with `edit/begin` and write it yourself",
        "write it with another program",
    ),
    (
        "name the file by `path`, or a time, a clock or a checkpoint",
        "name one file, or a time, a clock or a checkpoint",
    ),
    (
        "name some of them in `paths`",
        "name some of them after `--`",
    ),
    ("or set `now`", "or say `--now`"),
    ("or set `force`", "then write it"),
    (
        "look again at what it would do, with `dryRun`",
        "run the command again",
    ),
    (
        "wait until the other session's edit has ended, or set `waitMs`",
        "wait until the other session has ended its edit",
    ),
    (
        "give more of the text around it, or set `replaceAll`",
        "give more of the text around it",
    ),
    ("set `createDirectories`", "create its directory first"),
    ("request a part of it with `range`", "ask for a part of it"),
    ("leave `pid` out", "name no process"),
    (
        "and subscribe again with `since`",
        "and run the command again",
    ),
    (
        "name a `session`, a `command`, an `edit`, a prompt as `since`, or a `path` and `at`; or set `last`",
        "name a session, PATH@V, or one of `--command`, `--edit` and `--last`",
    ),
    ("by `path`", "by naming a directory"),
    (
        "begin the edit again with `edit/begin`",
        "begin the edit again",
    ),
    (
        "send the request again with a larger `withinMs`",
        "run the command again",
    ),
    ("`checkpoint/delete`", "`touchmark checkpoint delete`"),
    ("`checkpoint/list`", "`touchmark checkpoint list`"),
    ("`file/history`", "`touchmark history PATH`"),
    ("`file/log`", "`touchmark log`"),
    ("`modified/list`", "`touchmark modified`"),
    ("`modified/take`", "`touchmark modified`"),
    ("`recovery/list`", "`touchmark recovered list`"),
    ("`review/list`", "`touchmark review --list`"),
    ("`session/list`", "`touchmark sessions`"),
    ("`undo/list`", "`touchmark undo --list`"),
];

/// Returns the hint of an error as a person reads it.
pub(crate) fn of(error: &Error) -> String {
    for_people(error.daemon().map(|error| error.code), error.hint())
}

/// Returns a hint of the daemon as a person reads it.
fn for_people(code: Option<ErrorCode>, hint: &str) -> String {
    match code {
        Some(ErrorCode::MethodNotFound) => "update the older of client and daemon".into(),
        _ => TABLE.iter().fold(hint.to_owned(), |hint, (said, meant)| {
            hint.replace(said, meant)
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::{Path, PathBuf};

    use touchmark_client::proto::METHODS;

    use super::*;

    /// What may stand between backticks in a hint for people.
    const SPOKEN: [&str; 9] = [
        "touchmark ",
        "--",
        "rg ",
        ".git",
        "guard.",
        "limits.",
        "systemctl ",
        "journalctl",
        "kill ",
    ];

    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "tests" {
                sources(&path, found);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                found.push(path);
            }
        }
    }

    /// The string literals of a source, without those of its unit tests. True
    /// for the argument of `.hint(`.
    fn literals(source: &str) -> Vec<(bool, String)> {
        let code = source.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().map(str::trim_start);
        let code: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
        let code = code.join("\n").replace("\\\n", "").replace("'\"'", "' '");
        let mut found = Vec::new();
        let mut rest = code.as_str();
        while let Some(begin) = rest.find('"') {
            let before = rest[..begin]
                .trim_end()
                .trim_end_matches("format!(")
                .trim_end();
            let is_hint = before.ends_with(".hint(");
            let text = &rest[begin + 1..];
            let mut escaped = false;
            let end = text.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let Some(end) = end else { break };
            found.push((is_hint, text[..end].to_owned()));
            rest = &text[end + 1..];
        }
        found
    }

    fn quoted(hint: &str) -> Vec<&str> {
        hint.split('`').skip(1).step_by(2).collect()
    }

    fn is_spoken(hint: &str) -> bool {
        quoted(hint)
            .iter()
            .all(|word| SPOKEN.iter().any(|known| word.starts_with(known)))
    }

    #[test]
    fn no_hint_of_the_daemon_names_a_method_or_a_parameter() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = Vec::new();
        for part in ["engine/src", "daemon/src", "proto/src", "client/src"] {
            sources(&root.join(part), &mut files);
        }
        let names = |text: &str| quoted(text).iter().any(|name| METHODS.contains(name));
        let (mut hints, mut methods) = (0, 0);
        let mut left = Vec::new();
        for file in files {
            for (is_hint, text) in literals(&std::fs::read_to_string(&file).unwrap()) {
                let meant = for_people(None, &text);
                methods += usize::from(names(&text));
                hints += usize::from(is_hint);
                if names(&meant) || is_hint && !is_spoken(&meant) {
                    left.push(format!("{}: {meant}", file.display()));
                }
            }
        }
        assert!(left.is_empty(), "{left:#?}");
        // The sources were found, and read as intended.
        assert!(hints > 50 && methods > 20, "{hints} {methods}");
    }

    #[test]
    fn no_general_hint_names_a_method_or_a_parameter() {
        let all = ErrorCode::ALL.iter();
        let meant = all.map(|code| for_people(Some(*code), code.hint()));
        let left: Vec<String> = meant.filter(|meant| !is_spoken(meant)).collect();
        assert!(left.is_empty(), "{left:#?}");
        assert_eq!(
            for_people(Some(ErrorCode::NotKept), ErrorCode::NotKept.hint()),
            "name another version; `touchmark log PATH` lists them"
        );
    }
}
