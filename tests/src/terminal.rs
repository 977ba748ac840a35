//! A command on a terminal of its own, and what its screen shows.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::wire::PATIENCE;

/// A running command and its screen. The command is killed when this is dropped.
pub struct Terminal {
    child: Child,
    screen: vt100::Parser,
    output: Receiver<Vec<u8>>,
    /// Everything that the command has written.
    written: Vec<u8>,
    main: OwnedFd,
}

impl Terminal {
    /// Runs a command on a terminal of this size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        command.env("TERM", "xterm-256color");
        Self::start_as(command, columns, rows)
    }

    /// Runs a command on a terminal of the kind that its environment names.
    pub fn start_as(mut command: Command, columns: u16, rows: u16) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&main).expect("the terminal's rights");
        unlockpt(&main).expect("the terminal, unlocked");
        let name = ptsname(&main, Vec::new()).expect("the terminal's name");
        let name = name.into_string().expect("a plain name");
        let side = File::options().read(true).write(true).open(name);
        let side = side.expect("the terminal's other side");
        tcsetwinsize(&side, size(columns, rows)).expect("the terminal's size");
        let again = || Stdio::from(side.try_clone().expect("the terminal"));
        let child = command
            .stdin(again())
            .stdout(again())
            .stderr(again())
            .spawn()
            .expect("the command");
        drop(side);
        let (sender, output) = channel();
        let mut reader = File::from(main.try_clone().expect("the terminal"));
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            // At the command's end reading fails.
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            screen: vt100::Parser::new(rows, columns, 0),
            output,
            written: Vec::new(),
            main,
        }
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        tcsetwinsize(&self.main, size(columns, rows)).expect("the terminal's size");
        self.screen.screen_mut().set_size(rows, columns);
    }

    /// Types a text on the terminal.
    pub fn enter(&mut self, text: &str) {
        let main = self.main.try_clone().expect("the terminal");
        let typed = File::from(main).write_all(text.as_bytes());
        typed.expect("to type on the terminal");
    }

    /// Waits until the rows of the screen satisfy `wanted`, and returns them.
    pub fn until(&mut self, what: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let rows = self.rows();
            if wanted(&rows) {
                return rows;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => {
                    self.screen.process(&bytes);
                    self.written.extend(bytes);
                }
                Err(_) => panic!("the screen never shows {what}:\n{}", rows.join("\n")),
            }
        }
    }

    /// Takes what the command has written so far.
    pub fn take(&mut self) {
        while let Ok(bytes) = self.output.try_recv() {
            self.screen.process(&bytes);
            self.written.extend(bytes);
        }
    }

    /// Returns the rows of the screen with their colours, as a terminal receives
    /// them.
    pub fn coloured(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let (_, columns) = screen.size();
        let rows = screen.rows_formatted(0, columns);
        rows.map(|row| String::from_utf8_lossy(&row).into_owned())
            .collect()
    }

    /// Returns the rows of the screen, without blanks at their ends.
    pub fn rows(&self) -> Vec<String> {
        let screen = self.screen.screen();
        let (_, columns) = screen.size();
        let rows = screen.rows(0, columns);
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// Returns whether a line was longer than the screen is wide.
    pub fn has_wrapped(&self) -> bool {
        let screen = self.screen.screen();
        let (rows, _) = screen.size();
        (0..rows).any(|row| screen.row_wrapped(row))
    }

    /// Returns everything that the command has written so far.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Returns the lines of a table without the column of ages, which differ between
/// two commands: the other cells, separated by ` | `.
pub fn without_times(lines: &[String]) -> Vec<String> {
    let without = |line: &String| {
        let cells = line.split("  ").map(str::trim);
        let cells = cells.filter(|cell| !cell.is_empty());
        let cells = cells.filter(|cell| !cell.ends_with(" ago") && *cell != "now");
        cells.collect::<Vec<_>>().join(" | ")
    };
    lines.iter().map(without).collect()
}
