//! One run of an agent's program, from the user's words to its end.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Ask, Does, Stage};
use crate::children;
use crate::model::{Asked, Said};
use crate::wire::PATIENCE;

/// What the words to a sub-agent begin with, and no others.
const DELEGATED: &str = "A task for the sub-agent:";

/// What a conversation takes as long as nothing else is said, in tokens.
const TOKENS: u64 = 1_000;

/// What it takes when it has become too long for every agent's model.
const TOO_LONG: u64 = 195_000;

/// An agent at work. While its model thinks, nothing of it runs but what it has
/// sent to the background: the moment for users to change something.
pub struct Run<'s> {
    stage: &'s Stage,
    child: Child,
    log: PathBuf,
    main: Track,
    sub: Track,
    /// Whether the sub-agent's model is the one that thinks.
    in_sub: bool,
}

/// One conversation: the request that waits, and what was sent before it.
#[derive(Default)]
struct Track {
    sent: Vec<String>,
    asked: Option<Asked>,
}

impl<'s> Run<'s> {
    pub(super) fn new(stage: &'s Stage, ask: &Ask) -> Self {
        let log = stage.world.outside().join("agent.log");
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .expect("a log");
        let mut command = (stage.agent.command)(stage, ask);
        command
            .stdout(out.try_clone().expect("the log"))
            .stderr(out)
            .process_group(0);
        let child =
            children::start(&mut command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut run = Self {
            stage,
            child,
            log,
            main: Track::default(),
            sub: Track::default(),
            in_sub: false,
        };
        run.wait();
        run
    }

    /// All that the model was sent with the request that waits.
    pub fn sent(&mut self) -> String {
        self.track().sent.join("\n")
    }

    /// Whether a text is anywhere in the request that waits.
    pub fn holds(&mut self, text: &str) -> bool {
        let asked = self.track().asked.as_ref().expect("a request");
        asked.body.to_string().contains(text)
    }

    /// The model does something; what it is sent after it that it was not sent
    /// before: what the tool gave, and whatever was added.
    pub fn does(&mut self, does: &Does) -> String {
        let said = self.said(does);
        self.answer(&said, TOKENS);
        self.wait()
    }

    /// Reads a file once more, where the agent's own tool insists on that. It
    /// would not have to for touchmark.
    pub fn catches_up(&mut self, file: &'static str) -> String {
        match self.stage.agent.own_gate {
            true => self.does(&Does::Read(file)),
            false => String::new(),
        }
    }

    /// The same as `does`, and the provider says that the conversation has become too
    /// long, until the agent has compacted it.
    pub fn fills_up(&mut self, does: &Does) -> String {
        let said = self.said(does);
        self.answer(&said, TOO_LONG);
        self.wait()
    }

    /// The model has a sub-agent do a task; what it is sent after it.
    pub fn delegates(&mut self, sub: impl FnOnce(&mut Self)) -> String {
        let said = self.said(&Does::Delegate(format!("{DELEGATED} work.")));
        self.answer(&said, TOKENS);
        self.in_sub = true;
        self.sub = Track::default();
        self.wait();
        sub(self);
        let said = self.said(&Does::Report("It is done."));
        self.answer(&said, TOKENS);
        self.in_sub = false;
        let told = self.wait();
        match (self.stage.agent.call)(self.stage, &Does::Await(told.clone())) {
            Ok(said) => {
                self.answer(&said, TOKENS);
                told + &self.wait()
            }
            Err(_) => told,
        }
    }

    /// The model ends its turn, and the program ends.
    pub fn ends(mut self) {
        self.answer(&Said::Text("Done.".into()), TOKENS);
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a process's state") {
                break status;
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.words());
            // What it still wants to know is not the test's matter.
            if let Some(asked) = self.next() {
                asked.answer(&Said::Text("Done.".into()), TOKENS);
            }
        };
        assert!(status.success(), "{status}:\n{}", self.words());
    }

    fn said(&self, does: &Does) -> Said {
        (self.stage.agent.call)(self.stage, does).unwrap_or_else(|why| panic!("{does:?}: {why}"))
    }

    fn track(&mut self) -> &mut Track {
        match self.in_sub {
            true => &mut self.sub,
            false => &mut self.main,
        }
    }

    fn answer(&mut self, said: &Said, tokens: u64) {
        let asked = self.track().asked.take().expect("a request that waits");
        asked.answer(said, tokens);
    }

    /// Waits for the next request; what it was sent that the one before was not.
    fn wait(&mut self) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(asked) = self.next() {
                let track = self.track();
                let news = news(&track.sent, &asked.sent);
                track.sent.clone_from(&asked.sent);
                track.asked = Some(asked);
                return news;
            }
            if let Some(status) = self.child.try_wait().expect("a process's state") {
                panic!("it has ended, {status}:\n{}", self.words());
            }
            assert!(Instant::now() < end, "no request comes:\n{}", self.words());
        }
    }

    fn next(&mut self) -> Option<Asked> {
        let in_sub = self.in_sub;
        let mut model = self.stage.model.borrow_mut();
        model.next(Duration::from_millis(20), |asked| {
            asked.opening.contains(DELEGATED) == in_sub
        })
    }

    /// What the program has printed.
    fn words(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // What it has started as well, unless it has ended by itself.
        if let Ok(None) = self.child.try_wait() {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            let _ended = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = self.child.wait();
        }
    }
}

/// What is in a list more often than in another, in its order.
fn news(before: &[String], now: &[String]) -> String {
    let mut known: HashMap<&str, u32> = HashMap::new();
    for text in before {
        *known.entry(text).or_default() += 1;
    }
    let new = now
        .iter()
        .filter(|text| match known.get_mut(text.as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        });
    new.map(String::as_str).collect::<Vec<_>>().join("\n")
}
