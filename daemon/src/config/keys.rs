//! All keys: how each is read, and what a repository may do with it (SEC-5).

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use touchmark_engine::patterns::{self, Patterns};

use super::units::{Bytes, Connections, FrameBytes, Keep, KeepBytes, Span, TextBytes};
use super::{Config, Durability, Endpoint, Gate, Headers, Part, Paths, Unsaved, Whose};
use crate::hooks::Agent;
use crate::watch::Choice;

type Value<'de> = Spanned<DeValue<'de>>;
type Read = fn(&mut Config, Value<'_>) -> Result<(), Wrong>;
/// Applies the part of a repository's value that is stricter than the current
/// one. Returns whether the whole value is now in effect.
type Tighten = fn(&mut Config, Config) -> bool;

/// A key of the configuration.
pub(super) struct Key {
    /// The name, as in the documentation.
    pub(super) name: &'static str,
    read: Read,
    repository: Option<(&'static str, Tighten)>,
}

impl Key {
    /// Returns what the workspace's file may do with the key, as in the
    /// documentation; `None` if only the user's file may set it.
    #[cfg(test)]
    pub(super) fn repository(&self) -> Option<&'static str> {
        self.repository.map(|(how, _)| how)
    }
}

/// Something in a file's text that is not in effect.
pub(super) struct Wrong {
    /// Where it begins, in bytes; `None` if unknown.
    pub(super) at: Option<usize>,
    /// The reason, for people.
    pub(super) reason: String,
    /// The part of the file that is wrong.
    pub(super) part: Part,
}

impl From<toml::de::Error> for Wrong {
    fn from(error: toml::de::Error) -> Self {
        Self {
            at: error.span().map(|span| span.start),
            reason: error.message().into(),
            part: Part::File,
        }
    }
}

const SMALLER: &str = "smaller";
const MORE: &str = "more of them";

/// Returns all keys, in the documentation's order.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter()
}

/// All keys. A repository may not set what depends on the machine and the user
/// (`case`, `watch`, `idle_exit`), on whom changes are attributed to (`marks`),
/// how long things are stored, or what leaves the machine (`telemetry`). Nor may it set what would lock clients out
/// (`limits.frame`, `limits.connections`) or make different calls count as
/// equal (`calls.rules`).
const KEYS: &[Key] = &[
    users("case", |config, value| {
        config.case = Some(read(value)?);
        Ok(())
    }),
    tighter(
        "durability",
        "`\"power\"`",
        |config, value| put::<Durability, _>(&mut config.durability, value),
        |config, said| {
            let taken = said.durability == Durability::Power;
            if taken {
                config.durability = said.durability;
            }
            taken || said.durability == config.durability
        },
    ),
    users("watch", |config, value| {
        put::<Choice, _>(&mut config.watch, value)
    }),
    users("off", |config, value| {
        let listed: Vec<Spanned<String>> = read(value)?;
        config.off = listed
            .into_iter()
            .map(directory)
            .collect::<Result<_, _>>()?;
        Ok(())
    }),
    users("idle_exit", |config, value| {
        span(&mut config.idle_exit, value)
    }),
    users("marks.edit_ttl", |config, value| {
        span(&mut config.edit_ttl, value)
    }),
    users("marks.flag_ttl", |config, value| {
        span(&mut config.flag_ttl, value)
    }),
    users("marks.hook_ttl", |config, value| {
        span(&mut config.hook_ttl, value)
    }),
    users("marks.command_ttl", |config, value| {
        span(&mut config.command_ttl, value)
    }),
    users("marks.late", |config, value| span(&mut config.late, value)),
    users("limits.frame", |config, value| {
        put::<FrameBytes, _>(&mut config.frame, value)
    }),
    users("limits.connections", |config, value| {
        put::<Connections, _>(&mut config.connections, value)
    }),
    tighter(
        "limits.read_text",
        SMALLER,
        |config, value| put::<TextBytes, _>(&mut config.read_text, value),
        |config, said| least(&mut config.read_text, said.read_text),
    ),
    tighter(
        "contents.total",
        SMALLER,
        |config, value| put::<Bytes, _>(&mut config.contents_total, value),
        |config, said| least(&mut config.contents_total, said.contents_total),
    ),
    tighter(
        "contents.file",
        SMALLER,
        |config, value| put::<Bytes, _>(&mut config.contents_file, value),
        |config, said| least(&mut config.contents_file, said.contents_file),
    ),
    tighter(
        "contents.exclude",
        MORE,
        |config, value| globs(&mut config.contents_exclude, value),
        |config, said| more_globs(&mut config.contents_exclude, said.contents_exclude),
    ),
    users("scope.exclude", |config, value| {
        globs(&mut config.scope_exclude, value)
    }),
    tighter(
        "guard.protect",
        MORE,
        |config, value| globs(&mut config.guard_protect, value),
        |config, said| more_globs(&mut config.guard_protect, said.guard_protect),
    ),
    users("versions.keep", |config, value| {
        let Keep { count, age } = read(value)?;
        config.versions_per_path = count.unwrap_or(config.versions_per_path);
        config.versions_age = age.map_or(config.versions_age, Into::into);
        Ok(())
    }),
    users("sessions.keep", |config, value| {
        span(&mut config.sessions_keep, value)
    }),
    users("recovery.keep", |config, value| {
        let KeepBytes { bytes, age } = read(value)?;
        config.recovery_bytes = bytes.map_or(config.recovery_bytes, Into::into);
        config.recovery_age = age.map_or(config.recovery_age, Into::into);
        Ok(())
    }),
    tighter(
        "calls.keep",
        SMALLER,
        |config, value| put::<u64, _>(&mut config.calls_keep, value),
        |config, said| least(&mut config.calls_keep, said.calls_keep),
    ),
    tighter(
        "calls.age",
        SMALLER,
        |config, value| span(&mut config.calls_age, value),
        |config, said| least(&mut config.calls_age, said.calls_age),
    ),
    tighter(
        "calls.bytes",
        SMALLER,
        |config, value| put::<Bytes, _>(&mut config.calls_bytes, value),
        |config, said| least(&mut config.calls_bytes, said.calls_bytes),
    ),
    tighter(
        "calls.never",
        MORE,
        |config, value| put::<Vec<String>, _>(&mut config.calls_never, value),
        |config, said| union(&mut config.calls_never, said.calls_never),
    ),
    users("calls.rules", |config, value| {
        // The rules are merged by tool: a rule for one leaves the others
        // unchanged.
        let rules: std::collections::BTreeMap<String, Vec<String>> = read(value)?;
        config.calls_rules.extend(rules);
        Ok(())
    }),
    tighter(
        "dedup.enabled",
        "`false`",
        |config, value| put::<bool, _>(&mut config.dedup, value),
        |config, said| least(&mut config.dedup, said.dedup),
    ),
    tighter(
        "hooks.replace_repeats",
        "`false`",
        |config, value| put::<bool, _>(&mut config.replace_repeats, value),
        |config, said| least(&mut config.replace_repeats, said.replace_repeats),
    ),
    tighter(
        "hooks.gate",
        "a later one of `off`, `destructive`, `strict`",
        |config, value| put::<Gate, _>(&mut config.gate, value),
        |config, said| most(&mut config.gate, said.gate),
    ),
    tighter("hooks.gates", "later ones", gates, |config, said| {
        // For an agent that the user did not name, `hooks.gate` applies.
        let tightened = |(agent, gate): (&String, &Gate)| *gate >= config.gate(agent);
        let taken = said.gates.iter().all(tightened);
        if taken {
            config.gates = said.gates;
        }
        taken
    }),
    tighter(
        "hooks.unsaved",
        "a later one of `off`, `deny`, `ask`",
        |config, value| put::<Unsaved, _>(&mut config.unsaved, value),
        |config, said| most(&mut config.unsaved, said.unsaved),
    ),
    users("telemetry.enabled", |config, value| {
        put::<bool, _>(&mut config.telemetry, value)
    }),
    users("telemetry.endpoint", |config, value| {
        let text: String = read(value)?;
        config.telemetry_endpoint = Endpoint::configured(&text).map_err(reason)?;
        Ok(())
    }),
    users("telemetry.headers", |config, value| {
        config.telemetry_headers = Headers::new(read(value)?).map_err(reason)?;
        Ok(())
    }),
    users("telemetry.paths", |config, value| {
        put::<Paths, _>(&mut config.telemetry_paths, value)
    }),
    tighter(
        "worktrees.notice",
        "`false`",
        |config, value| put::<bool, _>(&mut config.worktrees_notice, value),
        |config, said| least(&mut config.worktrees_notice, said.worktrees_notice),
    ),
];

fn reason(reason: String) -> Wrong {
    Wrong {
        at: None,
        reason,
        part: Part::File,
    }
}

const fn users(name: &'static str, read: Read) -> Key {
    Key {
        name,
        read,
        repository: None,
    }
}

const fn tighter(name: &'static str, how: &'static str, read: Read, tighten: Tighten) -> Key {
    Key {
        name,
        read,
        repository: Some((how, tighten)),
    }
}

fn read<'de, T: Deserialize<'de>>(value: Value<'de>) -> Result<T, Wrong> {
    Ok(T::deserialize(ValueDeserializer::from(value))?)
}

fn put<'de, R: Deserialize<'de> + Into<T>, T>(
    slot: &mut T,
    value: Value<'de>,
) -> Result<(), Wrong> {
    *slot = read::<R>(value)?.into();
    Ok(())
}

/// Reads the path of a directory: absolute, or below the home directory. Links
/// in it are followed.
fn directory(said: Spanned<String>) -> Result<PathBuf, Wrong> {
    let text = said.get_ref();
    let below_home = text
        .strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = match below_home {
        Some(rest) => std::env::home_dir().map(|home| home.join(rest.trim_start_matches('/'))),
        None => Some(PathBuf::from(text)).filter(|path| path.is_absolute()),
    };
    let path = path.ok_or_else(|| Wrong {
        at: Some(said.span().start),
        reason: "a directory begins with `/` or with `~/`".into(),
        part: Part::File,
    })?;
    Ok(path.canonicalize().unwrap_or(path))
}

fn span(slot: &mut u64, value: Value<'_>) -> Result<(), Wrong> {
    put::<Span, _>(slot, value)
}

fn globs(slot: &mut Vec<String>, value: Value<'_>) -> Result<(), Wrong> {
    let patterns: Vec<Spanned<String>> = read(value)?;
    for pattern in &patterns {
        let text = pattern.get_ref();
        let compiled = patterns::check(text).and_then(|()| compile([text]));
        compiled.map_err(|reason| Wrong {
            at: Some(pattern.span().start),
            reason,
            part: Part::File,
        })?;
    }
    let patterns: Vec<String> = patterns.into_iter().map(Spanned::into_inner).collect();
    compile(&patterns).map_err(|reason| Wrong {
        at: None,
        reason,
        part: Part::File,
    })?;
    *slot = patterns;
    Ok(())
}

fn compile<'a>(patterns: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    let compiled = Patterns::new(patterns.into_iter().map(String::as_str));
    compiled.map(drop).map_err(|error| error.to_string())
}

fn gates(config: &mut Config, value: Value<'_>) -> Result<(), Wrong> {
    let gates: std::collections::BTreeMap<Spanned<String>, Gate> = read(value)?;
    for name in gates.keys() {
        if Agent::named(name.get_ref()).is_none() {
            return Err(Wrong {
                at: Some(name.span().start),
                reason: format!("an agent is one of {}", Agent::names()),
                part: Part::File,
            });
        }
    }
    // The gates are merged by agent: a gate for one leaves the others
    // unchanged.
    let gates = gates.into_iter();
    config
        .gates
        .extend(gates.map(|(name, gate)| (name.into_inner(), gate)));
    Ok(())
}

fn most<T: PartialOrd>(in_force: &mut T, said: T) -> bool {
    let taken = said >= *in_force;
    if taken {
        *in_force = said;
    }
    taken
}

fn least<T: PartialOrd>(in_force: &mut T, said: T) -> bool {
    let taken = said <= *in_force;
    if taken {
        *in_force = said;
    }
    taken
}

/// Adds patterns; adds none if all of them together would be too large, since
/// the daemon compiles the effective ones when it starts.
fn more_globs(in_force: &mut Vec<String>, said: Vec<String>) -> bool {
    let mut all = in_force.clone();
    let taken = union(&mut all, said) && compile(&all).is_ok();
    if taken {
        *in_force = all;
    }
    taken
}

fn union(in_force: &mut Vec<String>, said: Vec<String>) -> bool {
    for more in said {
        if !in_force.contains(&more) {
            in_force.push(more);
        }
    }
    true
}

/// Applies the keys in a text that `whose` may set. Returns the entries that
/// are not in effect.
pub(super) fn take(config: &mut Config, text: &[u8], whose: Whose) -> Vec<Wrong> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            return vec![Wrong {
                at: Some(error.valid_up_to()),
                reason: "not UTF-8".into(),
                part: Part::File,
            }];
        }
    };
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => return vec![error.into()],
    };
    let mut wrong = Vec::new();
    for (name, value) in table {
        let (at, name) = (name.span().start, name.into_inner());
        let in_table = |key: &Key| {
            let rest = key.name.strip_prefix(&*name);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if !KEYS.iter().any(in_table) {
            wrong.extend(one(config, &name, at, value, whose));
            continue;
        }
        match value.into_inner() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    let at = key.span().start;
                    let name = format!("{name}.{}", key.get_ref());
                    wrong.extend(one(config, &name, at, value, whose));
                }
            }
            _ => wrong.push(Wrong {
                at: Some(at),
                reason: format!("`{name}` is a table, as [{name}]"),
                part: Part::File,
            }),
        }
    }
    wrong
}

fn one(
    config: &mut Config,
    name: &str,
    at: usize,
    value: Value<'_>,
    whose: Whose,
) -> Option<Wrong> {
    const MOST_NAME: usize = 64;
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        let name: String = name.chars().take(MOST_NAME).collect();
        return Some(Wrong {
            at: Some(at),
            reason: format!("there is no key {name:?}"),
            part: Part::Unknown,
        });
    };
    let part = Part::Key(key.name);
    let mut said = config.clone();
    if let Err(wrong) = (key.read)(&mut said, value) {
        return Some(Wrong {
            at: wrong.at.or(Some(at)),
            part,
            ..wrong
        });
    }
    let reason = match (whose, key.repository) {
        (Whose::User, _) => {
            *config = said;
            return None;
        }
        (Whose::Repository, None) => {
            format!("`{name}` can only be set in the user's configuration")
        }
        (Whose::Repository, Some((how, tighten))) => {
            if tighten(config, said) {
                return None;
            }
            format!("`{name}` keeps the user's value: a repository may only set {how}")
        }
    };
    Some(Wrong {
        at: Some(at),
        reason,
        part,
    })
}
