//! A notice on the user's desktop when something is lost (`desktop.losses`).

use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use touchmark_proto::quoting::{escaped, restore_command};
use touchmark_proto::{Clock, RelPath};

/// The program that shows a notice, from the user's `PATH`.
const PROGRAM: &str = "notify-send";

/// The least time between two notices: a command may lose many files at once.
const PAUSE: Duration = Duration::from_secs(10);

/// The longest name that is shown, in characters.
const NAME: usize = 200;

/// What of a loss is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    title: String,
    body: String,
}

impl Loss {
    /// Returns what is shown of a version that was overwritten unseen.
    pub(crate) fn overwritten(path: &RelPath, version: Clock) -> Self {
        let back = restore_command(path, version);
        Self {
            title: format!("Overwritten unseen: {}", name(path)),
            body: back.unwrap_or_else(|| "touchmark log".into()),
        }
    }

    /// Returns what is shown of bytes that a write would have destroyed.
    pub(crate) fn kept(path: &RelPath) -> Self {
        Self {
            title: format!("Kept from being overwritten: {}", name(path)),
            body: "touchmark recovered list".into(),
        }
    }
}

fn name(path: &RelPath) -> String {
    escaped(&path.to_string(), NAME)
}

/// Shows losses on the desktop.
#[derive(Debug, Default)]
pub(crate) struct Desktop {
    newest: Option<Instant>,
    is_missing: Arc<AtomicBool>,
}

impl Desktop {
    /// Shows a loss, unless one was shown just before. Nothing waits for it.
    pub(crate) fn show(&mut self, loss: Loss) {
        let is_soon = self.newest.is_some_and(|newest| newest.elapsed() < PAUSE);
        if is_soon || self.is_missing.load(Ordering::Relaxed) {
            return;
        }
        self.newest = Some(Instant::now());
        let is_missing = Arc::clone(&self.is_missing);
        let shown = thread::Builder::new()
            .name("touchmark-desktop".into())
            .spawn(move || {
                let mut command = Command::new(PROGRAM);
                // Without a shell, and no name can be an option.
                command
                    .args([
                        "--app-name=touchmark",
                        "--",
                        &loss.title,
                        &plain(&loss.body),
                    ])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                match command.status() {
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        if !is_missing.swap(true, Ordering::Relaxed) {
                            tracing::warn!(
                                "`desktop.losses` is on, but {PROGRAM} is not installed"
                            );
                        }
                    }
                    Err(error) => tracing::warn!("{PROGRAM}: {error}"),
                    Ok(_) => {}
                }
            });
        if let Err(error) = shown {
            tracing::warn!("no thread for {PROGRAM}: {error}");
        }
    }
}

/// Returns a text that desktops show as it is: they read marks in the body.
fn plain(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_a_body_are_text() {
        assert_eq!(plain("a <b>&</b>"), "a &lt;b&gt;&amp;&lt;/b&gt;");
    }
}
