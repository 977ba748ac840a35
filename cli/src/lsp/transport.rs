//! Messages on standard input and output: each after a `Content-Length` header.

use std::io::{self, BufRead, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::server::Input;

/// The maximum length of a message from the editor, in bytes. It contains the
/// text of one file at most.
const MAX_MESSAGE: u64 = 256 << 20;

/// The maximum length of a line of a header, in bytes.
const MAX_HEADER: u64 = 4 << 10;

/// How long the editor may take to read the last messages.
const LAST: Duration = Duration::from_millis(1000);

/// What the editor has sent.
pub(super) enum Received {
    Message(Box<Message>),
    /// No message of the protocol, and why not. What follows it can be read.
    Malformed(String),
}

/// Reads messages on a separate thread until the input ends.
pub(super) fn read(inputs: UnboundedSender<Input>) {
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let end = match next(&mut stdin) {
                Ok(Some(received)) => inputs.send(Input::Received(received)).is_err(),
                Ok(None) => inputs.send(Input::Ended(None)).is_ok(),
                Err(error) => inputs.send(Input::Ended(Some(error.to_string()))).is_ok(),
            };
            if end {
                return;
            }
        }
    });
}

/// Returns the next message; `None` at the end of the input.
///
/// # Errors
/// The input cannot be read, or a header does not say where the message ends.
fn next(input: &mut impl BufRead) -> io::Result<Option<Received>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        input
            .by_ref()
            .take(MAX_HEADER)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let line = line
            .strip_suffix(b"\n")
            .ok_or_else(|| wrong("a header is too long"))?;
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            let value = value.trim().parse::<u64>();
            length = Some(value.map_err(|_| wrong("a Content-Length is no number"))?);
        }
    }
    let length = length.ok_or_else(|| wrong("a header has no Content-Length"))?;
    if length > MAX_MESSAGE {
        return Err(wrong("a message is too long"));
    }
    let mut body = Vec::new();
    if input.by_ref().take(length).read_to_end(&mut body)? as u64 != length {
        return Ok(None);
    }
    Ok(Some(match serde_json::from_slice(&body) {
        Ok(message) => Received::Message(Box::new(message)),
        Err(error) => Received::Malformed(error.to_string()),
    }))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The way to the editor. It never blocks.
#[derive(Clone, Debug)]
pub(super) struct Out {
    messages: Sender<Message>,
    next_id: Arc<AtomicI32>,
}

impl Out {
    fn send(&self, message: impl Into<Message>) {
        // The editor is gone: the end of the input ends the server.
        let _ = self.messages.send(message.into());
    }

    /// Answers a request.
    pub(super) fn reply(&self, id: RequestId, result: Value) {
        self.send(Response::new_ok(id, result));
    }

    /// Answers a request with an error.
    pub(super) fn refuse(&self, id: RequestId, code: ErrorCode, message: &str) {
        self.send(Response::new_err(id, code as i32, message.to_owned()));
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.send(Notification::new(method.to_owned(), params));
    }

    /// Sends a request, and returns its id.
    pub(super) fn request(&self, method: &str, params: Value) -> RequestId {
        let id = RequestId::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        self.send(Request::new(id.clone(), method.to_owned(), params));
        id
    }

    /// Writes a line into the editor's log, which it does not show by itself.
    pub(super) fn log(&self, text: &str) {
        let params = json!({"type": 3, "message": format!("touchmark: {text}")});
        self.notify("window/logMessage", params);
    }

    /// Shows a line to the user: the answer to something that they have done.
    pub(super) fn show(&self, text: &str, is_warning: bool) {
        let kind = if is_warning { 2 } else { 3 };
        let params = json!({"type": kind, "message": format!("touchmark: {text}")});
        self.notify("window/showMessage", params);
    }
}

/// The thread that writes messages.
#[derive(Debug)]
pub(super) struct Writer {
    ended: Receiver<()>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start() -> (Self, Out) {
        let (messages, queue) = mpsc::channel::<Message>();
        let (done, ended) = mpsc::channel();
        thread::spawn(move || {
            let mut stdout = io::stdout().lock();
            let _ = queue
                .iter()
                .try_for_each(|message| message.write(&mut stdout));
            let _ = done.send(());
        });
        let next_id = Arc::new(AtomicI32::new(1));
        (Self { ended }, Out { messages, next_id })
    }

    /// Waits until the last message is written, if the editor reads it. Every
    /// [`Out`] must have been dropped.
    pub(super) fn finish(self) {
        let _ = self.ended.recv_timeout(LAST);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_malformed_message_does_not_end_the_input() {
        let body = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let framed = |body: &str| format!("Content-Length: {}\r\nX: y\r\n\r\n{body}", body.len());
        let all = framed("{nonsense") + &framed(r#"{"id":null,"error":{}}"#) + &framed(body);
        let mut input = all.as_bytes();
        for _ in 0..2 {
            assert!(matches!(next(&mut input), Ok(Some(Received::Malformed(_)))));
        }
        let last = next(&mut input).unwrap().unwrap();
        assert!(matches!(last, Received::Message(_)));
        assert!(matches!(next(&mut input), Ok(None)));
    }

    #[test]
    fn a_header_that_cannot_be_followed_ends_the_input() {
        for wrong in [
            "Content-Length: ten\r\n\r\n",
            "X: y\r\n\r\n{}",
            "Content-Length: 99999999999999\r\n\r\n",
            &"x".repeat(10_000),
        ] {
            assert!(next(&mut wrong.as_bytes()).is_err(), "{wrong:.30}");
        }
        assert!(matches!(
            next(&mut "Content-Length: 9\r\n\r\n{}".as_bytes()),
            Ok(None)
        ));
    }
}
