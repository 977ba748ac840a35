//! Makes the steps of a session from a seed, for one group of steps.

use super::features::{FEATURES, Feature, Groups};
use super::step::{Edit, Git, Resolve, Save, Step, Tool, Who};
use crate::dice::Dice;

/// The number of scenes in a session; a scene has one to four steps.
const SCENES: u64 = 7;

/// Returns the steps of a seed.
pub fn steps(seed: u64, groups: Groups) -> Vec<(usize, Step)> {
    let mut maker = Maker {
        dice: Dice::new(seed, "given back"),
        steps: Vec::new(),
        calm: false,
    };
    maker.calm = maker.dice.percent(40);
    let all = FEATURES.iter().map(|(group, ..)| *group);
    let on: Vec<Feature> = match groups {
        Groups::On => all.filter(|group| group.is_on()).collect(),
        Groups::Only(group) => vec![group],
    };
    let scenes = 3 + maker.dice.below(SCENES - 2);
    for _ in 0..scenes {
        let of = *maker.dice.pick(&on);
        match maker.dice.percent(55) {
            true => maker.scene(of),
            false => maker.plain(),
        }
        if maker.dice.percent(20) {
            maker.steps.push(Step::Check);
        }
        if maker.dice.percent(7) {
            let (whom, redo) = (maker.agent_chosen(), maker.dice.percent(60));
            maker.steps.push(Step::Undo { whom, redo });
        }
    }
    maker.steps.push(Step::Check);
    let whom = maker.agent_chosen();
    let redo = maker.dice.percent(60);
    maker.steps.push(Step::Undo { whom, redo });
    maker.steps.push(Step::Check);
    if maker.dice.percent(50) {
        let whom = maker.agent_chosen();
        maker.steps.push(Step::Undo { whom, redo: true });
    }
    maker
        .steps
        .into_iter()
        .enumerate()
        .map(|(n, step)| (n + 1, step))
        .collect()
}

struct Maker {
    dice: Dice,
    steps: Vec<Step>,
    /// No agent runs a command, so that seconds of commits are certain.
    calm: bool,
}

impl Maker {
    fn below(&mut self, bound: usize) -> usize {
        self.dice.index(bound)
    }

    fn agent(&mut self) -> Who {
        *self
            .dice
            .pick(&[Who::A, Who::A, Who::A, Who::B, Who::B, Who::Sub])
    }

    /// Returns an agent whose work may be undone as a whole.
    fn agent_chosen(&mut self) -> Who {
        *self.dice.pick(&[Who::A, Who::A, Who::B])
    }

    fn anybody(&mut self) -> Who {
        if self.calm {
            return Who::User;
        }
        *self.dice.pick(&[Who::User, Who::User, Who::A, Who::B])
    }

    fn edit(&mut self) -> Edit {
        let (off, on) = *self.dice.pick(&[
            (0, 1),
            (0, 2),
            (1, 0),
            (1, 1),
            (1, 1),
            (2, 1),
            (1, 3),
            (2, 2),
        ]);
        Edit {
            file: self.below(3),
            at: self.below(13),
            off,
            on,
        }
    }

    fn tool(&mut self) -> Tool {
        *self
            .dice
            .pick(&[Tool::Write, Tool::Declared, Tool::Hook, Tool::Hook])
    }

    fn saves(&mut self) -> Save {
        *self.dice.pick(&[Save::Over, Save::Rename, Save::Backup])
    }

    fn add(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn tool_step(&mut self) {
        let (who, edit, tool) = (self.agent(), self.edit(), self.tool());
        self.add(Step::Tool { who, edit, tool });
    }

    fn save_step(&mut self) {
        let (edit, save) = (self.edit(), self.saves());
        self.add(Step::Save { edit, save });
    }

    fn plain(&mut self) {
        match self.dice.below(20) {
            0..=8 => self.tool_step(),
            9..=13 => self.save_step(),
            14 | 15 if !self.calm => {
                let (who, edit) = (self.agent(), self.edit());
                self.add(Step::Shell { who, edit });
            }
            16 => {
                let (who, name, on) = (self.agent(), 3 + self.below(4), 2 + self.below(4));
                self.add(Step::Create { who, name, on });
            }
            17 => {
                let (who, file) = (self.anybody(), self.below(6));
                self.add(Step::Remove { who, file });
            }
            18 => {
                let who = self.anybody();
                self.add(Step::Commit { who });
            }
            _ => self.add(Step::Restart),
        }
    }

    /// Something that the later steps of a scene are about.
    fn work(&mut self) {
        self.tool_step();
        if self.dice.percent(50) {
            self.save_step();
        }
        if self.dice.percent(40) {
            let who = self.anybody();
            self.add(Step::Commit { who });
            if self.dice.percent(50) {
                self.tool_step();
            }
        }
    }

    fn git(&mut self, who: Who, all: &[Git]) {
        let (file, git) = (self.below(6), *self.dice.pick(all));
        self.add(Step::Git { who, file, git });
    }

    fn scene(&mut self, of: Feature) {
        match of {
            Feature::Plain | Feature::Told => self.plain(),
            Feature::Wipes => {
                self.save_step();
                self.tool_step();
                let who = *self.dice.pick(&[Who::A, Who::B]);
                self.git(
                    who,
                    &[
                        Git::CheckoutFile,
                        Git::RestoreFile,
                        Git::RestoreBoth,
                        Git::CheckoutAll,
                        Git::ResetHard,
                        Git::Clean,
                        Git::Stash,
                        Git::StashAll,
                    ],
                );
            }
            Feature::Reviews => {
                self.work();
                let nth = self.below(6);
                let step = match self.dice.below(4) {
                    0 => Step::Keep { nth: None },
                    1 | 2 => Step::Keep { nth: Some(nth) },
                    _ => Step::UndoHunk { nth },
                };
                self.add(step);
            }
            Feature::Kills => {
                self.tool_step();
                let meanwhile = self.dice.percent(50).then(|| self.edit());
                let step = match self.dice.below(5) {
                    0 => Step::Forget,
                    1 => Step::Restart,
                    _ => Step::Kill { meanwhile },
                };
                self.add(step);
            }
            Feature::Likely => {
                let (who, edit) = (self.agent(), self.edit());
                let (save, writes) = (self.saves(), self.dice.percent(40));
                self.add(Step::Beside {
                    who,
                    edit,
                    save,
                    writes,
                });
            }
            Feature::Lineage => self.lineage(),
            Feature::Carried => {
                self.work();
                let who = self.anybody();
                match self.dice.below(6) {
                    0 => {
                        self.git(Who::User, &[Git::Stash, Git::StashAll]);
                        if self.dice.percent(30) {
                            self.save_step();
                        }
                        self.git(who, &[Git::Pop]);
                    }
                    1 => {
                        self.add(Step::Commit { who });
                        self.git(who, &[Git::SwitchSide]);
                        if self.dice.percent(50) {
                            self.tool_step();
                        }
                        self.git(who, &[Git::SwitchMain]);
                    }
                    2 => {
                        self.add(Step::Commit { who });
                        self.git(who, &[Git::Merge, Git::CherryPick, Git::Rebase]);
                    }
                    3 => self.git(Who::User, &[Git::SwitchForce]),
                    _ => self.git(
                        who,
                        &[
                            Git::Merge,
                            Git::Rebase,
                            Git::PullRebase,
                            Git::StashMergePop,
                            Git::SwitchSide,
                            Git::CherryPick,
                        ],
                    ),
                }
            }
            Feature::Rewrites => {
                self.work();
                let (first, second) = (self.anybody(), self.anybody());
                self.add(Step::Commit { who: first });
                self.git(
                    second,
                    &[Git::Amend, Git::AmendAll, Git::RebaseOnto, Git::Amend],
                );
                self.add(Step::Check);
            }
            Feature::Clashes => {
                let edit = Edit {
                    file: self.below(3),
                    at: 6,
                    off: 1,
                    on: 1,
                };
                match self.dice.percent(70) {
                    true => {
                        let (who, tool) = (self.agent(), self.tool());
                        self.add(Step::Tool { who, edit, tool });
                    }
                    false => {
                        let save = self.saves();
                        self.add(Step::Save { edit, save });
                    }
                }
                let (who, by) = (
                    self.anybody(),
                    *self.dice.pick(&[Who::User, Who::A, Who::B]),
                );
                let undo = self.dice.percent(40).then(|| self.agent_chosen());
                let resolve = *self.dice.pick(&[
                    Resolve::Ours,
                    Resolve::Theirs,
                    Resolve::Both,
                    Resolve::Anew,
                ]);
                self.add(Step::Clash {
                    who,
                    undo,
                    resolve,
                    by,
                });
            }
            Feature::Decided => self.decided(),
            Feature::Indents => {
                self.work();
                let (who, file) = (self.anybody(), self.below(6));
                self.add(Step::Indent { who, file });
            }
            Feature::Claims => {
                self.plain();
                let by = *self.dice.pick(&[Who::User, Who::A, Who::B]);
                let (file, line) = (self.below(6), self.below(13));
                self.add(Step::Claim { file, line, by });
            }
        }
    }

    fn lineage(&mut self) {
        self.work();
        let (who, file, name) = (self.anybody(), self.below(6), self.below(7));
        match self.dice.below(8) {
            0 | 1 => {
                let directory = self.below(3);
                self.add(Step::MoveDirectory { who, directory });
            }
            2 => self.add(Step::MoveDown { file, name }),
            3 => {
                // The name is used again.
                let (other, on) = (self.anybody(), 2 + self.below(3));
                self.add(Step::Remove { who, file });
                self.add(Step::Create {
                    who: other,
                    name: self.steps.len() % 3,
                    on,
                });
            }
            _ => {
                let by_git = self.dice.percent(50);
                self.add(Step::Move {
                    who,
                    file,
                    name,
                    by_git,
                });
            }
        }
        if self.dice.percent(40) {
            self.save_step();
        }
        if self.dice.percent(40) {
            self.tool_step();
        }
    }

    fn decided(&mut self) {
        self.work();
        match self.dice.below(8) {
            0..=2 => {
                self.git(
                    Who::User,
                    &[
                        Git::CheckoutFile,
                        Git::RestoreFile,
                        Git::CheckoutAll,
                        Git::ResetHard,
                        Git::ResetBack,
                        Git::Revert,
                        Git::Clean,
                    ],
                );
                if self.dice.percent(40) {
                    // An editor that is still open brings the text back.
                    let file = self.below(6);
                    self.add(Step::Back { file });
                }
            }
            3 | 4 => {
                let file = self.below(6);
                self.add(Step::Back { file });
                if self.dice.percent(50) {
                    self.add(Step::Back { file });
                }
            }
            5 | 6 => {
                let edit = Edit {
                    off: 1,
                    on: 0,
                    ..self.edit()
                };
                let save = self.saves();
                self.add(Step::Save { edit, save });
                let who = *self.dice.pick(&[Who::User, Who::User, Who::A, Who::B]);
                let (line, tool) = (self.below(20), self.tool());
                self.add(Step::Retype { who, line, tool });
            }
            _ => {
                let (who, file) = (self.anybody(), self.below(6));
                self.add(Step::Remove { who, file });
                let who = *self.dice.pick(&[Who::User, Who::User, Who::A, Who::B]);
                self.add(Step::Return { who, file });
            }
        }
    }
}
