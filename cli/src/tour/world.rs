//! A workspace, a home directory and a daemon for the duration of the tour.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use touchmark_client::blocking::Client;
use touchmark_client::proto::BaseDirectories;
use touchmark_client::proto::daemon::Shutdown;
use touchmark_client::{Environment, Start, Workspace, connect_or_start, start};

use crate::context::hello;
use crate::output::Outcome;
use crate::system::files::private_directory;

/// How long the daemon may take to exit.
const PATIENCE: Duration = Duration::from_secs(5);

/// A temporary workspace with its own daemon.
pub(super) struct World {
    directory: TempDir,
    workspace: Workspace,
    client: Client,
}

impl World {
    pub(super) fn new() -> Outcome<Self> {
        let directory = tempfile::Builder::new()
            .prefix("touchmark-demo-")
            .tempdir()
            .context("a temporary directory")?;
        let home = directory
            .path()
            .canonicalize()
            .context("the temporary directory")?;
        let root = home.join("workspace");
        fs::create_dir(&root).context("the workspace")?;
        // Nothing of the user's own touchmark is read or written.
        let socket = home.join("socket");
        let places = [
            ("XDG_RUNTIME_DIR", "run"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_DATA_HOME", "data"),
        ];
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), home.clone().into()),
            ("TOUCHMARK_SOCKET".into(), socket.clone().into()),
        ];
        for (name, place) in places {
            private(&home.join(place))?;
            variables.push((name.into(), home.join(place).into()));
        }
        let environment = Environment {
            base: BaseDirectories {
                runtime: Some(home.join("run")),
                state: home.join("state"),
                config: home.join("config"),
                cache: home.join("cache"),
            },
            socket: Some(socket.into()),
        };
        let workspace = Workspace::at(&root, &environment)?;
        end_on_interrupt(workspace.clone(), home)?;
        let start = Start {
            binary: std::env::current_exe()
                .context("the path of this program")?
                .into(),
            environment: variables,
            ..Start::default()
        };
        let client = connect_or_start(&workspace, &hello(), &start)?;
        Ok(Self {
            directory,
            workspace,
            client,
        })
    }

    /// Returns a connection to the daemon.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the path of a file in the workspace.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.workspace.root.join(name)
    }

    /// Writes a file as any program would, without reporting it to touchmark.
    pub(super) fn write(&self, name: &str, text: &str) -> Outcome {
        Ok(fs::write(self.path(name), text).with_context(|| format!("write {name}"))?)
    }

    pub(super) fn read(&self, name: &str) -> Outcome<String> {
        Ok(fs::read_to_string(self.path(name)).with_context(|| format!("read {name}"))?)
    }

    /// Stops the daemon and removes everything.
    pub(super) fn end(self) -> Outcome {
        shut_down(&self.client);
        drop(self.client);
        start::wait_until_ended(&self.workspace, PATIENCE)?;
        Ok(self
            .directory
            .close()
            .context("remove the temporary directory")?)
    }
}

fn shut_down(client: &Client) {
    // The daemon may exit before its answer is sent. Whether it has exited is
    // checked afterwards.
    let _ = client.call(Shutdown {});
}

fn private(directory: &Path) -> Outcome {
    Ok(private_directory()
        .create(directory)
        .with_context(|| format!("create {}", directory.display()))?)
}

/// Stops the daemon and removes the directory at Ctrl-C.
fn end_on_interrupt(workspace: Workspace, home: PathBuf) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("wait for Ctrl-C")?;
    thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            if runtime.block_on(tokio::signal::ctrl_c()).is_err() {
                return;
            }
            if let Ok(client) = Client::connect_silent(&workspace.socket(), PATIENCE) {
                shut_down(&client);
            }
            // Files that cannot be removed stay in the temporary directory.
            let _ = start::wait_until_ended(&workspace, PATIENCE);
            let _ = fs::remove_dir_all(&home);
            std::process::exit(130);
        })
        .context("wait for Ctrl-C")?;
    Ok(())
}
