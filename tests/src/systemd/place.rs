//! A workspace of the user in a [`Systemd`], seen through `touchmark`'s output.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use touchmark_proto::places;

use super::Systemd;
use crate::text;

/// Returns a command's output from both streams.
pub fn told(output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// One workspace inside.
pub struct Place<'s> {
    systemd: &'s Systemd,
    /// Its path inside.
    pub root: PathBuf,
}

impl<'s> Place<'s> {
    /// Creates the directory, which belongs to the user.
    pub fn new(systemd: &'s Systemd, root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        systemd.directory(&root);
        Self { systemd, root }
    }

    /// Returns the key in the socket's name.
    pub fn key(&self) -> String {
        places::key(&self.root)
    }

    /// Returns the name of the socket's unit.
    pub fn socket(&self) -> String {
        format!("touchmark@{}.socket", self.key())
    }

    /// Returns the name of the daemon's unit.
    pub fn service(&self) -> String {
        format!("touchmark@{}.service", self.key())
    }

    /// Writes a file that belongs to the user.
    pub fn file(&self, name: &str, text: &str) {
        self.systemd.write(&self.root.join(name), text);
    }

    /// Returns the content of a file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.systemd.path(self.root.join(name))).unwrap()
    }

    /// Runs `touchmark` for this workspace, as the user.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.systemd.command("touchmark");
        command.arg("--workspace").arg(&self.root).args(arguments);
        self.systemd.run(command)
    }

    /// Runs `touchmark` for this workspace, which must succeed. Returns its
    /// output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `touchmark` with `--json`, and returns its output as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Runs `touchmark call`, and returns the answer.
    pub fn call(&self, method: &str, params: Value) -> Value {
        serde_json::from_str(&self.ok(&["call", method, &params.to_string()])).unwrap()
    }

    /// Returns the id of the process that answers. The request starts one.
    pub fn pid(&self) -> u64 {
        self.call("status", json!({}))["pid"].as_u64().unwrap()
    }

    /// Returns the state of the session's copy of a file.
    pub fn state(&self, name: &str) -> String {
        let status = self.call("file/status", json!({"session": "s", "paths": [name]}));
        text(&status["files"][0], "state")
    }

    /// Returns the state of the daemon's unit.
    pub fn active(&self) -> String {
        self.systemd.property(&self.service(), "ActiveState")
    }

    /// Returns the daemon's process id from systemd, 0 for none.
    pub fn main_pid(&self) -> u64 {
        let pid = self.systemd.property(&self.service(), "MainPID");
        pid.parse().unwrap()
    }

    /// Sends a signal to a process inside.
    pub fn kill(&self, signal: &str, pid: u64) {
        let mut kill = self.systemd.root("kill");
        kill.args([signal, &pid.to_string()]);
        assert!(self.systemd.run(kill).status.success());
    }

    /// Returns the daemon's state directory, as a path inside.
    pub fn state_directory(&self) -> PathBuf {
        let state = self.systemd.home().join(".local/state/touchmark");
        state.join(self.key())
    }

    /// Sets the version in the header of a store that no daemon has open.
    /// Returns the previous version.
    pub fn set_version(&self, version: u32) -> u32 {
        let store = self.systemd.path(self.state_directory().join("store.db"));
        let store = fs::OpenOptions::new().read(true).write(true).open(store);
        let (store, mut was) = (store.unwrap(), [0; 4]);
        // Bytes 60 to 63 of the header are the schema's version.
        store.read_exact_at(&mut was, 60).unwrap();
        store.write_all_at(&version.to_be_bytes(), 60).unwrap();
        u32::from_be_bytes(was)
    }
}
