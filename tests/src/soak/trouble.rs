//! Kills, stops and a full disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Stage;
use crate::World;
use crate::children;
use crate::dice::Dice;
use crate::user::{self, pause};

/// What happens to the daemon and to the disk during a round.
pub(super) struct Trouble<'s> {
    stage: &'s Stage,
    dice: Dice,
    /// The longest pause before the next trouble, in milliseconds.
    longest: u64,
    may_fill: bool,
    filler: Option<PathBuf>,
    /// How often the daemon was killed.
    pub kills: u64,
    /// How often the disk was full.
    pub full: u64,
}

impl<'s> Trouble<'s> {
    /// In half of all rounds trouble comes so often that it also meets a daemon that
    /// is starting.
    pub(super) fn new(stage: &'s Stage, mut dice: Dice, may_fill: bool) -> Self {
        Self {
            stage,
            longest: if dice.below(2) == 0 { 420 } else { 60 },
            dice,
            may_fill,
            filler: None,
            kills: 0,
            full: 0,
        }
    }

    /// Waits a moment, and then makes one kind of trouble.
    pub(super) fn make(&mut self, world: &mut World) {
        pause(self.dice.below(self.longest));
        match self.dice.below(10) {
            0..6 => {
                world.kill();
                self.stage.note("killed".into());
                self.kills += 1;
                pause(self.dice.below(60));
                self.start(world);
            }
            6 => {
                world.stop();
                self.start(world);
            }
            7 if self.may_fill && self.filler.is_none() => self.fill(world),
            8 if self.filler.is_none() => self.stash(world),
            _ => self.free(),
        }
    }

    fn start(&mut self, world: &mut World) {
        if self.filler.is_some() && world.try_start().is_ok() {
            return;
        }
        if self.filler.is_some() {
            // A daemon may end at its start on a full disk.
            self.free();
        }
        world.start();
        self.stage.note("started".into());
    }

    /// A user stashes everything, and takes it back. No actor may write
    /// meanwhile, or git would refuse.
    fn stash(&mut self, world: &World) {
        let alone = self.stage.gate.write();
        let _alone = alone.unwrap_or_else(PoisonError::into_inner);
        let git = |words: &[&str]| {
            let mut git = user::git_command(world.workspace(), words);
            let started = children::start(git.stdout(Stdio::null()).stderr(Stdio::piped()));
            started.and_then(Child::wait_with_output).expect("git")
        };
        self.stage.note("stash".into());
        // Without a commit git refuses. Without a change it succeeds, and stashes
        // nothing.
        let stashed = ["rev-parse", "-q", "--verify", "refs/stash"];
        if git(&["stash", "-q"]).status.success() && git(&stashed).status.success() {
            pause(self.dice.below(20));
            let popped = git(&["stash", "pop", "-q"]);
            self.stage.note("stash pop".into());
            assert!(popped.status.success(), "git stash pop: {popped:?}");
        }
    }

    /// Fills the disk, while no actor is in the middle of a save.
    fn fill(&mut self, world: &World) {
        let alone = self.stage.gate.write();
        let _alone = alone.unwrap_or_else(PoisonError::into_inner);
        let path = world.outside().join("filler");
        let mut file = File::create(&path).expect("a file");
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        self.stage.note("the disk is full".into());
        self.filler = Some(path);
        self.stage.is_full.store(true, Ordering::Relaxed);
        self.full += 1;
    }

    /// Frees the disk.
    pub(super) fn free(&mut self) {
        if let Some(path) = self.filler.take() {
            fs::remove_file(path).expect("the filler's end");
            self.stage.note("the disk is free".into());
            self.stage.is_full.store(false, Ordering::Relaxed);
        }
    }
}
