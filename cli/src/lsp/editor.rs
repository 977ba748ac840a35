//! The editor: what it says of itself when it connects, and what the server says
//! in return.

use serde_json::{Value, json};

use super::review::Deed;
use super::text::Encoding;

/// The maximum length of an editor's name and version, in characters. The editor
/// chooses them freely.
const MAX_NAME: usize = 100;

/// What an editor can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Editor {
    /// The unit of the characters of positions.
    pub(super) encoding: Encoding,
    /// Whether hovers are Markdown.
    pub(super) is_markdown: bool,
    /// Whether it can be asked for settings.
    pub(super) has_settings: bool,
    /// Whether it says that its settings have changed only if it is asked to.
    pub(super) registers_settings: bool,
    /// Whether it can be told to request inlay hints again.
    pub(super) refreshes_hints: bool,
}

impl Editor {
    /// Returns the editor that has sent these parameters of `initialize`.
    pub(super) fn of(params: &Value) -> Self {
        let can = |pointer: &str| &params["capabilities"][pointer];
        let texts = |value: &'_ Value| -> Vec<String> {
            let texts = value.as_array().into_iter().flatten();
            texts.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let offered = texts(&can("general")["positionEncodings"]);
        let formats = texts(&can("textDocument")["hover"]["contentFormat"]);
        let workspace = can("workspace");
        let is = |value: &Value| *value == true;
        Self {
            encoding: Encoding::choose(offered.iter().map(String::as_str)),
            is_markdown: formats.first().is_some_and(|first| first == "markdown"),
            has_settings: is(&workspace["configuration"]),
            registers_settings: is(&workspace["didChangeConfiguration"]["dynamicRegistration"]),
            refreshes_hints: is(&workspace["inlayHint"]["refreshSupport"]),
        }
    }

    /// Returns the answer to `initialize`.
    pub(super) fn welcome(self) -> Value {
        json!({
            "capabilities": {
                "positionEncoding": self.encoding.name(),
                "textDocumentSync": {
                    "openClose": true,
                    // Incremental.
                    "change": 2,
                    "save": {"includeText": true},
                },
                "hoverProvider": true,
                "inlayHintProvider": true,
                "codeActionProvider": {"codeActionKinds": ["quickfix"]},
                "executeCommandProvider": {"commands": Deed::names()},
            },
            "serverInfo": {"name": "touchmark", "version": env!("CARGO_PKG_VERSION")},
        })
    }
}

/// Returns the editor's name and version; `None` if it has not said them.
pub(super) fn name(params: &Value) -> Option<(String, String)> {
    let said = |name: &str| {
        let text = params["clientInfo"][name].as_str().unwrap_or_default();
        text.chars().take(MAX_NAME).collect::<String>()
    };
    let (name, version) = (said("name"), said("version"));
    (!name.is_empty()).then_some((name, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_that_says_nothing_gets_what_all_know() {
        let editor = Editor::of(&json!({"capabilities": {}}));
        assert_eq!(editor.encoding, Encoding::Utf16);
        assert!(!editor.is_markdown && !editor.has_settings && !editor.refreshes_hints);
        assert_eq!(
            editor.welcome()["capabilities"]["positionEncoding"],
            "utf-16"
        );
        let params = json!({"capabilities": {
            "general": {"positionEncodings": ["utf-32", "utf-8"]},
            "textDocument": {"hover": {"contentFormat": ["markdown", "plaintext"]}},
        }});
        let editor = Editor::of(&params);
        assert!(editor.is_markdown);
        assert_eq!(
            editor.welcome()["capabilities"]["positionEncoding"],
            "utf-8"
        );
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(name(&json!({})), None);
        let long = json!({"clientInfo": {"name": "é".repeat(1000)}});
        assert_eq!(name(&long), Some(("é".repeat(MAX_NAME), String::new())));
    }
}
