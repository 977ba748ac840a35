//! Hooks in settings: `hooks` is an object of lists, one for each event. What
//! others have there is never touched.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{self, Container, Step, Style, Unreadable, find};
use super::json::{Json, quoted};
use super::rows::{Event, Handler, Shape};

/// What an agent's settings are to hold.
#[derive(Clone, Debug)]
pub(super) struct Hooks {
    /// The agent, as in `touchmark hook AGENT`.
    pub(super) agent: &'static str,
    /// Members beside `hooks` that must be there.
    pub(super) beside: Vec<(&'static str, Json)>,
    /// What is put into the list of each event.
    pub(super) events: Vec<(&'static str, Json)>,
}

/// What an installation made beside the hooks themselves, so that taking it
/// back leaves what was there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Made {
    /// The text that had no value in it.
    pub(super) document: Option<String>,
    /// Members: `hooks`, `hooks/Stop`, `version`.
    pub(super) members: BTreeSet<String>,
    /// What stood in objects and lists that were empty: `` is the outermost.
    pub(super) empty: BTreeMap<String, String>,
}

impl Hooks {
    /// An agent's, by the row of its settings.
    pub(super) fn of(agent: &'static str, shape: &Shape, program: &str) -> Self {
        let event = |event: &Event| (event.name, shape.hook(agent, event, program));
        let beside = shape.beside.iter();
        Self {
            agent,
            beside: beside
                .map(|(name, value)| (*name, Json::Number(*value)))
                .collect(),
            events: shape.events.iter().map(event).collect(),
        }
    }

    /// Whether the text holds these hooks, each once, and no others of
    /// touchmark's.
    ///
    /// # Errors
    /// For a text that is not to be touched.
    pub(super) fn are_in(&self, text: &str) -> Result<bool, Unreadable> {
        let mut wanted: BTreeMap<&str, Value> = BTreeMap::new();
        for (event, item) in &self.events {
            wanted.insert(event, value(&item.to_string()));
        }
        for event in events(text)? {
            let Some(list) = find(text, &[Step::Object("hooks"), Step::List(&event)])? else {
                continue;
            };
            for element in list.values(text) {
                let element = value(element);
                if self.owns(&element) == Owned::Nothing {
                    continue;
                }
                // Ours in another shape, or a second time.
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

    /// Puts them in.
    ///
    /// # Errors
    /// For a text that is not to be touched.
    pub(super) fn put(&self, text: &str, made: &mut Made) -> Result<String, Unreadable> {
        let mut text = text.to_owned();
        if find(&text, &[])?.is_none() {
            made.document = Some(text.clone());
            let newline = Style::of(&text).newline();
            if !text.is_empty() && !text.ends_with('\n') {
                text.push_str(newline);
            }
            text.push_str("{}");
            text.push_str(newline);
        }
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

    /// Takes them out, with what the installation had made for them. Without
    /// a record of that, what they leave empty goes as well.
    ///
    /// # Errors
    /// For a text that is not to be touched.
    pub(super) fn take(&self, text: &str, made: Option<&Made>) -> Result<String, Unreadable> {
        let mut text = text.to_owned();
        let mut emptied = BTreeSet::new();
        let inside = |place: &str| {
            made.and_then(|made| made.empty.get(place))
                .map(String::as_str)
        };
        for event in events(&text)? {
            let place = format!("hooks/{event}");
            let steps = [Step::Object("hooks"), Step::List(&event)];
            let mut index = 0;
            while let Some(list) = find(&text, &steps)? {
                let Some(element) = list.values(&text).nth(index).map(value) else {
                    break;
                };
                match self.owns(&element) {
                    Owned::Nothing => index += 1,
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
            }
        }
        let ours = |place: &str| match made {
            Some(made) => made.members.contains(place),
            None => emptied.contains(place),
        };
        for event in events(&text)? {
            let place = format!("hooks/{event}");
            let list = find(&text, &[Step::Object("hooks"), Step::List(&event)])?;
            if ours(&place) && list.is_some_and(|list| list.is_empty()) {
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
            // Others have put their hooks where there were only ours, and may
            // rely on it.
            let needed = made_hooks && root.position("hooks").is_some();
            if same && !needed && made.is_some_and(|made| made.members.contains(*name)) {
                text = without(&text, name, inside(""))?;
            }
        }
        Ok(match made.and_then(|made| made.document.as_ref()) {
            Some(before) => as_before(&text, before)?,
            None => text,
        })
    }

    /// What of an element is touchmark's, for this agent.
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

    /// Whether a handler runs `touchmark hook AGENT`, wherever it is.
    pub(super) fn runs(&self, handler: &Value) -> bool {
        let Some(command) = handler["command"].as_str() else {
            return false;
        };
        let arguments = handler["args"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let words = arguments.iter().filter_map(Value::as_str);
        let line = words.fold(command.to_owned(), |line, word| format!("{line} {word}"));
        let end = format!(" hook {}", self.agent);
        let Some(program) = line.trim().strip_suffix(end.as_str()) else {
            return false;
        };
        let program = program.trim().trim_matches(['\'', '"']);
        program == "touchmark" || program.ends_with("/touchmark")
    }
}

impl Shape {
    fn hook(&self, agent: &str, event: &Event, program: &str) -> Json {
        let line = format!("{} hook {agent}", shell_word(program));
        let timeout = Json::Number(event.timeout.unwrap_or(self.timeout));
        let matcher = event.matcher.map(|tools| ("matcher", tools.into()));
        let typed = ("type", "command".into());
        let handler = match self.handler {
            Handler::Words => vec![
                typed,
                ("command", program.into()),
                ("args", Json::List(vec!["hook".into(), agent.into()])),
            ],
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
        };
        let handler = handler.into_iter().chain([("timeout", timeout)]);
        let mut group: Vec<_> = matcher.into_iter().collect();
        group.push(("hooks", Json::List(vec![Json::Object(handler.collect())])));
        Json::Object(group)
    }
}

/// A word of a shell's command line.
fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:,=".contains(&byte);
    if word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What of an element is touchmark's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    Nothing,
    All,
    /// One of its handlers, among others.
    Handler(usize),
}

/// The events that have a list.
fn events(text: &str) -> Result<Vec<String>, Unreadable> {
    let hooks = find(text, &[Step::Object("hooks")])?;
    Ok(hooks
        .map(|hooks| hooks.names().to_vec())
        .unwrap_or_default())
}

/// Puts a member in, unless it is there.
fn member(
    text: &str,
    steps: &[Step<'_>],
    name: &str,
    place: &str,
    item: &str,
    style: &Style,
    made: &mut Made,
) -> Result<String, Unreadable> {
    let parent = there(find(text, steps)?)?;
    if parent.position(name).is_some() {
        return Ok(text.to_owned());
    }
    let around = if steps.is_empty() { "" } else { "hooks" };
    note_empty(text, &parent, around, made);
    made.members.insert(place.to_owned());
    let item = format!("{}: {item}", quoted(name));
    Ok(document::insert(text, &parent, &item, steps.len(), style))
}

/// Remembers what stands in a container that is empty and not of this
/// installation.
fn note_empty(text: &str, container: &Container, place: &str, made: &mut Made) {
    if container.is_empty() && !made.members.contains(place) {
        made.empty
            .insert(place.to_owned(), container.inside(text).to_owned());
    }
}

fn without(text: &str, name: &str, inside: Option<&str>) -> Result<String, Unreadable> {
    let root = there(find(text, &[])?)?;
    Ok(match root.position(name) {
        Some(index) => document::remove(text, &root, index, inside),
        None => text.to_owned(),
    })
}

/// The text without the object that the installation made, if nothing else
/// came into it.
fn as_before(text: &str, before: &str) -> Result<String, Unreadable> {
    let Some(root) = find(text, &[])? else {
        return Ok(text.to_owned());
    };
    let inside = root.inside(text).trim();
    let whole = format!("{{{}}}", root.inside(text));
    let rest = text.replacen(&whole, "", 1);
    let same = rest.split_whitespace().eq(before.split_whitespace());
    Ok(match root.is_empty() && inside.is_empty() && same {
        true => before.to_owned(),
        false => text.to_owned(),
    })
}

fn there(container: Option<Container>) -> Result<Container, Unreadable> {
    // It was found or made just before.
    container.ok_or_else(|| Unreadable {
        line: 1,
        reason: "the settings changed while they were read".into(),
    })
}

/// A part of a text that was parsed already.
fn value(text: &str) -> Value {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
        .unwrap_or_default()
}
