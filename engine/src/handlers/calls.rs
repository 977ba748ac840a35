//! `call/*`: tool calls that repeat earlier ones. A kept result is valid only
//! while each file that it depends on has the same content as then.

use serde_json::Value;
use touchmark_proto::calls::{
    CallCheck, CallChecked, CallClear, CallCounts, CallRecord, CallRecorded, CallStats, Duplicate,
    Validity,
};
use touchmark_proto::daemon::Savings;
use touchmark_proto::tasks::Removed;
use touchmark_proto::{
    ClientPath, Error, ErrorCode, FreeJson, Hash, Millis, RelPath, Reply, SessionId,
};

use crate::base::Base;
use crate::ledger::session_memory::{Call, Dropped, Note, Searched};
use crate::ledger::similarity::{alike, member};
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::text::tokens;

/// The number of a tool's last calls that a new call is compared with.
const COMPARED: usize = 3;
/// The maximum number of bytes of a tool's name.
const NAME: usize = 200;
/// The maximum number of files that one result may depend on.
const FILES: usize = 1_000;

/// The arguments of a call in the form in which they are compared.
struct Arguments {
    /// The arguments; each file has only one spelling.
    value: Value,
    canonical: String,
    /// The file that the arguments name as `path`.
    place: PlaceNamed,
}

/// The place that the arguments of a call name.
#[derive(Clone, PartialEq, Eq)]
enum PlaceNamed {
    /// The arguments name no place in the workspace.
    Nothing,
    /// The arguments name a file or directory.
    Path(RelPath),
    /// The arguments name the workspace's top directory.
    Workspace,
}

impl Base {
    pub(crate) fn call_record(&mut self, pending: &mut Pending, ask: &CallRecord) -> Answered {
        if ask.tool.is_empty() || ask.tool.len() > NAME {
            return Err(Error::invalid(format!("`tool` has 1 to {NAME} bytes")).into());
        }
        let never = self.config.calls_never.contains(&ask.tool);
        if never {
            self.ensure_session(&ask.session);
            return done(Reply::CallRecord(CallRecorded { call_id: None }));
        }
        let arguments = self.arguments(&ask.args);
        let paths = self.files_of(&arguments, ask.paths.as_deref())?;
        // All files are read first, so that the result is later compared with
        // the contents from the time when it was recorded.
        if !paths.is_empty() && !pending.rechecked {
            pending.rechecked = true;
            return Err(Stop::Read(paths, false).into());
        }
        let secret = |path| {
            pending
                .reads
                .found
                .get(path)
                .is_some_and(|found| found.secret)
        };
        if paths.iter().any(secret) {
            // Neither arguments nor result are kept if one of the files is a
            // secret (SEC-3).
            self.ensure_session(&ask.session);
            return done(Reply::CallRecord(CallRecorded { call_id: None }));
        }
        let mut searched = Searched::No;
        let mut rests_on = Vec::new();
        for path in paths {
            let content = self.content_now(pending, &path);
            let named = arguments.place == PlaceNamed::Path(path.clone());
            match content {
                Some(hash) => rests_on.push((path, hash)),
                // If the path is not a file, it is taken for a directory that
                // the call searched.
                None if named => searched = Searched::Below(path),
                // A file that cannot be read proves nothing.
                None => {}
            }
        }
        if arguments.place == PlaceNamed::Workspace || self.searches(&ask.tool, &arguments) {
            searched = Searched::Everywhere;
        }
        self.ensure_session(&ask.session);
        let result = ask.result.0.to_string();
        if self.shows_a_secret(&arguments.canonical, &ask.result.0, &result) {
            return done(Reply::CallRecord(CallRecorded { call_id: None }));
        }
        self.drop_old_calls();
        let fits = result.len() as u64 <= self.config.calls_bytes;
        let call = self.state.calls_recorded + 1;
        let kept = Call {
            call,
            time: self.now,
            n: self.state.n,
            tool: ask.tool.clone(),
            args: arguments.canonical,
            result: fits.then_some(result),
            rests_on,
            searched,
        };
        self.note(&ask.session, Note::CallRecorded(kept));
        self.make_room(&ask.session);
        done(Reply::CallRecord(CallRecorded {
            call_id: Some(call_name(call)),
        }))
    }

    /// Returns whether arguments or result contain what must not be kept
    /// (SEC-3), as far as it can be recognised: a token, a value whose name
    /// says that it is secret, or what a search found in a secret file.
    fn shows_a_secret(&self, arguments: &str, result: &Value, text: &str) -> bool {
        let secrets = &self.config.secrets;
        tokens::any(text.as_bytes())
            || tokens::masked(arguments) != arguments
            || result
                .as_str()
                .is_some_and(|text| secrets.are_shown_in(text))
    }

    pub(crate) fn call_check(&mut self, pending: &mut Pending, ask: &CallCheck) -> Answered {
        self.ensure_session(&ask.session);
        self.drop_old_calls();
        let arguments = self.arguments(&ask.args);
        let Some((call, duplicate)) = self.repeated(&ask.session, &ask.tool, &arguments) else {
            return self.unlike(&ask.session);
        };
        let paths: Vec<RelPath> = call.rests_on.iter().map(|(path, _)| path.clone()).collect();
        if let Some(unread) = self.unread(pending, &paths) {
            return Err(Stop::Read(unread, false).into());
        }
        if !self.still_holds(pending, &call) {
            self.note(
                &ask.session,
                Note::CallsDropped {
                    calls: vec![call.call],
                    reason: Dropped::Invalidated,
                },
            );
            // An older call may still be valid.
            return self.call_check(pending, ask);
        }
        let result = call
            .result
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .map(FreeJson);
        let cached = duplicate == Duplicate::Identical && result.is_some();
        self.note(&ask.session, Note::CallChecked { hit: true });
        if cached {
            let bytes = call.result.as_ref().map_or(0, |text| text.len() as u64);
            self.saved(
                &ask.session,
                Savings {
                    duplicate_calls: 1,
                    duplicate_bytes: bytes,
                    ..Savings::default()
                },
            );
        }
        done(Reply::CallCheck(CallChecked {
            duplicate,
            cached,
            result,
            message: Some(format!(
                "[Cached result from {}]",
                time_of_day(call.time.saturating_add_signed(self.config.utc_offset))
            )),
            age_ms: Some(self.now.saturating_sub(call.time)),
            call_id: Some(call_name(call.call)),
            validity: Some(if call.rests_on.is_empty() {
                Validity::Timed
            } else {
                Validity::Verified
            }),
        }))
    }

    fn unlike(&mut self, session: &SessionId) -> Answered {
        self.note(session, Note::CallChecked { hit: false });
        done(Reply::CallCheck(CallChecked {
            duplicate: Duplicate::None,
            cached: false,
            result: None,
            message: None,
            age_ms: None,
            call_id: None,
            validity: None,
        }))
    }

    /// Returns the newest identical call among a tool's last calls, else the
    /// newest one that is alike.
    fn repeated(
        &self,
        session: &SessionId,
        tool: &str,
        arguments: &Arguments,
    ) -> Option<(Call, Duplicate)> {
        let rule = self.config.calls_rules.get(tool).map(Vec::as_slice);
        let mut similar = None;
        let calls = self.state.memory(session)?.calls.iter().rev();
        for call in calls.filter(|call| call.tool == tool).take(COMPARED) {
            if call.args == arguments.canonical {
                return Some((call.clone(), Duplicate::Identical));
            }
            let value: Value = serde_json::from_str(&call.args).unwrap_or_default();
            if similar.is_none() && alike(&arguments.value, &value, rule) {
                similar = Some((call.clone(), Duplicate::Similar));
            }
        }
        similar
    }

    /// Returns whether each file that a result depends on has the same content
    /// as then.
    fn still_holds(&self, pending: &Pending, call: &Call) -> bool {
        let unchanged = call
            .rests_on
            .iter()
            .all(|(path, then)| self.content_now(pending, path) == Some(*then));
        let changed_below = |root: Option<&RelPath>| {
            self.state.paths.iter().any(|(path, state)| {
                let inside = root.is_none_or(|root| {
                    path.as_bytes()
                        .strip_prefix(root.as_bytes())
                        .is_some_and(|rest| rest.starts_with(b"/"))
                });
                inside && state.newest > call.n && state.newest > state.baseline
            })
        };
        unchanged
            && match &call.searched {
                Searched::No => true,
                Searched::Below(root) => !changed_below(Some(root)),
                Searched::Everywhere => !changed_below(None),
            }
    }

    /// Returns the current content of a path, `Some(None)` for no file, or
    /// `None` if it is not known.
    fn content_now(&self, pending: &Pending, path: &RelPath) -> Option<Option<Hash>> {
        if self.view().usable(path, pending).is_err() {
            return None;
        }
        let now = self.view().current(path, pending.reads.found.get(path));
        now.trouble.is_none().then_some(now.held.hash)
    }

    /// Returns the paths to read first: those that are not watched, and all if
    /// the request verifies.
    fn unread(&self, pending: &Pending, paths: &[RelPath]) -> Option<Vec<RelPath>> {
        let unread: Vec<RelPath> = paths
            .iter()
            .filter(|path| {
                let watched = self.state.paths.contains_key(path);
                (pending.verify || !watched) && !pending.reads.found.contains_key(*path)
            })
            .cloned()
            .collect();
        (!unread.is_empty()).then_some(unread)
    }

    /// Returns arguments in the form in which they are compared: file names
    /// inside the workspace in one spelling.
    fn arguments(&self, args: &FreeJson) -> Arguments {
        let mut value = args.0.clone();
        let mut place = PlaceNamed::Nothing;
        if let Value::Object(members) = &mut value {
            for name in ["path", "filePath", "file_path"] {
                let Some(Value::String(text)) = members.get_mut(name) else {
                    continue;
                };
                let named = match self.view().resolve(&ClientPath::from(text.as_str())) {
                    Ok(path) => {
                        *text = path.to_string_lossy();
                        PlaceNamed::Path(path)
                    }
                    Err(error) if error.code == ErrorCode::NotAFile => {
                        *text = ".".into();
                        PlaceNamed::Workspace
                    }
                    Err(_) => continue,
                };
                if place == PlaceNamed::Nothing {
                    place = named;
                }
            }
        }
        let canonical = FreeJson(value.clone()).canonical();
        Arguments {
            value,
            canonical,
            place,
        }
    }

    /// Returns the files that a call's result depends on.
    fn files_of(
        &self,
        arguments: &Arguments,
        paths: Option<&[ClientPath]>,
    ) -> Result<Vec<RelPath>, Error> {
        let mut files = Vec::new();
        if let PlaceNamed::Path(path) = &arguments.place {
            files.push(path.clone());
        }
        for path in paths.unwrap_or_default() {
            files.push(self.view().resolve(path)?);
        }
        files.sort();
        files.dedup();
        if files.len() > FILES {
            return Err(Error::invalid(format!(
                "a result rests on at most {FILES} files"
            )));
        }
        Ok(files)
    }

    /// Returns whether a call searches files without naming a place.
    fn searches(&self, tool: &str, arguments: &Arguments) -> bool {
        let named = |name: &str| {
            let members = arguments.value.as_object();
            members.is_some_and(|members| member(members, name).is_some())
        };
        let rule = self.config.calls_rules.get(tool);
        let by_pattern = rule.is_some_and(|rule| rule.iter().any(|name| name == "pattern"));
        (by_pattern || named("pattern")) && !named("path")
    }

    /// Drops calls that are too old, in every session. No timer does this, so
    /// that an idle daemon does not wake up (LIFE-3).
    fn drop_old_calls(&mut self) {
        let oldest = self.now.saturating_sub(self.config.calls_age);
        let old: Vec<(SessionId, Vec<u64>)> = self
            .state
            .sessions
            .iter()
            .filter_map(|(name, session)| {
                let calls: Vec<u64> = session
                    .memory
                    .calls
                    .iter()
                    .take_while(|call| call.time < oldest)
                    .map(|call| call.call)
                    .collect();
                (!calls.is_empty()).then(|| (name.clone(), calls))
            })
            .collect();
        for (session, calls) in old {
            self.evict_calls(&session, calls);
        }
    }

    /// Drops the oldest calls of a session until the remaining ones are within
    /// the limits for number and bytes.
    fn make_room(&mut self, session: &SessionId) {
        let Some(memory) = self.state.memory(session) else {
            return;
        };
        let mut number = memory.calls.len() as u64;
        let mut bytes: u64 = memory.calls.iter().map(Call::bytes).sum();
        let mut evicted = Vec::new();
        for call in &memory.calls {
            if number <= self.config.calls_keep && bytes <= self.config.calls_bytes {
                break;
            }
            number -= 1;
            bytes -= call.bytes();
            evicted.push(call.call);
        }
        self.evict_calls(session, evicted);
    }

    fn evict_calls(&mut self, session: &SessionId, calls: Vec<u64>) {
        if !calls.is_empty() {
            self.note(
                session,
                Note::CallsDropped {
                    calls,
                    reason: Dropped::Evicted,
                },
            );
        }
    }

    pub(crate) fn call_stats(&mut self, ask: &CallStats) -> Answered {
        let oldest = self.now.saturating_sub(self.config.calls_age);
        let mut counts = CallCounts::default();
        for (name, session) in &self.state.sessions {
            if ask.session.as_ref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let tally = session.memory.tally;
            counts.hits += tally.hits;
            counts.misses += tally.misses;
            counts.invalidated += tally.invalidated;
            counts.evicted += tally.evicted;
            for call in &session.memory.calls {
                if call.time < oldest {
                    counts.evicted += 1;
                } else {
                    counts.calls += 1;
                    counts.bytes += call.bytes();
                }
            }
        }
        done(Reply::CallStats(counts))
    }

    pub(crate) fn call_clear(&mut self, ask: &CallClear) -> Answered {
        let calls: Vec<u64> = self
            .state
            .memory(&ask.session)
            .map(|memory| memory.calls.iter().map(|call| call.call).collect())
            .unwrap_or_default();
        let removed = calls.len() as u64;
        if removed > 0 {
            self.note(
                &ask.session,
                Note::CallsDropped {
                    calls,
                    reason: Dropped::Cleared,
                },
            );
        }
        done(Reply::CallClear(Removed { removed }))
    }
}

fn call_name(number: u64) -> String {
    format!("t{number}")
}

/// Returns a wall clock time as `HH:MM:SS`.
fn time_of_day(time: Millis) -> String {
    let seconds = time / 1000 % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}
