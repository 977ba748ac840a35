//! One run of an agent's program, from the prompt to its exit.

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

/// How each prompt to a sub-agent begins. No other prompt begins with it.
const DELEGATED: &str = "A task for the sub-agent:";

/// The size of a conversation that the model reports by default, in tokens.
const TOKENS: u64 = 1_000;

/// A reported size that is too long for every agent's model, in tokens.
const TOO_LONG: u64 = 195_000;

/// A running agent. While its model is thinking, only the agent's background
/// commands run. Tests change files as the user in that time.
pub struct Run<'s> {
    stage: &'s Stage,
    child: Child,
    log: PathBuf,
    main: Track,
    sub: Track,
    /// Whether the request is the sub-agent's.
    in_sub: bool,
}

/// One conversation: the unanswered request, and all texts that were sent
/// before it.
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

    /// Returns all text that the model was sent, the unanswered request
    /// included.
    pub fn sent(&mut self) -> String {
        self.track().sent.join("\n")
    }

    /// Returns whether the unanswered request contains a text.
    pub fn holds(&mut self, text: &str) -> bool {
        let asked = self.track().asked.as_ref().expect("a request");
        asked.body.to_string().contains(text)
    }

    /// Performs an action of the model. Returns what is new in its next
    /// request: the tool's result, and anything that was added to it.
    pub fn does(&mut self, does: &Does) -> String {
        let said = self.said(does);
        self.answer(&said, TOKENS);
        self.wait()
    }

    /// As `does`, and calls `meanwhile` while the agent acts.
    pub fn does_while(&mut self, does: &Does, meanwhile: impl FnOnce()) -> String {
        let said = self.said(does);
        self.answer(&said, TOKENS);
        meanwhile();
        self.wait()
    }

    /// Reads a file again if the agent's own edit tool requires that. touchmark
    /// does not.
    pub fn catches_up(&mut self, file: &'static str) -> String {
        match self.stage.agent.own_gate {
            true => self.does(&Does::Read(file)),
            false => String::new(),
        }
    }

    /// Performs an action like `does`, and reports the conversation as too
    /// long, so that the agent compacts it.
    pub fn fills_up(&mut self, does: &Does) -> String {
        let said = self.said(does);
        self.answer(&said, TOO_LONG);
        self.wait()
    }

    /// Has a sub-agent perform a task. Returns what is new in the model's next
    /// request.
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

    /// Ends the model's turn, and waits until the program exits.
    pub fn ends(self) {
        self.exits(&Said::Text("Done.".into()));
    }

    /// Performs the last action of the model, after which the program exits.
    /// Only for agents whose model has no tools.
    pub fn ends_with(self, does: &Does) {
        let said = self.said(does);
        self.exits(&said);
    }

    fn exits(mut self, said: &Said) {
        self.answer(said, TOKENS);
        let end = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a process's state") {
                break status;
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.words());
            // The program may send further requests, for example for a title.
            // They do not matter to the test.
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

    /// Waits for the next request. Returns what is new in it, compared with the
    /// request before.
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

    /// Returns what the program has printed.
    fn words(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // A program that is still running is killed together with the processes
        // that it started.
        if let Ok(None) = self.child.try_wait() {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            let _ended = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = self.child.wait();
        }
    }
}

/// Returns the texts of `now` that are not in `before`, in order, one per line.
/// A text that occurs more often than before counts as new.
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
