//! All daemons of this user, and what each reports of itself (FLEET-1).

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use touchmark_proto::Holder;

use crate::Environment;
use crate::dial::{is_full, refused, try_dial};
use crate::error::Error;
use crate::local::{Stream, locks};
use crate::sockets::{holders, sockets};

/// The number of daemons that are asked at the same time. Each needs a
/// descriptor, of which a process has at least 1,024 on usual systems.
const AT_ONCE: usize = 256;

/// The maximum length of an answer, in bytes.
const LONGEST: usize = 4 << 20;

/// The request. It is sent as JSON, which daemons of all versions understand,
/// and is no use of the daemon: it does not keep it from ending.
const ASK: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";

/// A daemon of this user.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Member {
    /// The path of its socket.
    pub socket: PathBuf,
    /// What its lock file contains: the process and the workspace. `None` if no
    /// lock names the socket.
    pub holder: Option<Holder>,
    /// What it has answered.
    pub answer: Answer,
}

/// What a daemon has answered.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Answer {
    /// Its `status`, as JSON. A daemon of another version may have other
    /// fields.
    Status(Value),
    /// Nothing within the time limit: it hangs, is stopped, or has too much to
    /// do.
    Silent,
    /// It cannot be asked, with the reason.
    Failed(String),
}

/// Requests the status of all running daemons of this user at the same time.
/// Returns those that run, by the paths of their sockets. A daemon that does
/// not answer within `limit` is `Silent`. What killed daemons have left is not
/// in the list, and daemons that systemd would start are not started.
pub fn ask_all(environment: &Environment, limit: Duration) -> Vec<Member> {
    let mut holders: BTreeMap<PathBuf, Holder> = holders(&environment.base)
        .filter_map(|holder| Some((holder.socket.clone()?, holder)))
        .collect();
    let sockets = sockets(environment);
    let mut members = Vec::new();
    for some in sockets.chunks(AT_ONCE) {
        let until = Instant::now() + limit;
        // All have the request before the first answer is waited for.
        let asked: Vec<_> = some.iter().map(|socket| (socket, send(socket))).collect();
        for (socket, asked) in asked {
            let answer = match asked {
                Ok(stream) => receive(stream, until),
                Err(None) => continue,
                Err(Some(answer)) => answer,
            };
            members.push(Member {
                socket: socket.clone(),
                holder: holders.remove(socket),
                answer,
            });
        }
    }
    // A daemon in a sandbox may hold a store and listen where no other process
    // can connect.
    for (socket, holder) in holders {
        let places = environment.places(&holder.workspace);
        if let Some(pid) = locks::holder(&places.lock) {
            members.push(Member {
                socket,
                holder: Some(Holder { pid, ..holder }),
                answer: Answer::Failed(format!(
                    "its socket cannot be reached from here: `touchmark stop --pid {pid}` ends it"
                )),
            });
        }
    }
    members
}

/// Connects and sends the request. `Err(None)` if no daemon listens.
fn send(socket: &Path) -> Result<Stream, Option<Answer>> {
    let mut stream = match try_dial(socket) {
        Ok(stream) => stream,
        Err(error) if is_full(&error) => return Err(Some(Answer::Silent)),
        Err(error) => {
            return Err(match refused(socket, error, Duration::ZERO) {
                Error::NoDaemon { .. } => None,
                error => Some(Answer::Failed(error.to_string())),
            });
        }
    };
    let sent = stream
        .write_all(ASK)
        .and_then(|()| stream.set_nonblocking(false));
    match sent {
        Ok(()) => Ok(stream),
        Err(error) => Err(Some(Answer::Failed(error.to_string()))),
    }
}

fn receive(mut stream: Stream, until: Instant) -> Answer {
    let mut line = Vec::new();
    let mut part = [0; 16 << 10];
    while !line.ends_with(b"\n") {
        let rest = until.saturating_duration_since(Instant::now());
        // 0 would mean no limit. What was sent already is read in any case.
        let rest = rest.max(Duration::from_millis(1));
        let read = stream
            .set_read_timeout(Some(rest))
            .and_then(|()| stream.read(&mut part));
        match read {
            Ok(0) => return Answer::Failed("it has closed the connection".into()),
            Ok(_) if line.len() > LONGEST => {
                return Answer::Failed("its answer is too long".into());
            }
            Ok(count) => line.extend_from_slice(part.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if is_full(&error) => return Answer::Silent,
            Err(error) => return Answer::Failed(error.to_string()),
        }
    }
    let mut answer: Value = serde_json::from_slice(&line).unwrap_or_default();
    match answer.get_mut("result").map(Value::take) {
        Some(status @ Value::Object(_)) => Answer::Status(status),
        _ => {
            let message = answer.pointer("/error/message").and_then(Value::as_str);
            Answer::Failed(message.unwrap_or("its answer is no status").to_owned())
        }
    }
}
