//! How many of the lines that agents wrote are still in the files (SURV).

use crate::SessionId;

/// A moment after a version at which its lines are counted.
#[apply(choice!)]
#[derive(PartialOrd, Ord, Hash)]
pub enum Horizon {
    /// The next commit with the file.
    Commit,
    /// 24 hours later.
    Day,
    /// 7 times 24 hours later.
    Week,
}

/// Lists how many of the lines that agents wrote are still in the files. What
/// can be judged by now and was not yet is judged first.
#[apply(request!)]
pub struct SurvivalList {
    /// Only this session, by its id or label; `None` means all sessions.
    pub session: Option<SessionId>,
}

/// How many lines are left at one kind of moment.
#[apply(answer!)]
#[derive(Copy, Default)]
pub struct Survived {
    /// The number of lines that the judged versions added.
    pub added: u64,
    /// The number of these lines that were in the files at that moment.
    pub alive: u64,
    /// The number of versions that are not judged yet, since the moment has not
    /// come. Some of them may turn out to have added no line.
    pub waiting: u64,
}

/// The lines of one agent and model.
#[apply(answer!)]
#[derive(Default)]
pub struct SurvivalRow {
    /// The agent's program; `None` if it was not named, or its session is
    /// forgotten.
    pub agent: Option<String>,
    /// The model; `None` if it was not recorded.
    pub model: Option<String>,
    /// The number of versions that were judged at one moment at least.
    pub versions: u64,
    /// The number of lines that these versions added.
    pub added: u64,
    /// What was left at the next commit with the file.
    pub commit: Survived,
    /// What was left after 24 hours.
    pub day: Survived,
    /// What was left after 7 times 24 hours.
    pub week: Survived,
}

/// The lines of all agents and models.
#[apply(answer!)]
pub struct SurvivalRows {
    /// One row for each agent and model, the one with the most lines first.
    pub rows: Vec<SurvivalRow>,
}
