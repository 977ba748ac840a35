//! A workspace of the user's of a [`Systemd`], by what `touchmark` says of it.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use touchmark_proto::places;

use super::Systemd;
use crate::text;

/// What a command said, on both its outputs.
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
    /// A directory of the user's.
    pub fn new(systemd: &'s Systemd, root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        systemd.directory(&root);
        Self { systemd, root }
    }

    /// What its socket is named by.
    pub fn key(&self) -> String {
        places::key(&self.root)
    }

    /// The socket's unit.
    pub fn socket(&self) -> String {
        format!("touchmark@{}.socket", self.key())
    }

    /// The daemon's unit.
    pub fn service(&self) -> String {
        format!("touchmark@{}.service", self.key())
    }

    /// Writes a file of the user's.
    pub fn file(&self, name: &str, text: &str) {
        self.systemd.write(&self.root.join(name), text);
    }

    /// What a file holds.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.systemd.path(self.root.join(name))).unwrap()
    }

    /// `touchmark` for this workspace, as the user.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.systemd.command("touchmark");
        command.arg("--workspace").arg(&self.root).args(arguments);
        self.systemd.run(command)
    }

    /// The same, which must do it; what it printed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same with `--json`.
    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// `touchmark call`; the answer.
    pub fn call(&self, method: &str, params: Value) -> Value {
        serde_json::from_str(&self.ok(&["call", method, &params.to_string()])).unwrap()
    }

    /// Whose process answers; asking starts one.
    pub fn pid(&self) -> u64 {
        self.call("status", json!({}))["pid"].as_u64().unwrap()
    }

    /// The state of the session's copy of a file.
    pub fn state(&self, name: &str) -> String {
        let status = self.call("file/status", json!({"session": "s", "paths": [name]}));
        text(&status["files"][0], "state")
    }

    /// What systemd says of the daemon.
    pub fn active(&self) -> String {
        self.systemd.property(&self.service(), "ActiveState")
    }

    /// The daemon's process by systemd's word, 0 for none.
    pub fn main_pid(&self) -> u64 {
        let pid = self.systemd.property(&self.service(), "MainPID");
        pid.parse().unwrap()
    }

    /// A signal to a process inside.
    pub fn kill(&self, signal: &str, pid: u64) {
        let mut kill = self.systemd.root("kill");
        kill.args([signal, &pid.to_string()]);
        assert!(self.systemd.run(kill).status.success());
    }

    /// Where its daemon keeps its things, inside.
    pub fn state_directory(&self) -> PathBuf {
        let state = self.systemd.home().join(".local/state/touchmark");
        state.join(self.key())
    }

    /// Sets the version in the header of a store that no daemon has open; what
    /// it was.
    pub fn set_version(&self, version: u32) -> u32 {
        let store = self.systemd.path(self.state_directory().join("store.db"));
        let store = fs::OpenOptions::new().read(true).write(true).open(store);
        let (store, mut was) = (store.unwrap(), [0; 4]);
        // The header's bytes 60 to 63 are the schema's version.
        store.read_exact_at(&mut was, 60).unwrap();
        store.write_all_at(&version.to_be_bytes(), 60).unwrap();
        u32::from_be_bytes(was)
    }
}
