//! The program that witnesses a command (ATTR-3).

use std::path::PathBuf;
use std::process::Command;

use touchmark_client::{WITNESS_BINARY, Workspace, witness_program, witnessed, witnessed_by};

use crate::context::Context;

/// The witness of one command.
pub(crate) struct Witness {
    program: PathBuf,
    workspace: Workspace,
}

impl Witness {
    /// Finds the program. `None` if there is none, which is said, or if this
    /// process is witnessed already.
    pub(crate) fn find(context: &Context, workspace: &Workspace) -> Option<Self> {
        if witnessed_by(&workspace.places).is_some() {
            return None;
        }
        let Some(program) = witness_program() else {
            context.note(&format!(
                "{WITNESS_BINARY} is not installed next to touchmark; the command runs unwitnessed"
            ));
            return None;
        };
        // With the right to administer the system, the witness takes none away.
        if !rustix::process::geteuid().is_root() {
            context.note("witnessed: sudo and the like gain no rights in this command");
        }
        Some(Self {
            program,
            workspace: workspace.clone(),
        })
    }

    /// Returns the call that runs a program witnessed, in the command window
    /// with this id. The program's arguments follow.
    pub(crate) fn command(&self, window: &str, program: &std::ffi::OsStr) -> Command {
        let mut command = witnessed(&self.program, &self.workspace, window);
        command.arg("--").arg(program);
        command
    }
}
