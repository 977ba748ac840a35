//! An agent's settings: where they are, and what `touchmark setup` adds to them.

/// An agent's settings.
#[derive(Debug)]
pub struct Settings {
    /// The agent's name for display.
    pub title: &'static str,
    /// The names of the agent's programs.
    pub programs: &'static [&'static str],
    /// The user's settings.
    pub user: UserFile,
    /// The project's settings, below the workspace.
    pub project: &'static str,
    /// What is added to the settings.
    pub adds: Addition,
    /// The timeout for an event, in the agent's unit. The hook itself gives up
    /// long before.
    pub timeout: u64,
    /// The settings of its MCP servers; `None` if it has none.
    pub servers: Option<Servers>,
    /// What the user has to do after the hooks are installed; `None` for
    /// nothing.
    pub note: Option<&'static str>,
    /// What the user has to do after the settings of a project are changed;
    /// `None` for nothing.
    pub project_note: Option<&'static str>,
    /// Whether the file of its MCP servers records which hooks the user has
    /// approved, in Codex's format. Then `note` is only for hooks that are not
    /// approved.
    pub records_trust: bool,
    /// Whether a hook that is in the user's and the project's settings runs
    /// once.
    pub runs_once: bool,
    /// The setting that switches all hooks off; `None` if there is none.
    pub switch: Option<Switch>,
    /// The setting for a program that runs shell commands; `None` if there is
    /// none.
    pub shell: Option<ShellPrefix>,
}

/// A setting that names a program by which an agent runs its shell commands. The
/// program gets the line for the shell as its argument.
#[derive(Debug)]
pub struct ShellPrefix {
    /// The object that has the setting.
    pub within: &'static str,
    /// The setting's name.
    pub name: &'static str,
    /// The variable with the agent's process id in the program's environment. The
    /// agent is the parent of what runs a command, and not of what runs a hook.
    pub agent: &'static str,
}

/// A setting that switches all of an agent's hooks off.
#[derive(Debug)]
pub struct Switch {
    /// Where the setting is, as a JSON pointer.
    pub pointer: &'static str,
    /// The value with which no hook runs.
    pub off: bool,
    /// Files that count before the project's: one next to it, and the one of
    /// the machine's administrator. `None` if the agent reads none.
    pub before: Option<(&'static str, &'static str)>,
}

/// The defaults that most agents share.
pub(super) const SETTINGS: Settings = Settings {
    title: "",
    programs: &[],
    user: UserFile::Home(""),
    project: "",
    adds: Addition::Hooks(Handler::Line),
    timeout: 5,
    servers: None,
    note: None,
    project_note: None,
    records_trust: false,
    runs_once: false,
    switch: None,
    shell: None,
};

/// The settings of an agent's MCP servers.
#[derive(Debug)]
pub struct Servers {
    /// The user's settings.
    pub user: UserFile,
    /// The project's settings, below the workspace.
    pub project: &'static str,
    /// The format of an entry.
    pub entry: EntryFormat,
}

/// A variable that some agents replace by their working directory.
pub const WORKSPACE: &str = "${workspaceFolder}";

/// The format of an MCP server's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFormat {
    /// `command` and `args` in `mcpServers`, with a `type` if it is given.
    Json(Option<&'static str>),
    /// `command` and `args` in `mcpServers`, with `--workspace`, since the
    /// server is started in another directory. The agent replaces [`WORKSPACE`]
    /// by its own directory.
    Placed,
    /// A single list in `mcp`.
    List,
    /// A table as in Codex's configuration, with the variables that the agent
    /// must pass on.
    Table(&'static [&'static str]),
}

/// Where a user's settings are.
#[derive(Debug)]
pub enum UserFile {
    /// In a directory that a variable names, else in one below the home
    /// directory: variable, directory, file.
    Named(&'static str, &'static str, &'static str),
    /// Below the home directory.
    Home(&'static str),
    /// Below the directory of the user's configuration.
    Config(&'static str),
}

/// What is added.
#[derive(Debug)]
pub enum Addition {
    /// Hooks of this format in a settings file, one for each event of
    /// [`Agent::hooks`](super::Agent::hooks).
    Hooks(Handler),
    /// A separate file. Its first line identifies it.
    File(&'static str),
}

/// The format of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// In a group with its matcher, as one line for a shell. A list of
    /// arguments next to the command would avoid the shell, but agents that run
    /// another agent's hooks do not support it: they would run the command
    /// without its arguments.
    Line,
    /// Like `Line`, with a name.
    NamedLine,
    /// The matcher next to the line, without a group.
    Flat,
    /// Without matcher, group and timeout. The output is not shown.
    Quiet,
    /// Without a group, in Copilot CLI's format: `bash`, `timeoutSec`.
    Bash,
}
