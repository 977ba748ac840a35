//! HOOK-4 over 200 random sessions: an agent, a second one and a user in one
//! file. Every line is written once and is unique, so the test has on record
//! who has seen it, and whether a denial prevented something.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use touchmark_tests::hooks::{Heard, heard, schema, voice::Voice};
use touchmark_tests::wire::Client;
use touchmark_tests::{World, text};

const AGENT: &str = "claude";
const FILE: &str = "a.txt";
const STEPS: usize = 40;

fn sessions() -> u64 {
    let told = std::env::var("TOUCHMARK_SESSIONS").ok();
    told.and_then(|count| count.parse().ok()).unwrap_or(200)
}

/// Random numbers from a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }
}

/// A model and what it has seen of the file.
struct Model {
    voice: Voice,
    calls: u32,
    /// The file as the model last saw it, line by line; empty before its first
    /// read.
    copy: Vec<String>,
    /// The lines that it was ever shown, or wrote.
    knows: BTreeSet<String>,
    /// The file's content when the model was last shown part of it, or wrote
    /// it. A line that returned since is a change.
    seen: Vec<String>,
    /// Whether it was told of changes since its last read.
    told: bool,
    /// Whether it was told that it has not seen all changes.
    warned: bool,
}

#[derive(Debug, Default)]
struct Counts {
    edits: u32,
    denied: u32,
    /// Writes to a file of which others have changed only other lines.
    beside: u32,
    beside_denied: u32,
}

struct Play<'a> {
    world: &'a World,
    client: Client,
    numbers: Numbers,
    /// The number of lines made so far.
    made: u32,
    counts: Counts,
}

impl Play<'_> {
    fn disk(&self) -> Vec<String> {
        let text = fs::read_to_string(self.world.path(FILE)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn save(&self, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.world.path(FILE), text).unwrap();
    }

    fn line(&mut self, by: &str) -> String {
        self.made += 1;
        format!("{by} made line {}.", self.made)
    }

    fn say(&mut self, model: &mut Model, event: &Value) -> Heard {
        let answer = self
            .client
            .ok("hook/event", json!({"agent": AGENT, "input": event}));
        let printed: Value = serde_json::from_str(&text(&answer, "stdout")).unwrap();
        schema::check(AGENT, text(event, "hook_event_name").as_str(), &printed);
        if answer["ack"].is_string() {
            self.client.ok("hook/ack", json!({"ack": answer["ack"]}));
        }
        let heard = heard(AGENT, &printed);
        if let Heard::Told(words) | Heard::Denied(words) = &heard {
            model.told = true;
            model.seen = self.disk();
            let not_all = ["has not been read", "More lines have changed"];
            model.warned |= not_all.iter().any(|said| words.contains(said));
            // Lines of the file stand in it as `7: text`.
            let lines = words.lines().filter_map(|line| line.split_once(": "));
            let lines = lines.filter(|(number, _)| number.parse::<u32>().is_ok());
            model.knows.extend(lines.map(|(_, line)| line.to_owned()));
        }
        heard
    }

    fn user(&mut self) {
        let mut lines = self.disk();
        let at = self.numbers.below(lines.len().max(1));
        match self.numbers.below(3) {
            _ if lines.is_empty() => lines.push(self.line("user")),
            0 => lines[at] = self.line("user"),
            1 => {
                let line = self.line("user");
                lines.insert(at, line);
            }
            _ => drop(lines.remove(at)),
        }
        self.save(&lines);
    }

    fn reads(&mut self, model: &mut Model) {
        let text = fs::read_to_string(self.world.path(FILE)).unwrap();
        let call = self.call(model);
        let (before, after) = (
            model.voice.before_read(&call, FILE),
            model.voice.after_read(&call, FILE, &text),
        );
        self.say(model, &before);
        self.say(model, &after);
        model.copy = self.disk();
        model.knows.extend(model.copy.iter().cloned());
        model.seen.clone_from(&model.copy);
        model.told = false;
        model.warned = false;
    }

    fn call(&self, model: &mut Model) -> String {
        model.calls += 1;
        format!("call-{}", model.calls)
    }

    /// Replaces one line of the model's copy by others, with the edit tool.
    fn edits(&mut self, model: &mut Model) {
        let disk = self.disk();
        // Who has read nothing may know a line from elsewhere.
        let believed = match (model.copy.is_empty(), model.knows.is_empty()) {
            (true, true) => disk.clone(),
            (true, false) => model.knows.iter().cloned().collect(),
            (false, _) => model.copy.clone(),
        };
        if believed.is_empty() {
            return;
        }
        let old = believed[self.numbers.below(believed.len())].clone();
        let new: Vec<String> = (0..=self.numbers.below(2))
            .map(|_| self.line("agent"))
            .collect();
        // Without it the tool fails by itself.
        let Some(at) = disk.iter().position(|line| *line == old) else {
            return;
        };
        let mut result = disk.clone();
        result.splice(at..=at, new.clone());
        let call = self.call(model);
        let words = new.join("\n");
        let before = model.voice.before_edit(&call, FILE, &old, &words);
        let after = model.voice.after_edit(&call, FILE, &old, &words);
        model.knows.insert(old.clone());
        if self.writes(model, &disk, &result, &new, &before, &after) {
            let at = model.copy.iter().position(|line| *line == old);
            if let Some(at) = at {
                model.copy.splice(at..=at, new);
            }
        }
    }

    /// Writes the model's whole copy, with one additional line.
    fn replaces(&mut self, model: &mut Model) {
        let disk = self.disk();
        let mut result = model.copy.clone();
        let new = vec![self.line("agent")];
        result.push(new[0].clone());
        let text: String = result.iter().map(|line| format!("{line}\n")).collect();
        let call = self.call(model);
        let before = model.voice.before_write(&call, FILE, &text);
        let after = model.voice.after_write(&call, FILE, &text);
        if self.writes(model, &disk, &result, &new, &before, &after) {
            model.copy = result;
        }
    }

    /// Runs a write and returns whether it was allowed. A denial must have
    /// prevented something, and no line may be lost or restored without the
    /// model being told.
    fn writes(
        &mut self,
        model: &mut Model,
        disk: &[String],
        result: &[String],
        new: &[String],
        before: &Value,
        after: &Value,
    ) -> bool {
        self.counts.edits += 1;
        let goes: Vec<&String> = disk.iter().filter(|line| !result.contains(line)).collect();
        let again = goes.iter().any(|line| !model.seen.contains(line));
        let unseen: Vec<&&String> = goes
            .iter()
            .filter(|line| !model.knows.contains(**line))
            .collect();
        let back = result
            .iter()
            .filter(|line| !disk.contains(line) && !new.contains(line));
        let back: Vec<&String> = back.collect();
        let news = *disk != model.seen && !model.copy.is_empty();
        let beside = news && unseen.is_empty() && back.is_empty() && !again;
        self.counts.beside += u32::from(beside);
        let harm = (!unseen.is_empty() && !model.warned) || (!back.is_empty() && !model.told);
        let state = format!("{before}\ndisk {disk:#?}\nresult {result:#?}");
        let (unseen, back) = (format!("{unseen:?}"), format!("{back:?}"));
        match self.say(model, before) {
            Heard::Denied(reason) => {
                self.counts.denied += 1;
                self.counts.beside_denied += u32::from(beside);
                // A file never read is not replaced at once.
                let never = model.copy.is_empty() && reason.contains("has not been read");
                assert!(
                    harm || back != "[]" || unseen != "[]" || never || again,
                    "it would have destroyed nothing: {reason}\n{state}"
                );
                false
            }
            _ => {
                assert!(!harm, "gone unannounced: {unseen}; back: {back}\n{state}");
                self.save(result);
                self.say(model, after);
                model.knows.extend(new.iter().cloned());
                model.seen = result.to_vec();
                true
            }
        }
    }
}

#[test]
fn hook4_nothing_is_lost_unannounced_and_nothing_denied_for_nothing() {
    let mut world = World::new();
    let mut counts = Counts::default();
    for seed in 1..=sessions() {
        let mut play = Play {
            world: &world,
            client: world.client(),
            numbers: Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            made: 0,
            counts: Counts::default(),
        };
        let lines: Vec<String> = (0..12)
            .map(|_| play.line(&format!("seed {seed}")))
            .collect();
        play.save(&lines);
        let mut models = ["one", "two"].map(|name| Model {
            voice: Voice::new(AGENT, &format!("{name}-{seed}"), world.workspace()),
            calls: 0,
            copy: Vec::new(),
            knows: BTreeSet::new(),
            seen: Vec::new(),
            told: false,
            warned: false,
        });
        for _ in 0..STEPS {
            let model = &mut models[play.numbers.below(2)];
            match play.numbers.below(8) {
                0 | 1 => play.user(),
                2 => play.reads(model),
                3 => play.replaces(model),
                _ => play.edits(model),
            }
        }
        counts.edits += play.counts.edits;
        counts.denied += play.counts.denied;
        counts.beside += play.counts.beside;
        counts.beside_denied += play.counts.beside_denied;
    }
    // A denial costs its agent one turn.
    println!("{counts:?}");
    assert!(counts.beside > 100, "{counts:?}");
    assert!(counts.beside_denied * 100 <= counts.beside, "{counts:?}");
    world.healthy();
}
