//! All keys: how each is read, and what a repository may do with it (SEC-5).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use touchmark_engine::patterns::{self, Patterns};

use super::units::{Bytes, Connections, FrameBytes, Keep, KeepBytes, Span, TextBytes};
use super::{Config, Durability, Endpoint, Gate, Headers, Part, Paths, Unsaved, Whose};
use crate::hooks::agent::Agent;
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
    /// Whether a changed value waits for the daemon's next start.
    pub(super) at_restart: bool,
    read: Read,
    show: fn(&Config) -> Option<toml::Value>,
    copy: fn(&mut Config, &Config),
    repository: Option<(&'static str, Tighten)>,
}

impl Key {
    const fn at_restart(mut self) -> Self {
        self.at_restart = true;
        self
    }

    /// Says what a repository may do with the key, as in the documentation.
    const fn repository_may(mut self, how: &'static str, tighten: Tighten) -> Self {
        self.repository = Some((how, tighten));
        self
    }

    /// Returns what the workspace's file may do with the key, as in the
    /// documentation; `None` if only the user's file may set it.
    pub(super) fn repository(&self) -> Option<&'static str> {
        self.repository.map(|(how, _)| how)
    }

    /// Returns the key's value as a file says it; `None` if it has none.
    pub(super) fn show(&self, config: &Config) -> Option<toml::Value> {
        (self.show)(config)
    }

    /// Returns a configuration with the value that the key has in another one;
    /// `None` if it has the same.
    pub(super) fn changed(&self, config: &Config, new: &Config) -> Option<Config> {
        let mut changed = config.clone();
        (self.copy)(&mut changed, new);
        (changed != *config).then_some(changed)
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

/// What was found in a file's text.
#[derive(Default)]
pub(super) struct Taken {
    /// The keys that are in effect, each with the place where it begins, in
    /// bytes.
    pub(super) set: Vec<(&'static str, usize)>,
    /// What is not in effect.
    pub(super) wrong: Vec<Wrong>,
}

impl Taken {
    fn add(&mut self, at: usize, one: Result<&'static str, Wrong>) {
        match one {
            Ok(key) => self.set.push((key, at)),
            Err(wrong) => self.wrong.push(wrong),
        }
    }
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
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter()
}

/// One key: its name; the fields of [`Config`]; how a value is read, given the
/// configuration; how it is shown. In place of the latter two, `as` names the
/// type as which one field is read and shown, `by` the function that reads it.
macro_rules! key {
    ($name:literal, $field:ident as $written:ty) => {
        key!(
            $name,
            [$field],
            |config, value| {
                config.$field = read::<$written>(value)?.into();
                Ok(())
            },
            |config| shown(&<$written>::from(config.$field.clone()))
        )
    };
    ($name:literal, $field:ident by $read:ident) => {
        key!(
            $name,
            [$field],
            |config, value| {
                config.$field = $read(value)?;
                Ok(())
            },
            |config| shown(&config.$field)
        )
    };
    ($name:literal, [$($field:ident),+], $read:expr, $show:expr) => {
        Key {
            name: $name,
            at_restart: false,
            read: $read,
            show: $show,
            copy: |to, from| {
                $(to.$field.clone_from(&from.$field);)+
            },
            repository: None,
        }
    };
}

/// All keys. A repository may not set what depends on the machine and the user
/// (`case`, `watch`, `idle_exit`), on whom changes are attributed to (`marks`),
/// how long things are stored, or what leaves the machine (`telemetry`). Nor
/// may it set what would lock clients out (`limits.frame`,
/// `limits.connections`) or make different calls count as equal
/// (`calls.rules`).
const KEYS: &[Key] = &[
    key!(
        "case",
        [case],
        |config, value| {
            config.case = Some(read(value)?);
            Ok(())
        },
        |config| shown(config.case.as_ref()?)
    )
    .at_restart(),
    key!("durability", durability as Durability)
        .at_restart()
        .repository_may("`\"power\"`", |config, said| {
            let taken = said.durability == Durability::Power;
            if taken {
                config.durability = said.durability;
            }
            taken || said.durability == config.durability
        }),
    key!("watch", watch as Choice).at_restart(),
    key!("off", off by directories),
    key!("idle_exit", idle_exit as Span),
    key!("marks.edit_ttl", edit_ttl as Span),
    key!("marks.flag_ttl", flag_ttl as Span),
    key!("marks.hook_ttl", hook_ttl as Span),
    key!("marks.command_ttl", command_ttl as Span),
    key!("marks.late", late as Span),
    key!("limits.frame", frame as FrameBytes).at_restart(),
    key!("limits.connections", connections as Connections),
    key!("limits.read_text", read_text as TextBytes).repository_may(SMALLER, |config, said| {
        least(&mut config.read_text, said.read_text)
    }),
    key!("contents.total", contents_total as Bytes)
        .at_restart()
        .repository_may(SMALLER, |config, said| {
            least(&mut config.contents_total, said.contents_total)
        }),
    key!("contents.file", contents_file as Bytes)
        .at_restart()
        .repository_may(SMALLER, |config, said| {
            least(&mut config.contents_file, said.contents_file)
        }),
    key!("contents.exclude", contents_exclude by globs)
        .at_restart()
        .repository_may(MORE, |config, said| {
            more_globs(&mut config.contents_exclude, said.contents_exclude)
        }),
    key!("scope.exclude", scope_exclude by globs).at_restart(),
    key!("guard.protect", guard_protect by globs)
        .at_restart()
        .repository_may(MORE, |config, said| {
            more_globs(&mut config.guard_protect, said.guard_protect)
        }),
    key!(
        "versions.keep",
        [versions_per_path, versions_age],
        |config, value| {
            let Keep { count, age } = read(value)?;
            config.versions_per_path = count.unwrap_or(config.versions_per_path);
            config.versions_age = age.map_or(config.versions_age, Into::into);
            Ok(())
        },
        |config| shown(&Keep {
            count: Some(config.versions_per_path),
            age: Some(config.versions_age.into()),
        })
    ),
    key!("sessions.keep", sessions_keep as Span),
    key!(
        "recovery.keep",
        [recovery_bytes, recovery_age],
        |config, value| {
            let KeepBytes { bytes, age } = read(value)?;
            config.recovery_bytes = bytes.map_or(config.recovery_bytes, Into::into);
            config.recovery_age = age.map_or(config.recovery_age, Into::into);
            Ok(())
        },
        |config| shown(&KeepBytes {
            bytes: Some(config.recovery_bytes.into()),
            age: Some(config.recovery_age.into()),
        })
    )
    .at_restart(),
    key!("recovery.ignored", recovery_ignored as Bytes).at_restart(),
    key!("calls.keep", calls_keep as u64).repository_may(SMALLER, |config, said| {
        least(&mut config.calls_keep, said.calls_keep)
    }),
    key!("calls.age", calls_age as Span).repository_may(SMALLER, |config, said| {
        least(&mut config.calls_age, said.calls_age)
    }),
    key!("calls.bytes", calls_bytes as Bytes).repository_may(SMALLER, |config, said| {
        least(&mut config.calls_bytes, said.calls_bytes)
    }),
    key!("calls.never", calls_never as Vec<String>).repository_may(MORE, |config, said| {
        union(&mut config.calls_never, said.calls_never)
    }),
    key!(
        "calls.rules",
        [calls_rules],
        |config, value| {
            // The rules are merged by tool: a rule for one leaves the others
            // unchanged.
            let rules: BTreeMap<String, Vec<String>> = read(value)?;
            config.calls_rules.extend(rules);
            Ok(())
        },
        |config| shown(&config.calls_rules)
    ),
    key!("dedup.enabled", dedup as bool).repository_may("`false`", |config, said| {
        least(&mut config.dedup, said.dedup)
    }),
    key!("hooks.replace_repeats", replace_repeats as bool)
        .repository_may("`false`", |config, said| {
            least(&mut config.replace_repeats, said.replace_repeats)
        }),
    key!("hooks.gate", gate as Gate).repository_may(
        "a later one of `off`, `destructive`, `strict`",
        |config, said| most(&mut config.gate, said.gate),
    ),
    key!("hooks.gates", [gates], gates, |config| shown(&config.gates)).repository_may(
        "later ones",
        |config, said| {
            // For an agent that the user did not name, `hooks.gate` applies.
            let tightened = |(agent, gate): (&String, &Gate)| *gate >= config.gate(agent);
            let taken = said.gates.iter().all(tightened);
            if taken {
                config.gates = said.gates;
            }
            taken
        },
    ),
    key!("hooks.unsaved", unsaved as Unsaved)
        .repository_may("a later one of `off`, `deny`, `ask`", |config, said| {
            most(&mut config.unsaved, said.unsaved)
        }),
    key!("telemetry.enabled", telemetry as bool),
    key!(
        "telemetry.endpoint",
        [telemetry_endpoint],
        |config, value| {
            let text: String = read(value)?;
            config.telemetry_endpoint = Endpoint::configured(&text).map_err(reason)?;
            Ok(())
        },
        |config| {
            let said = config.telemetry_endpoint.as_ref();
            shown(said.map_or("", Endpoint::as_str))
        }
    ),
    key!(
        "telemetry.headers",
        [telemetry_headers],
        |config, value| {
            config.telemetry_headers = Headers::new(read(value)?).map_err(reason)?;
            Ok(())
        },
        // Their values may be passwords.
        |config| {
            let names = config.telemetry_headers.iter().map(|(name, _)| name);
            shown(
                &names
                    .map(|name| (name, "(not shown)"))
                    .collect::<BTreeMap<_, _>>(),
            )
        }
    ),
    key!("telemetry.paths", telemetry_paths as Paths),
    key!("desktop.losses", desktop_losses as bool),
    key!("worktrees.notice", worktrees_notice as bool).repository_may("`false`", |config, said| {
        least(&mut config.worktrees_notice, said.worktrees_notice)
    }),
];

/// Returns a value as TOML; `None` if TOML cannot express it, as a path that is
/// not UTF-8.
fn shown<T: Serialize + ?Sized>(value: &T) -> Option<toml::Value> {
    toml::Value::try_from(value).ok()
}

fn reason(reason: String) -> Wrong {
    Wrong {
        at: None,
        reason,
        part: Part::File,
    }
}

fn read<'de, T: Deserialize<'de>>(value: Value<'de>) -> Result<T, Wrong> {
    Ok(T::deserialize(ValueDeserializer::from(value))?)
}

fn directories(value: Value<'_>) -> Result<Vec<PathBuf>, Wrong> {
    let listed: Vec<Spanned<String>> = read(value)?;
    listed.into_iter().map(directory).collect()
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

/// Reads a list of patterns, each of which is right, and all of which can be
/// compiled together.
fn globs(value: Value<'_>) -> Result<Vec<String>, Wrong> {
    let patterns: Vec<Spanned<String>> = read(value)?;
    for pattern in &patterns {
        let text = pattern.get_ref();
        let compiled = patterns::check(text).and_then(|()| compile([text]));
        compiled.map_err(|why| Wrong {
            at: Some(pattern.span().start),
            ..reason(why)
        })?;
    }
    let patterns: Vec<String> = patterns.into_iter().map(Spanned::into_inner).collect();
    compile(&patterns).map_err(reason)?;
    Ok(patterns)
}

fn compile<'a>(patterns: impl IntoIterator<Item = &'a String>) -> Result<(), String> {
    let compiled = Patterns::new(patterns.into_iter().map(String::as_str));
    compiled.map(drop).map_err(|error| error.to_string())
}

fn gates(config: &mut Config, value: Value<'_>) -> Result<(), Wrong> {
    let gates: BTreeMap<Spanned<String>, Gate> = read(value)?;
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

/// Applies the keys in a text that `whose` may set.
pub(super) fn take(config: &mut Config, text: &[u8], whose: Whose) -> Taken {
    let mut taken = Taken::default();
    let table = match parsed(text) {
        Ok(table) => table,
        Err(wrong) => {
            taken.wrong.push(wrong);
            return taken;
        }
    };
    for (name, value) in table {
        let (at, name) = (name.span().start, name.into_inner());
        let in_table = |key: &Key| {
            let rest = key.name.strip_prefix(&*name);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if !KEYS.iter().any(in_table) {
            taken.add(at, one(config, &name, at, value, whose));
            continue;
        }
        match value.into_inner() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    let at = key.span().start;
                    let name = format!("{name}.{}", key.get_ref());
                    taken.add(at, one(config, &name, at, value, whose));
                }
            }
            _ => taken.wrong.push(Wrong {
                at: Some(at),
                reason: format!("`{name}` is a table, as [{name}]"),
                part: Part::File,
            }),
        }
    }
    taken
}

fn parsed(text: &[u8]) -> Result<DeTable<'_>, Wrong> {
    let text = str::from_utf8(text).map_err(|error| Wrong {
        at: Some(error.valid_up_to()),
        reason: "not UTF-8".into(),
        part: Part::File,
    })?;
    Ok(DeTable::parse(text)?.into_inner())
}

/// Applies one key. Returns its name.
fn one(
    config: &mut Config,
    name: &str,
    at: usize,
    value: Value<'_>,
    whose: Whose,
) -> Result<&'static str, Wrong> {
    const MOST_NAME: usize = 64;
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        let name: String = name.chars().take(MOST_NAME).collect();
        return Err(Wrong {
            at: Some(at),
            reason: format!("there is no key {name:?}"),
            part: Part::Unknown,
        });
    };
    let part = Part::Key(key.name);
    let mut said = config.clone();
    (key.read)(&mut said, value).map_err(|wrong| Wrong {
        at: wrong.at.or(Some(at)),
        part,
        ..wrong
    })?;
    let reason = match (whose, key.repository) {
        (Whose::User, _) => {
            *config = said;
            return Ok(key.name);
        }
        (Whose::Repository, None) => {
            format!("`{name}` can only be set in the user's configuration")
        }
        (Whose::Repository, Some((how, tighten))) => {
            if tighten(config, said) {
                return Ok(key.name);
            }
            format!("`{name}` keeps the user's value: a repository may only set {how}")
        }
    };
    Err(Wrong {
        at: Some(at),
        reason,
        part,
    })
}
