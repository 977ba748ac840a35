//! What a command does, on one line of the terminal while it takes long.
//!
//! The line is on standard error. Everything that the command prints removes
//! the line first, and so does the command's end.

use std::io::Write as _;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use touchmark_client::proto::Millis;

use crate::system::terminal;
use crate::text::{cut, duration};

/// How long a command may take before the line appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time between two pictures of the line.
const PACE: Duration = Duration::from_millis(200);

/// The line of this process; `None` while the command says nothing of what it
/// does.
static LINE: Mutex<Option<Line>> = Mutex::new(None);

struct Line {
    /// How many of how many things are done; `None` if they are not counted.
    counted: Arc<Mutex<Option<(usize, usize)>>>,
    /// The thread that writes the line. It ends with the sender.
    writer: JoinHandle<()>,
    end: Sender<()>,
}

/// Shows what is done from now on, if that takes long and standard error is a
/// terminal.
pub(crate) fn begin(doing: &'static str) {
    end();
    if terminal::columns_of_notes().is_none() {
        return;
    }
    let counted = Arc::default();
    let (end, ended) = mpsc::channel();
    let shown = Arc::clone(&counted);
    let writer = thread::Builder::new()
        .name("touchmark-progress".into())
        .spawn(move || write(doing, &shown, &ended));
    // Without the thread, the line is missing.
    *locked(&LINE) = writer.ok().map(|writer| Line {
        counted,
        writer,
        end,
    });
}

/// Says how much of it is done.
pub(crate) fn count(done: usize, of: usize) {
    if let Some(line) = &*locked(&LINE) {
        *locked(&line.counted) = Some((done, of));
    }
}

/// Removes the line.
pub(crate) fn end() {
    let line = locked(&LINE).take();
    if let Some(Line { writer, end, .. }) = line {
        drop(end);
        let _it_has_ended = writer.join();
    }
}

fn write(doing: &str, counted: &Mutex<Option<(usize, usize)>>, ended: &Receiver<()>) {
    let begun = Instant::now();
    let mut wait = PATIENCE;
    let mut out = std::io::stderr();
    while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = PACE;
        let text = text(doing, *locked(counted), begun.elapsed());
        // In the last column the cursor would wrap.
        let columns = terminal::columns_of_notes().unwrap_or_default();
        let text = cut(&text, columns.saturating_sub(1));
        let _it_is_closed = write!(out, "\r\u{1b}[K{text}").and_then(|()| out.flush());
    }
    if wait == PACE {
        let _it_is_closed = write!(out, "\r\u{1b}[K").and_then(|()| out.flush());
    }
}

/// Returns the text of the line.
fn text(doing: &str, counted: Option<(usize, usize)>, elapsed: Duration) -> String {
    let elapsed = duration(Millis::try_from(elapsed.as_millis()).unwrap_or_default());
    match counted {
        Some((done, of)) => format!("{doing}: {done} of {of}, {elapsed}"),
        None => format!("{doing}, {elapsed}"),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_done_and_how_far() {
        let after = Duration::from_millis(3_400);
        assert_eq!(text("undoing", None, after), "undoing, 3 s");
        assert_eq!(
            text("reading commits", Some((12, 340)), after),
            "reading commits: 12 of 340, 3 s"
        );
    }
}
