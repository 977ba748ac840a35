//! The conformance vectors of `bindings/conformance`, whose README has the
//! format: reading, filling in, matching, and playing on any wire.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use serde_json::{Map, Value};

use crate::wire::{Answer, PATIENCE};
use crate::{World, sha256};

const HOUR_MS: u64 = 3600 * 1000;

/// One vector.
pub struct Vector {
    /// Its family and name.
    pub name: String,
    /// Its JSON.
    pub text: Value,
}

impl Vector {
    /// Returns whether it applies to wires other than JSON.
    pub fn is_typed(&self) -> bool {
        self.text["wires"].is_null()
    }

    /// Creates a world with its files and a daemon.
    pub fn world(&self) -> World {
        let mut world = World::asleep();
        for (path, text) in self.text["files"].as_object().into_iter().flatten() {
            world.file(path, text.as_str().expect("a text"));
        }
        world.start();
        world
    }

    fn steps(&self) -> &[Value] {
        self.text["steps"].as_array().expect("steps")
    }
}

/// Returns all vectors, by family and position.
pub fn all() -> Vec<Vector> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bindings/conformance");
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .expect("the vectors")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    let mut vectors = Vec::new();
    for file in files {
        let family = file.file_stem().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&file).expect("a readable file");
        let read: Vec<Value> = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        vectors.extend(read.into_iter().map(|text| Vector {
            name: format!("{family}: {}", text["name"].as_str().expect("a name")),
            text,
        }));
    }
    vectors
}

/// Returns every method that some vector calls.
pub fn methods() -> Vec<String> {
    let mut methods: Vec<String> = all()
        .iter()
        .flat_map(|vector| vector.steps().to_vec())
        .filter_map(|step| step["call"].as_str().map(str::to_owned))
        .collect();
    methods.sort();
    methods.dedup();
    methods
}

/// A connection on which vectors are played.
pub trait Wire {
    /// Sends a request and returns its answer.
    fn call(&mut self, method: &str, params: &Value) -> Answer;
    /// Returns the parameters of the next notification.
    fn event(&mut self) -> Value;
}

/// Plays a vector. Panics if an answer does not match.
pub fn play(vector: &Vector, world: &World, wire: &mut dyn Wire) {
    let mut kept = Kept {
        root: world.workspace().to_owned(),
        values: HashMap::new(),
    };
    for (number, step) in vector.steps().iter().enumerate() {
        if let Err(wrong) = take(step, &mut kept, world, wire) {
            panic!("{}, step {}: {wrong}", vector.name, number + 1);
        }
    }
}

fn take(step: &Value, kept: &mut Kept, world: &World, wire: &mut dyn Wire) -> Result<(), String> {
    if let Some(method) = step["call"].as_str() {
        let empty = Value::Object(Map::new());
        let params = kept.fill(step.get("params").unwrap_or(&empty))?;
        return came(step, wire.call(method, &params), kept);
    }
    if let Some(wanted) = step.get("event") {
        let end = Instant::now() + PATIENCE;
        loop {
            let event = wire.event();
            match kept.matches(wanted, Some(&event), "event") {
                Ok(()) => return Ok(()),
                Err(wrong) if Instant::now() > end => return Err(wrong),
                Err(_) => {}
            }
        }
    }
    somebody_does(step, world);
    Ok(())
}

fn came(step: &Value, answer: Answer, kept: &mut Kept) -> Result<(), String> {
    match (step.get("error"), answer) {
        (Some(wanted), Err(error)) => {
            kept.matches(wanted, Some(&error.data), "error")?;
            match step["number"].as_i64() {
                Some(number) if number != error.code => {
                    Err(format!("number: {} instead of {number}", error.code))
                }
                _ => Ok(()),
            }
        }
        (Some(_), Ok(result)) => Err(format!("{result} instead of an error")),
        (None, Err(error)) => Err(format!("refused: {error} {}", error.data)),
        (None, Ok(result)) => kept.matches(&step["result"], Some(&result), "result"),
    }
}

fn somebody_does(step: &Value, world: &World) {
    let path = |name: &str| world.path(step[name].as_str().expect("a path"));
    if step["write"].is_string() {
        let bytes = match step["base64"].as_str() {
            Some(text) => unbase64(text),
            None => step["text"].as_str().expect("a text").into(),
        };
        world.file(step["write"].as_str().expect("a path"), bytes);
    } else if step["delete"].is_string() {
        fs::remove_file(path("delete")).expect("a file to remove");
    } else if step["rename"].is_string() {
        fs::rename(path("rename"), path("to")).expect("a file to rename");
    } else {
        panic!("no step: {step}");
    }
}

/// The workspace, and the values that were stored by name.
struct Kept {
    root: PathBuf,
    values: HashMap<String, Value>,
}

impl Kept {
    /// Returns parameters with the special strings filled in.
    fn fill(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::Object(object) => Value::Object(
                object
                    .iter()
                    .map(|(name, one)| Ok((name.clone(), self.fill(one)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Value::Array(array) => array
                .iter()
                .map(|one| self.fill(one))
                .collect::<Result<_, _>>()?,
            Value::String(text) if text.starts_with('$') => self.special(text)?,
            other => other.clone(),
        })
    }

    fn special(&self, text: &str) -> Result<Value, String> {
        let root = self.root.to_str().ok_or("a workspace that is not UTF-8")?;
        let known = match text[1..].split_once(':') {
            Some(("hash", content)) => Some(sha256(content).into()),
            Some(("path", "")) => Some(root.into()),
            Some(("path", path)) => Some(format!("{root}/{path}").into()),
            Some(("uri", name)) => Some(format!("file://{root}/{name}").into()),
            Some(_) => None,
            None => self.values.get(&text[1..]).cloned(),
        };
        known.ok_or_else(|| format!("{text} means nothing here"))
    }

    /// Checks whether `got` matches. The error says where and how it differs.
    fn matches(&mut self, wanted: &Value, got: Option<&Value>, at: &str) -> Result<(), String> {
        let got = got.filter(|value| !value.is_null());
        match (wanted, got) {
            (Value::Null, None) => Ok(()),
            (Value::String(text), _) if text.starts_with('$') => self.expects(text, got, at),
            (Value::Object(wanted), Some(Value::Object(got))) => {
                wanted.iter().try_for_each(|(name, one)| {
                    self.matches(one, got.get(name), &format!("{at}.{name}"))
                })
            }
            (Value::Array(wanted), Some(Value::Array(got))) if wanted.len() == got.len() => wanted
                .iter()
                .zip(got)
                .enumerate()
                .try_for_each(|(n, (one, got))| {
                    self.matches(one, Some(got), &format!("{at}[{n}]"))
                }),
            (_, Some(got)) if wanted == got => Ok(()),
            (_, Some(got)) => Err(format!("{at}: {got} instead of {wanted}")),
            (_, None) => Err(format!("{at}: nothing instead of {wanted}")),
        }
    }

    fn expects(&mut self, text: &str, got: Option<&Value>, at: &str) -> Result<(), String> {
        let wrong = || match got {
            Some(got) => Err(format!("{at}: {got} instead of {text}")),
            None => Err(format!("{at}: nothing instead of {text}")),
        };
        if text == "$absent" {
            return if got.is_none() { Ok(()) } else { wrong() };
        }
        let Some(value) = got else { return wrong() };
        let right = match text[1..].split_once(':') {
            None if text == "$any" => true,
            None if text == "$time" => value.as_u64().is_some_and(|time| {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let now = now.map_or(0, |now| now.as_millis().try_into().unwrap_or(0));
                time.abs_diff(now) < HOUR_MS
            }),
            Some(("keep", name)) => {
                self.values.insert(name.into(), value.clone());
                true
            }
            Some(("contains", part)) => value.as_str().is_some_and(|whole| whole.contains(part)),
            _ => self.special(text)? == *value,
        };
        if right { Ok(()) } else { wrong() }
    }
}

/// Decodes standard base64.
fn unbase64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = DIGITS.iter().position(|known| *known == digit);
        bits = (bits << 6) | u32::try_from(value.expect("a base64 digit")).expect("six bits");
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).expect("a byte"));
        }
    }
    bytes
}
