//! What the user can set in the editor: `initializationOptions`, and the section
//! `touchmark` of the editor's settings.

use serde_json::Value;

/// The settings. Each is true or false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// Whether to start the workspace's daemon if none runs; default false.
    pub(super) start: bool,
    /// Whether a hover shows who wrote the line; default true.
    pub(super) hover: bool,
    /// Whether inlay hints show who wrote the lines; default false.
    pub(super) inlay_hints: bool,
    /// Whether diagnostics show which copies are stale; default false.
    pub(super) stale: bool,
    /// Whether diagnostics show which changes wait for review; default false.
    pub(super) review: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            start: false,
            hover: true,
            inlay_hints: false,
            stale: false,
            review: false,
        }
    }
}

impl Options {
    /// Takes over what is set, and returns the names that mean nothing here. A
    /// setting that is not named stays as it is.
    pub(super) fn set(&mut self, value: &Value) -> Vec<String> {
        let members = value.as_object().into_iter().flatten();
        let unknown = members.filter(|(name, value)| {
            let place = match name.as_str() {
                "start" => &mut self.start,
                "hover" => &mut self.hover,
                "inlayHints" => &mut self.inlay_hints,
                "stale" => &mut self.stale,
                "review" => &mut self.review,
                _ => return true,
            };
            match value.as_bool() {
                Some(value) => *place = value,
                // The editor's way to say that nothing is set.
                None if value.is_null() => {}
                None => return true,
            }
            false
        });
        unknown.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_set_is_taken_and_the_rest_stays() {
        let mut options = Options::default();
        let said = json!({"start": true, "hover": null, "review": "yes", "colour": 1});
        assert_eq!(options.set(&said), ["colour", "review"]);
        let wanted = Options {
            start: true,
            ..Options::default()
        };
        assert_eq!(options, wanted);
        assert!(options.set(&Value::Null).is_empty());
        assert_eq!(options, wanted);
    }
}
