//! A fence between what happens to files and the records of it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{ANSWERED, ASKED, ENDED, asks, number_at, options};

/// How often the answer is looked for.
const PAUSE: Duration = Duration::from_micros(50);

/// Has the witness record everything that happened to watched names until now,
/// and waits for that, at most this long. Returns whether it has done so; it has
/// if it has ended. One process at a time may ask.
///
/// # Errors
/// The system's.
pub fn fence(ring: &Path, patience: Duration) -> io::Result<bool> {
    let open = |path: &Path, read: bool| -> io::Result<File> {
        options().read(read).write(true).open(path)
    };
    let file = open(ring, true)?;
    let asked = number_at(&file, ASKED)?.wrapping_add(1);
    file.write_all_at(&asked.to_le_bytes(), ASKED)?;
    // Only the witness has it open for reading.
    let mut asks = match open(&asks(ring), false) {
        Err(error) if error.raw_os_error() == Some(NO_READER) => return Ok(true),
        asks => asks?,
    };
    let until = Instant::now() + patience;
    while ![asked, ENDED].contains(&number_at(&file, ANSWERED)?) {
        match asks.write(&[1]) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(true),
            _asked_or_full => {}
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}

/// `ENXIO`: no process has a FIFO open for reading.
const NO_READER: i32 = rustix::io::Errno::NXIO.raw_os_error();
