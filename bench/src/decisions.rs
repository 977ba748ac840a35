//! Measures decisions of hooks, on a quiet machine and next to two busy loops.

use std::fs;
use std::hint;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use touchmark_client::blocking::Client;
use touchmark_proto::FreeJson;
use touchmark_proto::hooks::HookEvent;

use crate::floor::Echo;
use crate::goal::{self, Goal};
use crate::part::Part;
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{World, read_of, session};
use crate::{Options, progress};

/// The number of threads that only use a processor.
const LOOPS: usize = 2;

/// The number of lines of the edited file.
const LINES: usize = 1_000;

const FILE: &str = "edited.txt";
const SESSION: &str = "decisions";

/// The durations of the decisions.
#[derive(Default)]
struct Measured {
    floor: Samples,
    /// An edit of a file whose current content the session has read.
    plain: Samples,
    /// An edit of a file that another writer has changed elsewhere, so texts
    /// are compared.
    beside: Samples,
    /// A write of a whole file over such a change, which is denied and lists
    /// the changed lines.
    denied: Samples,
}

pub(crate) fn part(options: &Options) -> Result<Part> {
    let mut part = Part::new(
        "Decisions of hooks",
        "The time that an agent waits before a tool that writes to a file of 1,000 lines: the \
         hook's request, without the hook's process. The floor is a ping-pong at the same time.",
    );
    for loops in [0, LOOPS] {
        progress(&format!("decisions of hooks beside {loops} busy loops"));
        let over = AtomicBool::new(false);
        let measured = thread::scope(|scope| {
            for _ in 0..loops {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        hint::spin_loop();
                    }
                });
            }
            let measured = measure(options.pick(60, 500), options);
            over.store(true, Ordering::Relaxed);
            measured
        });
        tell(&mut part, loops, &measured?);
    }
    Ok(part)
}

fn measure(rounds: usize, options: &Options) -> Result<Measured> {
    let world = World::new(&options.binary, 1)?;
    let (_daemon, client) = world.start()?;
    let echo = Echo::start(world.scratch())?;
    let mut pinger = echo.connect()?;
    let (session, path) = (session(SESSION)?, world.tree.root.join(FILE));
    let mut measured = Measured::default();
    for round in 0..rounds {
        let mut agent = Agent {
            client: &client,
            path: &path,
            call: format!("{round}"),
        };
        measured.floor.time(|| pinger.ping())?;
        let lines: Vec<String> = (1..=LINES)
            .map(|line| format!("line {line} of round {round}"))
            .collect();
        let mut text = lines.join("\n") + "\n";
        fs::write(&path, &text)?;
        client.call(read_of(&session, FILE, true))?;
        agent.edits(&mut text, "line 500 ", &mut measured.plain)?;
        // Another writer changes the file.
        text = text.replacen("line 10 ", "line ten ", 1);
        fs::write(&path, &text)?;
        agent.edits(&mut text, "line 700 ", &mut measured.beside)?;
        fs::write(&path, text.replacen("line 900 ", "line nine hundred ", 1))?;
        let input = json!({"file_path": path, "content": text});
        let answer = measured
            .denied
            .time(|| agent.hears("PreToolUse", "Write", &input))?;
        ensure!(answer.contains("deny"), "a change is overwritten: {answer}");
    }
    Ok(measured)
}

/// Plays Claude Code's hooks.
struct Agent<'a> {
    client: &'a Client,
    path: &'a Path,
    call: String,
}

impl Agent<'_> {
    /// Returns what the hook of an event prints.
    fn hears(&self, event: &str, tool: &str, input: &Value) -> Result<String> {
        let event = HookEvent {
            agent: "claude".into(),
            input: FreeJson(json!({
                "session_id": SESSION, "cwd": self.path.parent(), "hook_event_name": event,
                "tool_name": tool, "tool_use_id": format!("{tool} {}", self.call),
                "tool_input": input, "tool_response": {},
            })),
        };
        Ok(self.client.call(event)?.stdout)
    }

    /// Replaces a text in the file. Measures only the decision before the edit.
    fn edits(&mut self, text: &mut String, old: &str, decision: &mut Samples) -> Result<()> {
        self.call.push('e');
        let new = format!("{old}by the agent ");
        let input = json!({"file_path": self.path, "old_string": old, "new_string": new});
        let answer = decision.time(|| self.hears("PreToolUse", "Edit", &input))?;
        ensure!(answer == "{}", "an edit is not let through: {answer}");
        *text = text.replacen(old, &new, 1);
        fs::write(self.path, &*text)?;
        self.hears("PostToolUse", "Edit", &input)?;
        Ok(())
    }
}

fn tell(part: &mut Part, loops: usize, measured: &Measured) {
    let rows = [
        ("ping-pong", &measured.floor),
        ("an edit", &measured.plain),
        ("an edit beside a change", &measured.beside),
        ("a file over a change, denied", &measured.denied),
    ];
    let floor = measured.floor.p50();
    for (what, samples) in rows {
        let row = Row::of(format!("{what}, {loops} busy loops"), samples);
        part.rows
            .push(row.beside("ping-pong", samples.p50(), floor));
    }
    if loops == LOOPS {
        let all = [&measured.plain, &measured.beside, &measured.denied];
        let slowest = all.map(|samples| samples.points().p99).into_iter().max();
        let slowest = slowest.unwrap_or_default();
        part.goals.push(
            Goal::new(
                "a hook's decision, 2 busy loops, p99",
                units::duration(slowest),
            )
            .beside("ping-pong", units::duration(measured.floor.points().p99))
            .at_most(50.0, "ms", goal::millis(slowest)),
        );
    }
}
