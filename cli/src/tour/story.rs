//! The steps of the tour.

use touchmark_client::Session;
use touchmark_client::hash_of;
use touchmark_client::proto::daemon::{Program, Sync};
use touchmark_client::proto::edits::Outcome as Written;
use touchmark_client::proto::files::{FileHistory, Verdict};
use touchmark_client::proto::undo::{Redo, Undo};
use touchmark_client::proto::{
    Author, AuthorKind, Change, ErrorCode, Evidence, FileState, State, Version,
};

use super::narrator::{Actor, Narrator};
use super::world::World;
use crate::output::{Failure, Outcome};
use crate::style::{self, paint};
use crate::text::{author, authors, escaped};

const CODE: &str = "src/greet.rs";
const NOTES: &str = "notes.md";

const CODE_1: &str = "fn greet(name: &str) {\n    println!(\"Hello, {name}\");\n}\n";
const CODE_YOURS: &str =
    "/// Greets.\nfn greet(name: &str) {\n    println!(\"Hello, {name}\");\n}\n";
const CODE_AGENT: &str = "fn greet(name: &str) {\n    println!(\"Good day, {name}\");\n}\n";
const CODE_LAST: &str = "fn greet(name: &str) {\n    println!(\"Good evening, {name}\");\n}\n";
const NOTES_1: &str = "# Notes\n\n- greet people\n";
const NOTES_YOURS: &str = "# Notes\n\n- greet people by name\n- be brief\n";
const NOTES_AGENT: &str = "# Notes\n\n- greet people by name\n- be brief\n- done: greet()\n";
const NOTES_LAST: &str = "# Notes\n\n- greet people by name\n- be kind\n- done: greet()\n";

const NOTES_UNDONE: &str = "# Notes\n\n- greet people by name\n- be kind\n";

/// Runs the steps. Fails if the daemon's answer is not what the tour claims.
pub(super) fn tell(world: &World, narrator: &mut Narrator) -> Outcome {
    narrator.told(&paint(
        style::BOLD,
        "A tour of touchmark: a temporary workspace, a real daemon.",
    ))?;
    let mut tour = Tour {
        world,
        session: begin(world)?,
        narrator,
    };
    tour.reads()?;
    tour.edited_after_read()?;
    tour.refused()?;
    tour.declared()?;
    tour.yours()?;
    tour.race()?;
    tour.checkpoint()?;
    tour.history()?;
    tour.undo()?;
    tour.summary()
}

fn begin(world: &World) -> Outcome<Session> {
    std::fs::create_dir_all(world.path("src")).map_err(anyhow::Error::from)?;
    world.write(CODE, CODE_1)?;
    world.write(NOTES, NOTES_1)?;
    let agent = Program {
        name: "demo".into(),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let (session, _) = Session::open_as(world.client(), "demo-agent", Some(agent))?;
    Ok(session)
}

struct Tour<'a> {
    world: &'a World,
    session: Session,
    narrator: &'a mut Narrator,
}

impl Tour<'_> {
    fn reads(&mut self) -> Outcome {
        self.chapter("An agent reads")?;
        self.agent(&format!("reads {CODE} and {NOTES}"))?;
        for (name, text) in [(CODE, CODE_1), (NOTES, NOTES_1)] {
            let read = self.session.read_bytes(name, text.as_bytes())?;
            self.check(
                read.verdict == Verdict::First,
                "the first read is `first`",
                &read,
            )?;
        }
        self.touchmark("first reads: the agent's copies are on record, by hash")?;
        self.agent(&format!("reads {NOTES} again"))?;
        let again = self.session.read_bytes(NOTES, NOTES_1.as_bytes())?;
        self.check(
            again.verdict == Verdict::Repeat,
            "the second read is `repeat`",
            &again,
        )?;
        let message = again.message.clone().unwrap_or_default();
        self.touchmark(&message)
    }

    fn edited_after_read(&mut self) -> Outcome {
        self.chapter("You edit a file that the agent has read")?;
        self.you(&format!("save {NOTES} in your editor"))?;
        self.world.write(NOTES, NOTES_YOURS)?;
        // Requested immediately, without waiting for anything to settle
        // (SYNC-1).
        let files = self.session.status([NOTES, CODE])?;
        let said = [State::Stale, State::Fresh];
        let states: Vec<State> = files.iter().map(|file| file.state).collect();
        self.check(states == said, "one copy is stale, one is fresh", &files)?;
        let by = changed_by(&files, 0);
        self.check(by == [Author::USER], "the change is the user's", &by)?;
        self.agent("asks which of its copies are up to date")?;
        self.touchmark(&format!("{NOTES}: stale, changed by {}", authors(&by)))?;
        self.touchmark(&format!("{CODE}: fresh"))
    }

    fn refused(&mut self) -> Outcome {
        self.chapter("A stale edit is refused")?;
        self.agent(&format!("tries to edit {NOTES} from its old copy"))?;
        let refusal = match self.session.edit_to(NOTES, NOTES_AGENT.as_bytes()) {
            Ok(edit) => {
                drop(edit);
                return Err(wrong("a stale edit is refused", &"the edit was allowed"));
            }
            Err(error) => error,
        };
        let code = refusal.daemon().map(|error| error.code);
        self.check(
            code == Some(ErrorCode::Stale),
            "the refusal is `stale`",
            &refusal,
        )?;
        self.touchmark(&format!(
            "{}: {}",
            paint(style::WARN, refusal.code()),
            escaped(refusal.hint(), 200)
        ))?;
        self.agent(&format!("reads {NOTES} again"))?;
        let read = self.session.read_bytes(NOTES, NOTES_YOURS.as_bytes())?;
        self.check(
            read.verdict == Verdict::Changed,
            "the re-read is `changed`",
            &read,
        )?;
        self.touchmark("the copy is up to date again")
    }

    fn declared(&mut self) -> Outcome {
        self.chapter("A declared edit is the agent's")?;
        self.agent("says what it is about to write, by hash, and writes it")?;
        let edit = self.session.edit_to(NOTES, NOTES_AGENT.as_bytes())?;
        self.world.write(NOTES, NOTES_AGENT)?;
        let done = edit.commit(NOTES_AGENT.as_bytes())?;
        let file = done.files.first();
        self.check(
            file.is_some_and(|file| file.outcome == Written::Applied),
            "the commit is `applied`",
            &done,
        )?;
        let newest = self.newest(NOTES)?;
        self.check(
            newest.author.is(self.session.id()) && newest.evidence == Evidence::Declared,
            "the version is the agent's, as declared",
            &newest,
        )?;
        self.touchmark(&format!(
            "{NOTES}: written by {}, as declared",
            author(&newest.author)
        ))
    }

    fn yours(&mut self) -> Outcome {
        self.chapter("Your edit a moment later is yours")?;
        self.you(&format!("change one word in {NOTES}"))?;
        self.world.write(NOTES, NOTES_LAST)?;
        let newest = self.newest(NOTES)?;
        self.check(
            newest.author.kind == AuthorKind::User
                && newest.hash == Some(hash_of(NOTES_LAST.as_bytes())),
            "the version is the user's",
            &newest,
        )?;
        self.agent("asks what others changed since it last looked")?;
        let changes = self.session.changed()?;
        self.check(
            only(&changes, NOTES).is_some_and(|change| change.changed_by == [Author::USER]),
            "exactly one change is listed, the user's",
            &changes,
        )?;
        let lines = changes.first().and_then(|change| change.lines);
        let counts = lines.map_or_else(String::new, |lines| {
            format!(" (+{} -{})", lines.added, lines.removed)
        });
        self.touchmark(&format!(
            "{NOTES}: edited by you{counts}; nothing of the agent's own"
        ))?;
        let again = self.session.changed()?;
        self.check(again.is_empty(), "a change is reported once", &again)
    }

    fn race(&mut self) -> Outcome {
        self.chapter("A race is not silent")?;
        self.agent(&format!("declares an edit of {CODE} and takes its time"))?;
        let edit = self.session.edit_to(CODE, CODE_AGENT.as_bytes())?;
        self.you(&format!("save {CODE} in between"))?;
        self.world.write(CODE, CODE_YOURS)?;
        // When this is answered, the daemon has read what you wrote.
        self.world.client().call(Sync {})?;
        self.agent("writes over it without looking")?;
        self.world.write(CODE, CODE_AGENT)?;
        let done = edit.commit(CODE_AGENT.as_bytes())?;
        self.check(
            done.files
                .first()
                .is_some_and(|file| file.outcome == Written::Clobbered),
            "the commit is `clobbered`",
            &done,
        )?;
        let changes = self.session.changed()?;
        let lost = only(&changes, CODE).and_then(|change| change.lost.as_ref());
        self.check(
            lost.is_some_and(|lost| {
                lost.author == Author::USER && lost.hash == Some(hash_of(CODE_YOURS.as_bytes()))
            }),
            "the lost version is listed",
            &changes,
        )?;
        self.touchmark(&format!(
            "{}: your version was overwritten; the agent receives a report",
            paint(style::WARN, "clobbered")
        ))?;
        let by_agent = self.newest(CODE)?;
        let version = format!("{CODE}@{}", by_agent.clock.n);
        self.you(&format!("want it back: touchmark undo {version}"))?;
        let undone = self.world.client().call(Undo {
            path: Some(CODE.into()),
            at: Some(by_agent.clock.to_string()),
            ..Undo::default()
        })?;
        let now = self.world.read(CODE)?;
        self.check(now == CODE_YOURS, "the line is back", &(undone, now))?;
        self.touchmark(&format!(
            "{CODE}: your line is back, from the stored content"
        ))
    }

    fn undo(&mut self) -> Outcome {
        self.chapter("An undo keeps your edits")?;
        let label = self.newest_of_agent(NOTES)?.author;
        self.you(&format!(
            "undo the agent's work in {NOTES}, and keep your own"
        ))?;
        let undone = self.world.client().call(Undo {
            session: Some(self.session.id().clone()),
            paths: Some(vec![NOTES.into()]),
            ..Undo::default()
        })?;
        let now = self.world.read(NOTES)?;
        self.check(
            now == NOTES_UNDONE,
            "the user's lines stay",
            &(&undone, now),
        )?;
        self.touchmark(&format!(
            "{NOTES}: {}'s line is removed, yours are unchanged",
            author(&label)
        ))?;
        self.you("think again: touchmark redo")?;
        self.world.client().call(Redo::default())?;
        let now = self.world.read(NOTES)?;
        self.check(now == NOTES_LAST, "the agent's line is back", &now)?;
        self.touchmark("every undo can be reversed")
    }

    fn checkpoint(&mut self) -> Outcome {
        self.chapter("A checkpoint shows what changed after it")?;
        self.agent("creates a checkpoint, to come back to it")?;
        let made = self
            .session
            .checkpoint_create(Some("before the change"), None, None)?;
        self.you(&format!("save {CODE}"))?;
        self.world.write(CODE, CODE_LAST)?;
        self.agent("goes back: its conversation returns to the checkpoint, the files do not")?;
        let since = self
            .session
            .checkpoint_detect(&made.checkpoint, &[], true)?;
        self.check(
            matches!(since.as_slice(), [file] if file.path.as_bytes() == CODE.as_bytes()
                && file.edited_by == [Author::USER]
                && file.differs == Some(true)),
            "one file was edited since, by the user, and differs",
            &since,
        )?;
        self.touchmark(&format!("{CODE}: edited by you since; its content differs"))?;
        let warned = self.session.warning_take()?;
        self.check(
            warned.warning.is_some(),
            "a warning about it is stored",
            &warned,
        )?;
        let again = self.session.warning_take()?;
        self.check(again.warning.is_none(), "a warning is given once", &again)?;
        self.touchmark("the agent is warned of that, once")
    }

    fn history(&mut self) -> Outcome {
        self.chapter("Who wrote what")?;
        let versions = self.versions(NOTES)?;
        // Newest first. The baseline's author does not matter.
        let writers: Vec<AuthorKind> = versions
            .iter()
            .take(3)
            .map(|version| version.author.kind)
            .collect();
        self.check(
            writers == [AuthorKind::User, AuthorKind::Agent, AuthorKind::User],
            "the writers in turn: user, agent, user",
            &versions,
        )?;
        for version in versions.iter().take(3) {
            let hash = version
                .hash
                .map(|hash| hash.to_string())
                .unwrap_or_default();
            self.touchmark(&format!(
                "{NOTES} {}  {}",
                hash.get(..12).unwrap_or_default(),
                author(&version.author)
            ))?;
        }
        Ok(())
    }

    fn summary(&mut self) -> Outcome {
        let checked = self.narrator.checked;
        crate::output::line(&format!(
            "\n{} {checked} answers of the daemon were checked, each was as the tour says.",
            paint(style::GOOD, "Done:")
        ))?;
        self.narrator.told(
            "Next: `touchmark watch` in a project of yours, and see what your agents and you do.",
        )
    }

    fn versions(&self, name: &str) -> Outcome<Vec<Version>> {
        let history = self.world.client().call(FileHistory::new(name))?;
        Ok(history
            .versions
            .into_iter()
            .filter(|version| version.amends.is_none())
            .collect())
    }

    fn newest_of_agent(&self, name: &str) -> Outcome<Version> {
        let mut versions = self.versions(name)?.into_iter();
        let found = versions.find(|version| version.author.is(self.session.id()));
        found.ok_or_else(|| wrong("the agent has written the file", &"it has not"))
    }

    fn newest(&self, name: &str) -> Outcome<Version> {
        self.versions(name)?
            .into_iter()
            .next()
            .ok_or_else(|| wrong("the file has a version", &"none"))
    }

    /// Compares an answer with the tour's claim.
    fn check(&mut self, holds: bool, said: &str, answer: &impl std::fmt::Debug) -> Outcome {
        if !holds {
            return Err(wrong(said, answer));
        }
        self.narrator.checked += 1;
        Ok(())
    }

    fn chapter(&mut self, title: &str) -> Outcome {
        self.narrator.chapter(title)
    }

    fn agent(&mut self, text: &str) -> Outcome {
        self.narrator.step(Actor::Agent, text)
    }

    fn you(&mut self, text: &str) -> Outcome {
        self.narrator.step(Actor::You, text)
    }

    fn touchmark(&mut self, text: &str) -> Outcome {
        self.narrator.step(Actor::Touchmark, text)
    }
}

fn wrong(said: &str, answer: &impl std::fmt::Debug) -> Failure {
    Failure::No(format!(
        "the tour says: {said}. The daemon says: {answer:?}"
    ))
}

fn changed_by(files: &[FileState], at: usize) -> Vec<Author> {
    files
        .get(at)
        .and_then(|file| file.changed_by.clone())
        .unwrap_or_default()
}

/// Returns the only change, if it is of that path.
fn only<'a>(changes: &'a [Change], name: &str) -> Option<&'a Change> {
    match changes {
        [change] if change.path.as_bytes() == name.as_bytes() => Some(change),
        _ => None,
    }
}
