//! A member that touchmark adds to an object in JSON settings.

use serde_json::Value;

use super::document::{self, Step, Style, Unreadable, find};
use super::hooks::value;
use super::json::Json;
use super::made::{self, Made, member, without};

/// A member of an object at the top of the settings.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The name of the object.
    pub(super) within: &'static str,
    pub(super) name: &'static str,
    pub(super) value: Json,
}

impl Member {
    /// Returns its name after that of its object.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.within, self.name)
    }

    /// Returns the value that a text has for it; `None` if there is none.
    pub(super) fn found(&self, text: &str) -> Result<Option<Value>, Unreadable> {
        let Some(object) = find(text, &[Step::Object(self.within)])? else {
            return Ok(None);
        };
        let position = object.position(self.name);
        let found = position.and_then(|index| object.values(text).nth(index));
        Ok(found.map(value))
    }

    /// Adds it, if there is none of its name.
    pub(super) fn put(&self, text: &str, made: &mut Made) -> Result<String, Unreadable> {
        let text = made::begun(text, made)?;
        let style = Style::of(&text);
        let text = member(&text, &[], self.within, self.within, "{}", &style, made)?;
        let steps = [Step::Object(self.within)];
        let item = self.value.to_string();
        member(&text, &steps, self.name, &self.place(), &item, &style, made)
    }

    /// Removes it, and the object if that was created for it and is empty.
    pub(super) fn take(&self, text: &str, made: &Made) -> Result<String, Unreadable> {
        let mut text = text.to_owned();
        let steps = [Step::Object(self.within)];
        if let Some(object) = find(&text, &steps)?
            && let Some(index) = object.position(self.name)
        {
            text = document::remove(&text, &object, index, made.inside(self.within));
        }
        let is_empty = find(&text, &steps)?.is_some_and(|object| object.is_empty());
        if is_empty && made.members.contains(self.within) {
            text = without(&text, self.within, made.inside(""))?;
        }
        made::ended(text, Some(made))
    }
}
