//! A FUSE file system with one file, implemented on the raw protocol. It can
//! stop answering, like a network share whose server is gone.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};

/// The name and content of the only file.
pub const FILE: (&str, &[u8]) = ("f.txt", b"one\n");

const ROOT: u64 = 1;
const NO_ENTRY: i32 = -2;
const NOT_KNOWN: i32 = -38;

/// A mounted file system. After it is dropped, it answers again, with errors.
pub struct Hanging {
    connection: File,
    hangs: Arc<AtomicBool>,
    delay: Arc<AtomicU64>,
}

impl Hanging {
    /// Mounts the file system at a directory. Returns `None`, and prints the
    /// reason, where that is not possible.
    pub fn new(at: &Path) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = match device {
            Ok(device) => device,
            Err(error) => {
                crate::parts::not_tested(&format!("a file system that hangs: /dev/fuse: {error}"));
                return None;
            }
        };
        // The mount program inherits the descriptor.
        fcntl_setfd(&device, FdFlags::empty()).expect("an inherited descriptor");
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let mount = Command::new("mount")
            .args(["-i", "-t", "fuse", "-o", &options, "a-test"])
            .arg(at)
            .stdin(Stdio::null())
            .status();
        fcntl_setfd(&device, FdFlags::CLOEXEC).expect("a descriptor");
        if !mount.is_ok_and(|status| status.success()) {
            crate::parts::not_tested("a file system that hangs: FUSE cannot be mounted here");
            return None;
        }
        let hangs = Arc::new(AtomicBool::new(false));
        let delay = Arc::new(AtomicU64::new(0));
        let server = device.try_clone().expect("a descriptor");
        let (told, slow) = (Arc::clone(&hangs), Arc::clone(&delay));
        std::thread::spawn(move || serve(server, &told, &slow));
        Some(Self {
            connection: device,
            hangs,
            delay,
        })
    }

    /// Delays each read from now on, in milliseconds. Everything else is
    /// answered immediately.
    pub fn slow(&self, milliseconds: u64) {
        self.delay.store(milliseconds, Ordering::SeqCst);
    }

    /// Answers nothing from now on: neither reads nor lookups.
    pub fn hang(&self) {
        self.hangs.store(true, Ordering::SeqCst);
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        // Pending requests get an error as soon as all copies of the descriptor
        // are closed.
        self.hangs.store(false, Ordering::SeqCst);
        let _ = self.connection.flush();
    }
}

/// Answers requests in order. Requests that were held back come last.
fn serve(mut connection: File, hangs: &AtomicBool, delay: &Arc<AtomicU64>) {
    let mut buffer = vec![0; 1 << 18];
    while let Ok(length) = connection.read(&mut buffer) {
        while hangs.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let Some(request) = buffer.get(..length) else {
            return;
        };
        if let Some((unique, error, body)) = answer(request) {
            let mut message = Vec::new();
            message.extend_from_slice(&(16 + body.len() as u32).to_le_bytes());
            message.extend_from_slice(&error.to_le_bytes());
            message.extend_from_slice(&unique.to_le_bytes());
            message.extend_from_slice(&body);
            let is_read = request.get(4..8) == Some(&15_u32.to_le_bytes());
            if !is_read || delay.load(Ordering::SeqCst) == 0 {
                let _interrupted = connection.write(&message);
                continue;
            }
            // On another thread, so that other requests are answered in the
            // meantime.
            let delay = Arc::clone(delay);
            let Ok(mut connection) = connection.try_clone() else {
                return;
            };
            std::thread::spawn(move || {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(delay.load(Ordering::SeqCst)) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let _interrupted = connection.write(&message);
            });
        }
    }
}

fn answer(request: &[u8]) -> Option<(u64, i32, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(request[at..at + 4].try_into().unwrap_or_default());
    let long = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap_or_default());
    let (operation, unique, node) = (word(4), long(8), long(16));
    let mut body = Vec::new();
    let mut error = 0;
    match operation {
        // LOOKUP: neither the name nor the attributes may be cached.
        1 if request
            .get(40..)
            .is_some_and(|name| name.strip_suffix(b"\0") == Some(FILE.0.as_bytes())) =>
        {
            longs(&mut body, &[2, 0, 0, 0, 0]);
            attributes(&mut body, 2);
        }
        1 => error = NO_ENTRY,
        // FORGET, INTERRUPT and BATCH_FORGET need no answer.
        2 | 36 | 42 => return None,
        3 => {
            longs(&mut body, &[0, 0]);
            attributes(&mut body, node);
        }
        // OPEN, OPENDIR: bypass the page cache.
        14 | 27 => longs(&mut body, &[1, 1]),
        15 => {
            let from = (long(48) as usize).min(FILE.1.len());
            body.extend_from_slice(&FILE.1[from..]);
        }
        17 => longs(&mut body, &[0; 10]),
        18 | 25 | 29 => {}
        // INIT.
        26 => {
            words(&mut body, &[7, 31, 65_536, 0]);
            body.extend_from_slice(&12_u16.to_le_bytes());
            body.extend_from_slice(&10_u16.to_le_bytes());
            words(&mut body, &[65_536, 1]);
            body.resize(64, 0);
        }
        _ => error = NOT_KNOWN,
    }
    Some((unique, error, body))
}

fn attributes(body: &mut Vec<u8>, node: u64) {
    let is_root = node == ROOT;
    let size = if is_root { 0 } else { FILE.1.len() as u64 };
    longs(body, &[node, size, 1, 0, 0, 0]);
    let mode = if is_root { 0o40_755 } else { 0o100_644 };
    words(body, &[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]);
}

fn longs(body: &mut Vec<u8>, values: &[u64]) {
    values
        .iter()
        .for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
}

fn words(body: &mut Vec<u8>, values: &[u32]) {
    values
        .iter()
        .for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
}

/// Returns whether a `stat` of a path returns in time. A thread that may never
/// end tries it.
pub fn answers(at: &Path) -> bool {
    let (tell, told) = std::sync::mpsc::channel();
    let at = at.to_path_buf();
    std::thread::spawn(move || tell.send(std::fs::metadata(at).is_ok()));
    told.recv_timeout(Duration::from_millis(300)).is_ok()
}
