//! The groups of steps and comparisons. A group that is off waits for its part
//! of the program; no group stays off for good. Some groups run alone, with the
//! plain steps: together, the truth does not know yet what is right.
//! `TOUCHMARK_FEATURES=+Carried,-Likely` switches groups on and off for a run,
//! `+all` and `-all` switch every group. The last word about a group counts.

/// A group of steps, or of comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the table says what each is
pub enum Feature {
    Plain,
    Wipes,
    Reviews,
    Kills,
    Likely,
    Told,
    Lineage,
    Carried,
    Rewrites,
    Clashes,
    Decided,
    Indents,
    Claims,
}

/// Whether `tests/run` runs a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// In the same sessions as the others.
    Together,
    /// In sessions of its own.
    Alone,
    /// Not.
    Off,
}

/// Every group: whether it runs, and what it is.
pub const FEATURES: &[(Feature, Runs, &str)] = &[
    (
        Feature::Plain,
        Runs::Together,
        "tool edits, commands, saves, removals, commits, restarts, undo, redo",
    ),
    (
        Feature::Wipes,
        Runs::Alone,
        "an agent's checkout, restore, reset, clean or stash over uncommitted work of others",
    ),
    (
        Feature::Reviews,
        Runs::Alone,
        "keeping and undoing in the review; the queue compared",
    ),
    (
        Feature::Kills,
        Runs::Alone,
        "kill -9, saves while no daemon runs, forgetting of contents",
    ),
    (
        Feature::Likely,
        Runs::Together,
        "the user saves while a command's window is open",
    ),
    (
        Feature::Told,
        Runs::Together,
        "`undone` is not said of a file in which a change stays",
    ),
    (
        Feature::Lineage,
        Runs::Alone,
        "moves of files and directories; a name that is used again",
    ),
    (
        Feature::Carried,
        Runs::Alone,
        "switch, merge, rebase, pull, cherry-pick, stash and pop",
    ),
    (
        Feature::Rewrites,
        Runs::Alone,
        "amended and rebased commits, and what was kept of them",
    ),
    (Feature::Clashes, Runs::Alone, "merges with conflicts"),
    (
        Feature::Decided,
        Runs::Alone,
        "others take lines back, or put them back: git, an editor's undo, by hand",
    ),
    (
        Feature::Indents,
        Runs::Alone,
        "changes of white space alone",
    ),
    (Feature::Claims, Runs::Alone, "`touchmark claim`"),
];

/// The groups of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Groups {
    /// All that are switched on.
    On,
    /// This one and the plain steps, whether it is switched on or not.
    Only(Feature),
}

impl Groups {
    /// Returns whether a group belongs to the run.
    pub fn has(self, feature: Feature) -> bool {
        match self {
            Self::On => feature.is_on(),
            Self::Only(group) => feature == group || feature == Feature::Plain,
        }
    }

    /// Returns the groups of a name: a group's, else all that are on.
    pub fn named(name: &str) -> Self {
        let mut groups = FEATURES.iter().map(|(group, ..)| *group);
        let named = groups.find(|group| format!("{group:?}") == name);
        named.map_or(Self::On, Self::Only)
    }

    /// Returns the name that [`named`](Self::named) takes.
    pub fn name(self) -> String {
        match self {
            Self::On => "All".into(),
            Self::Only(group) => format!("{group:?}"),
        }
    }
}

impl Feature {
    fn runs(self) -> Runs {
        let own = FEATURES.iter().find(|(group, ..)| *group == self);
        own.map_or(Runs::Off, |(_, runs, _)| *runs)
    }

    /// Returns the groups that run alone.
    pub fn alone() -> impl Iterator<Item = Self> {
        let groups = FEATURES.iter().map(|(group, ..)| *group);
        groups.filter(|group| group.runs() == Runs::Alone)
    }

    /// Returns whether the group is switched on in the common sessions.
    pub fn is_on(self) -> bool {
        let name = format!("{self:?}");
        let words = std::env::var("TOUCHMARK_FEATURES").unwrap_or_default();
        let word = words
            .split(',')
            .rfind(|word| matches!(word.get(1..), Some(group) if group == name || group == "all"));
        match word {
            Some(word) => word.starts_with('+'),
            None => self.runs() == Runs::Together,
        }
    }

    /// Returns the groups that are off, with what they are.
    pub fn off() -> impl Iterator<Item = String> {
        FEATURES
            .iter()
            .filter(|(group, runs, _)| *runs == Runs::Off && !group.is_on())
            .map(|(group, _, what)| format!("{group:?}: {what}"))
    }
}
