//! Hooks in settings: `hooks` is an object of lists, one for each event. Other
//! programs' hooks are never changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use touchmark_client::start::{BINARY, HOOK_BINARY};

use super::agent::Agent;
use super::document::{self, Step, Style, Unreadable, find};
use super::json::Json;
use super::made::{self, Made, member, note_empty, there, without};
use crate::daemon::agent::{Addition, Event, Handler};

/// The hooks that an agent's settings should have.
#[derive(Clone, Debug)]
pub(super) struct Hooks {
    /// The agent's name in `touchmark hook AGENT`.
    pub(super) agent: &'static str,
    /// Members next to `hooks` that must be present.
    pub(super) beside: Vec<(&'static str, Json)>,
    /// The element for the list of each event.
    pub(super) events: Vec<(&'static str, Json)>,
}

impl Hooks {
    /// Returns the hooks of an agent; none if it has a plug-in instead.
    pub(super) fn of(agent: Agent, program: &str) -> Self {
        let mut beside = Vec::new();
        let mut events = Vec::new();
        if let Addition::Hooks(format) = agent.settings().adds {
            if matches!(format, Handler::Flat | Handler::Bash) {
                beside.push(("version", Json::Number(1)));
            }
            let hook = |event: &Event| (event.name, agent.hook(format, event, program));
            events.extend(agent.0.hooks().map(hook));
        }
        Self {
            agent: agent.name(),
            beside,
            events,
        }
    }

    /// Returns whether the text has these hooks, each once, and no others of
    /// touchmark's.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn are_in(&self, text: &str) -> Result<bool, Unreadable> {
        let mut wanted: BTreeMap<&str, Value> = BTreeMap::new();
        for (event, item) in &self.events {
            wanted.insert(event, value(&item.to_string()));
        }
        for (event, list) in document::lists(text, "hooks")? {
            for element in list.values(text) {
                let element = value(element);
                if self.owns(&element) == Owned::Nothing {
                    continue;
                }
                // touchmark's, in another format or a second time.
                if wanted.remove(event.as_str()) != Some(element) {
                    return Ok(false);
                }
            }
        }
        let root = find(text, &[])?;
        let beside = |(name, _): &(&str, Json)| {
            root.as_ref()
                .is_some_and(|root| root.position(name).is_some())
        };
        Ok(wanted.is_empty() && self.beside.iter().all(beside))
    }

    /// Returns whether the text has any of touchmark's hooks for this agent.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn any_in(&self, text: &str) -> Result<bool, Unreadable> {
        Ok(!self.handlers(text)?.is_empty())
    }

    /// Returns touchmark's handlers in the text, each with its event.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn handlers(&self, text: &str) -> Result<Vec<(String, Value)>, Unreadable> {
        let mut found = Vec::new();
        for (event, list) in document::lists(text, "hooks")? {
            for element in list.values(text).map(value) {
                let inner = element["hooks"].as_array().cloned().unwrap_or_default();
                let all = inner.into_iter().chain([element]);
                let ours = all.filter(|handler| self.runs(handler));
                found.extend(ours.map(|handler| (event.clone(), handler)));
            }
        }
        Ok(found)
    }

    /// Adds the hooks.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn put(&self, text: &str, made: &mut Made) -> Result<String, Unreadable> {
        let mut text = made::begun(text, made)?;
        let style = Style::of(&text);
        for (name, item) in &self.beside {
            text = member(&text, &[], name, name, &item.to_string(), &style, made)?;
        }
        text = member(&text, &[], "hooks", "hooks", "{}", &style, made)?;
        let hooks = [Step::Object("hooks")];
        for (event, item) in &self.events {
            let place = format!("hooks/{event}");
            text = member(&text, &hooks, event, &place, "[]", &style, made)?;
            let steps = [Step::Object("hooks"), Step::List(event)];
            let list = there(find(&text, &steps)?)?;
            note_empty(&text, &list, &place, made);
            text = document::insert(&text, &list, &item.to_string(), 2, &style);
        }
        Ok(text)
    }

    /// Removes the hooks, with what the installation created for them. Without
    /// a record of that, also removes what is empty afterwards.
    ///
    /// # Errors
    /// The text cannot be edited.
    pub(super) fn take(&self, text: &str, made: Option<&Made>) -> Result<String, Unreadable> {
        let mut text = text.to_owned();
        let mut emptied = BTreeSet::new();
        let inside = |place: &str| made.and_then(|made| made.inside(place));
        let is_ours = |element: &str| self.owns(&value(element)) != Owned::Nothing;
        let lists = document::lists(&text, "hooks")?.into_iter();
        let with_ours = lists.filter(|(_, list)| list.values(&text).any(is_ours));
        let with_ours: Vec<String> = with_ours.map(|(event, _)| event).collect();
        for event in with_ours {
            let place = format!("hooks/{event}");
            let steps = [Step::Object("hooks"), Step::List(&event)];
            let mut index = 0;
            let mut list = there(find(&text, &steps)?)?;
            while let Some(element) = list.value(&text, index).map(value) {
                match self.owns(&element) {
                    Owned::Nothing => {
                        index += 1;
                        continue;
                    }
                    Owned::All => {
                        text = document::remove(&text, &list, index, inside(&place));
                        emptied.insert(place.clone());
                    }
                    Owned::Handler(handler) => {
                        let [hooks, list] = steps;
                        let group = [hooks, list, Step::Element(index), Step::List("hooks")];
                        let handlers = there(find(&text, &group)?)?;
                        text = document::remove(&text, &handlers, handler, None);
                    }
                }
                list = there(find(&text, &steps)?)?;
            }
        }
        let ours = |place: &str| match made {
            Some(made) => made.members.contains(place),
            None => emptied.contains(place),
        };
        for (event, list) in document::lists(&text, "hooks")? {
            let place = format!("hooks/{event}");
            if ours(&place) && list.is_empty() {
                let hooks = there(find(&text, &[Step::Object("hooks")])?)?;
                if let Some(index) = hooks.position(&event) {
                    text = document::remove(&text, &hooks, index, inside("hooks"));
                }
            }
        }
        let made_hooks = made.map_or(!emptied.is_empty(), |made| made.members.contains("hooks"));
        let hooks = find(&text, &[Step::Object("hooks")])?;
        if made_hooks && hooks.is_some_and(|hooks| hooks.is_empty()) {
            text = without(&text, "hooks", inside(""))?;
        }
        for (name, item) in self.beside.iter().rev() {
            let Some(root) = find(&text, &[])? else { break };
            let position = root.position(name);
            let same = position
                .and_then(|index| root.values(&text).nth(index))
                .is_some_and(|found| found == item.to_string());
            // Other programs' hooks have been added, and may rely on this
            // member.
            let needed = made_hooks && root.position("hooks").is_some();
            if same && !needed && made.is_some_and(|made| made.members.contains(*name)) {
                text = without(&text, name, inside(""))?;
            }
        }
        made::ended(text, made)
    }

    /// Returns which part of an element is touchmark's, for this agent.
    fn owns(&self, element: &Value) -> Owned {
        if self.runs(element) {
            return Owned::All;
        }
        let handlers = element["hooks"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let ours = handlers.iter().position(|handler| self.runs(handler));
        match ours {
            None => Owned::Nothing,
            Some(_) if handlers.iter().all(|handler| self.runs(handler)) => Owned::All,
            Some(index) => Owned::Handler(index),
        }
    }

    /// Returns whether a handler runs `touchmark hook AGENT` or
    /// `touchmark-hook AGENT`, wherever the program is.
    pub(super) fn runs(&self, handler: &Value) -> bool {
        let command = ["command", "bash"].iter();
        let Some(command) = command.filter_map(|name| handler[*name].as_str()).next() else {
            return false;
        };
        let arguments = handler["args"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let words = arguments.iter().filter_map(Value::as_str);
        let line = words.fold(command.to_owned(), |line, word| format!("{line} {word}"));
        let end = format!(" {}", self.agent);
        let Some(called) = line.trim().strip_suffix(end.as_str()) else {
            return false;
        };
        let is = |program: &str, name| is_called(program.trim().trim_matches(['\'', '"']), name);
        let whole = called.trim_end().strip_suffix(" hook");
        is(called, HOOK_BINARY) || whole.is_some_and(|program| is(program, BINARY))
    }
}

impl Agent {
    /// Returns the call of a program for this agent, for a shell: the program for
    /// hooks, or this one.
    pub(super) fn call(self, program: &str) -> String {
        let word = match Path::new(program).ends_with(HOOK_BINARY) {
            true => "",
            false => " hook",
        };
        format!("{}{word} {}", shell_word(program), self.name())
    }

    fn hook(self, format: Handler, event: &Event, program: &str) -> Json {
        let line = self.call(program);
        let timeout = Json::Number(event.timeout.unwrap_or(self.settings().timeout));
        let matcher = event.matcher.map(|tools| ("matcher", tools.into()));
        let typed = ("type", "command".into());
        let handler = match format {
            Handler::Line => vec![typed, ("command", line.as_str().into())],
            Handler::NamedLine => vec![
                typed,
                ("name", "touchmark".into()),
                ("command", line.as_str().into()),
            ],
            Handler::Flat => {
                let mut hook = vec![("command", line.as_str().into())];
                hook.extend(matcher);
                hook.push(("timeout", timeout));
                return Json::Object(hook);
            }
            Handler::Quiet => {
                let shown = ("show_output", Json::Flag(false));
                return Json::Object(vec![("command", line.as_str().into()), shown]);
            }
            Handler::Bash => {
                let command = ("bash", line.as_str().into());
                return Json::Object(vec![typed, command, ("timeoutSec", timeout)]);
            }
        };
        let handler = handler.into_iter().chain([("timeout", timeout)]);
        let mut group: Vec<_> = matcher.into_iter().collect();
        group.push(("hooks", Json::List(vec![Json::Object(handler.collect())])));
        Json::Object(group)
    }
}

/// Returns a text as one word of a shell's command line.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:,=".contains(&byte);
    if word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Which part of an element is touchmark's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    Nothing,
    All,
    /// One of its handlers, at this index.
    Handler(usize),
}

/// Parses a part of a text that was parsed successfully as a whole.
pub(super) fn value(text: &str) -> Value {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
        .unwrap_or_default()
}

/// Returns whether settings call a program of this name, wherever it is.
pub(super) fn is_called(program: &str, name: &str) -> bool {
    let before = program.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}
