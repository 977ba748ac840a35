//! Limits on what clients can accumulate (LIM-1): sessions, tracked paths,
//! files in open edits and command windows.

use touchmark_proto::ids::MAX_ID_BYTES;
use touchmark_proto::{Error, ErrorCode, ErrorData, Request, SessionId};

use crate::requests::pending::Pending;
use crate::requests::table::{Use, row, session};
use crate::view::View;

impl View<'_> {
    /// Refuses a request that would open a session or track a path beyond the
    /// limits.
    pub(crate) fn within_limits(&self, pending: &Pending, ask: &Request) -> Result<(), Error> {
        let sessions = &self.state.sessions;
        let (row, session) = (row(ask), session(ask));
        let unknown = session.is_some_and(|named| !sessions.contains_key(named));
        if row.naming.opens() && unknown && sessions.len() >= self.config.sessions {
            let most = self.config.sessions;
            return Err(too_many(most, format!("{most} sessions are known already"))
                .hint("forget some: `session/close` with `forget`"));
        }
        let paths = &self.state.paths;
        let tracks = row.paths == Use::Tracks
            && pending
                .reads
                .borrowed
                .iter()
                .any(|path| !paths.contains_key(path));
        if tracks && paths.len() >= self.config.tracked {
            let own = session.and_then(|named| sessions.get(named));
            let own = own.map_or(0, |session| session.files.len());
            if own.saturating_add(pending.reads.borrowed.len()) > self.config.own_files {
                let most = self.config.tracked;
                return Err(too_many(most, format!("{most} paths are tracked already"))
                    .hint("untrack some, or forget sessions that have ended"));
            }
        }
        Ok(())
    }

    /// Refuses an edit with this number of additional files if it would exceed
    /// the limits.
    pub(crate) fn may_mark(&self, session: &SessionId, files: usize) -> Result<(), Error> {
        let (mut open, mut own) = (files, files);
        for edit in self.state.edits.values() {
            open += edit.files.len();
            if edit.fact.session == *session {
                own += edit.files.len();
            }
        }
        let most = self.config.marked;
        if open <= most || own <= self.config.own_files {
            return Ok(());
        }
        let message = format!("at most {most} files may be in open edits, this would be {open}");
        Err(too_many(most, message).hint("commit or abort some"))
    }

    /// Refuses one more command window of a session if it would exceed the
    /// limits.
    pub(crate) fn may_open_window(&self, session: &SessionId) -> Result<(), Error> {
        let open = self.state.commands.values();
        let own = open
            .filter(|command| command.fact.session == *session)
            .count();
        let most = self.config.windows;
        if self.state.commands.len() < most || own < self.config.own_windows {
            return Ok(());
        }
        let message = format!("{most} command windows are open already");
        let hint = "end some with `command/end`, or bind them to their connection";
        Err(too_many(most, message).hint(hint))
    }
}

/// Refuses texts of which one is longer than a text chosen by a client may be.
/// Paths and session ids have their own limits.
pub(crate) fn not_too_long(texts: &[(&str, Option<&String>)]) -> Result<(), Error> {
    let long = |text: &String| text.len() > MAX_ID_BYTES;
    match texts.iter().find(|(_, text)| text.is_some_and(long)) {
        Some((name, _)) => Err(Error::invalid(format!(
            "{name} has more than {MAX_ID_BYTES} bytes"
        ))),
        None => Ok(()),
    }
}

pub(crate) fn too_many(most: usize, message: String) -> Error {
    Error::new(ErrorCode::TooLarge, message).with(ErrorData {
        limit: Some(most as u64),
        ..ErrorData::default()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use serde_json::{Value, json};
    use touchmark_proto::{ConnectionId, Error, ErrorCode, Request, RequestId};

    use crate::{Config, Effect, Engine, Found, Input, ReadOutcome, State};

    /// Sends a request to an engine whose disk is empty.
    fn ask(engine: &mut Engine, method: &str, params: Value) -> Result<(), Error> {
        let mut inputs = vec![Input::Request {
            request: RequestId(1),
            connection: ConnectionId(1),
            ask: Request::from_json(method, params).unwrap(),
            until: None,
        }];
        while let Some(input) = inputs.pop() {
            let mut effects = Vec::new();
            engine.handle(1_000, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Fence(fence) => inputs.push(Input::FenceReached { fence }),
                    Effect::Read(order) => inputs.push(Input::Read {
                        path: order.path,
                        ticket: order.ticket,
                        outcome: ReadOutcome::from(Found::Absent),
                    }),
                    Effect::Reply { answer, .. } => return answer.map(|_| ()),
                    _ => {}
                }
            }
        }
        panic!("{method} was not answered");
    }

    fn engine(config: Config) -> Engine {
        Engine::restore(config, State::new(1, false), [], 1_000)
    }

    fn refused(engine: &mut Engine, method: &str, params: Value, limit: u64) {
        let error = ask(engine, method, params).unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge, "{error}");
        assert_eq!(error.data.limit, Some(limit));
        assert_ne!(error.hint, "");
    }

    #[test]
    fn sessions() {
        let mut engine = engine(Config {
            sessions: 2,
            ..Config::default()
        });
        let engine = &mut engine;
        ask(engine, "session/open", json!({"session": "a"})).unwrap();
        ask(engine, "checkpoint/create", json!({"session": "b"})).unwrap();
        refused(engine, "session/open", json!({"session": "c"}), 2);
        refused(engine, "checkpoint/create", json!({"session": "c"}), 2);
        refused(engine, "command/begin", json!({"session": "c"}), 2);
        // Requests of known sessions are not refused, and a session that is
        // forgotten makes room for another.
        ask(engine, "file/list", json!({"session": "a"})).unwrap();
        let forget = json!({"session": "a", "forget": true});
        ask(engine, "session/close", forget).unwrap();
        ask(engine, "session/open", json!({"session": "c"})).unwrap();
    }

    #[test]
    fn tracked_paths() {
        let mut engine = engine(Config {
            tracked: 2,
            own_files: 1,
            ..Config::default()
        });
        let engine = &mut engine;
        let mention = |path: &str| json!({"session": "s", "path": path});
        ask(engine, "file/mention", mention("a")).unwrap();
        ask(engine, "file/mention", mention("b")).unwrap();
        refused(engine, "file/mention", mention("c"), 2);
        refused(engine, "edit/mark", mention("c"), 2);
        ask(engine, "file/mention", mention("a")).unwrap();
        // Another session can still track its own share.
        let other = json!({"session": "t", "path": "t"});
        ask(engine, "file/mention", other).unwrap();
        // A query tracks nothing.
        let look = json!({"session": "s", "paths": ["c"]});
        ask(engine, "file/status", look).unwrap();
    }

    #[test]
    fn texts() {
        let engine = &mut engine(Config::default());
        let file = json!([{"path": "a"}]);
        let long = "x".repeat(257);
        for (method, params) in [
            (
                "session/open",
                json!({"session": "s", "agent": {"name": long, "version": "1"}}),
            ),
            (
                "edit/begin",
                json!({"session": "s", "files": file, "callId": long}),
            ),
            (
                "edit/begin",
                json!({"session": "s", "files": file, "tool": long}),
            ),
            ("command/begin", json!({"session": "s", "callId": long})),
        ] {
            let error = ask(engine, method, params).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidParams, "{error}");
        }
        assert_eq!(engine.state().sessions.len(), 0);
    }

    #[test]
    fn files_in_open_edits() {
        let mut engine = engine(Config {
            marked: 2,
            own_files: 1,
            ..Config::default()
        });
        let engine = &mut engine;
        let begin = |paths: &[&str]| {
            let files: Vec<Value> = paths.iter().map(|path| json!({"path": path})).collect();
            json!({"session": "s", "files": files, "callId": "c"})
        };
        refused(engine, "edit/begin", begin(&["a", "b", "c"]), 2);
        ask(engine, "edit/begin", begin(&["a", "b"])).unwrap();
        let mark = json!({"session": "s", "path": "d"});
        refused(engine, "edit/mark", mark.clone(), 2);
        let other = json!({"session": "t", "path": "t"});
        ask(engine, "edit/mark", other).unwrap();
        let abort = json!({"session": "s", "callId": "c"});
        ask(engine, "edit/abort", abort).unwrap();
        ask(engine, "edit/mark", mark).unwrap();
    }

    #[test]
    fn command_windows() {
        let mut engine = engine(Config {
            windows: 2,
            own_windows: 1,
            ..Config::default()
        });
        let engine = &mut engine;
        let named = |session: &str| json!({"session": session});
        ask(engine, "command/begin", named("s")).unwrap();
        ask(engine, "command/begin", named("s")).unwrap();
        refused(engine, "command/begin", named("s"), 2);
        ask(engine, "command/begin", named("t")).unwrap();
        refused(engine, "command/begin", named("t"), 2);
        ask(engine, "command/end", named("t")).unwrap();
        ask(engine, "command/begin", named("t")).unwrap();
    }
}
