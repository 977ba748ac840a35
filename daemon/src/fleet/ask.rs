//! The request to another daemon to end.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;
use touchmark_proto::Millis;

use super::numbers::{self, Member};
use crate::socket::credentials;
use crate::system::proc;

/// How long a daemon may take to answer. One that is busy or stopped is not
/// idle.
const TO_ANSWER: Duration = Duration::from_millis(500);

/// How long a daemon may take to end.
const TO_END: Duration = Duration::from_secs(3);

/// The maximum length of an answer, in bytes.
const LONGEST: usize = 4 << 10;

/// Asks a daemon to end if it was not used for so long, and waits for its end.
/// Returns whether it has ended, so that the system has what it used.
/// `directory` is the one of all locks.
pub(super) async fn ends(directory: &Path, member: &Member, idle: Millis) -> bool {
    let Some(socket) = numbers::socket(directory, member) else {
        return false;
    };
    // Before the request, so that the process is the one that answers it.
    let end = proc::process_end(member.numbers.pid);
    let agrees = timeout(TO_ANSWER, agrees(&socket, idle)).await;
    if !agrees.is_ok_and(|agrees| agrees.unwrap_or(false)) {
        return false;
    }
    matches!(timeout(TO_END, end).await, Ok(Ok(())))
}

/// Sends the request as JSON, so that a daemon of another version can answer;
/// `None` if it does not.
async fn agrees(socket: &Path, idle: Millis) -> Option<bool> {
    let mut stream = UnixStream::connect(socket).await.ok()?;
    credentials::check(&stream).ok()?;
    let ask = json!({
        "jsonrpc": "2.0", "id": 1, "method": "fleet/yield", "params": {"idleMs": idle},
    });
    stream.write_all(format!("{ask}\n").as_bytes()).await.ok()?;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < LONGEST {
        if stream.read_buf(&mut line).await.ok()? == 0 {
            return None;
        }
    }
    let answer: Value = serde_json::from_slice(&line).ok()?;
    answer.get("result")?.get("ends")?.as_bool()
}
