//! The tools, one function each. The documentation of a function is the description that a model
//! reads.

use std::sync::Arc;

use rmcp::handler::server::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ToolAnnotations};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use serde_json::Value;
use touchmark_client::proto::changes::{Ack, ModifiedTake};
use touchmark_client::proto::checkpoints::{CheckpointCreate, CheckpointDetect, CheckpointList};
use touchmark_client::proto::files::{FileHistory, FileReadText, FileStatus};
use touchmark_client::proto::search::SearchGrep;
use touchmark_client::proto::writes::{FileEdit, FileWrite};
use touchmark_client::proto::{ClientPath, LineRange, Method, SessionId};

use super::answers::{self, answer};
use super::arguments::{self, CheckpointAction};
use super::link::Again;
use super::server::Server;
use super::written;

impl Server {
    /// Sends the daemon a request. Its error becomes the tool's.
    async fn ask<M: Method>(
        &self,
        again: Again,
        params: impl Fn(SessionId) -> M,
    ) -> Result<Value, CallToolResult> {
        let link = self.link();
        let asked = link.ask(again, params).await;
        asked.map_err(|error| answers::refused(&error, link.root()))
    }

    async fn tell<M: Method>(
        &self,
        again: Again,
        params: impl Fn(SessionId) -> M,
    ) -> CallToolResult {
        match self.ask(again, params).await {
            Ok(done) => answer(done, &self.link().id()),
            Err(no) => no,
        }
    }
}

#[tool_router(vis = "pub(super)")]
impl Server {
    /// Returns whether this session's copy of a file is still what is on disk (fresh, stale, deleted or unread), and who has changed the file since. Without `path`: for all files that this session has read or written.
    #[tool(title = "File status")]
    async fn file_status(
        &self,
        Parameters(asked): Parameters<arguments::FileStatus>,
    ) -> CallToolResult {
        self.tell(Again::Yes, |session| FileStatus {
            paths: asked.path.as_ref().map(|path| vec![spoken(path)]),
            cursor: asked.cursor.clone(),
            ..FileStatus::new(session)
        })
        .await
    }

    /// Lists what others (the user, other agents, git, formatters) changed in files that this session has read or written, since the last report. Each change is reported once.
    #[tool(title = "Changed files")]
    async fn changed_files(
        &self,
        Parameters(asked): Parameters<arguments::ChangedFiles>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        // Answers in progress must be either acknowledged or reported again, not both.
        self.wires().deliveries.settled().await;
        let taken = self
            .ask(Again::Yes, |session| ModifiedTake {
                paths: asked.path.as_ref().map(|path| vec![spoken(path)]),
                ..ModifiedTake::new(session).ack(Ack::Explicit)
            })
            .await;
        match taken {
            Ok(mut taken) => {
                if let Some(Value::String(cursor)) = taken
                    .as_object_mut()
                    .and_then(|taken| taken.remove("cursor"))
                {
                    let told = (self.link().id(), cursor);
                    self.wires().deliveries.expect(context.id, told);
                }
                answer(taken, &self.link().id())
            }
            Err(no) => no,
        }
    }

    /// Reads a file, or some of its lines. Text that this session has already and that has not changed since is not sent again, unless `force` is set.
    #[tool(title = "Read file")]
    async fn read_file(
        &self,
        Parameters(asked): Parameters<arguments::ReadFile>,
    ) -> CallToolResult {
        let range = match (asked.start_line, asked.end_line) {
            (None, None) => None,
            (start, end) => Some(LineRange {
                start: start.unwrap_or(1),
                end: end.unwrap_or(u32::MAX),
            }),
        };
        let read = self
            .ask(Again::Yes, |session| FileReadText {
                range,
                force: asked.force,
                decode: true,
                ..FileReadText::new(session, &*asked.path)
            })
            .await;
        match read {
            Ok(read) => answers::text(written::read(&asked.path, &read), read),
            Err(no) => no,
        }
    }

    /// Replaces a text in a file. Refused if another author has changed the file since this session read it: read it again then.
    #[tool(title = "Edit file")]
    async fn edit_file(
        &self,
        Parameters(asked): Parameters<arguments::EditFile>,
    ) -> CallToolResult {
        let edited = self
            .ask(Again::No, |session| FileEdit {
                replace_all: asked.replace_all,
                force: asked.force,
                ..FileEdit::new(
                    session,
                    &*asked.path,
                    &*asked.old_string,
                    &*asked.new_string,
                )
            })
            .await;
        match edited {
            Ok(edited) => answers::text(written::edit(&asked, &edited), edited),
            Err(no) => no,
        }
    }

    /// Writes a whole file, which keeps its encoding, byte order mark and line endings. Refused if it exists and this session has not read it, or if another author has changed it since.
    #[tool(title = "Write file")]
    async fn write_file(
        &self,
        Parameters(asked): Parameters<arguments::WriteFile>,
    ) -> CallToolResult {
        let written = self
            .ask(Again::No, |session| FileWrite {
                text: Some(asked.text.clone()),
                force: asked.force,
                create_directories: asked.create_directories,
                keep_form: true,
                ..FileWrite::new(session, &*asked.path)
            })
            .await;
        match written {
            Ok(written) => answers::text(written::write(&asked, &written), written),
            Err(no) => no,
        }
    }

    /// Searches files for a regular expression, as ripgrep does: ignored, hidden and binary files are skipped.
    #[tool(title = "Search files")]
    async fn grep(&self, Parameters(asked): Parameters<arguments::Grep>) -> CallToolResult {
        self.tell(Again::Yes, |session| SearchGrep {
            session: Some(session),
            path: asked.path.as_deref().map(spoken),
            glob: asked.glob.clone(),
            file_type: asked.file_type.clone(),
            context: asked.context,
            case_insensitive: asked.case_insensitive,
            multiline: asked.multiline,
            max_matches: asked.max_matches,
            ..SearchGrep::new(&*asked.pattern)
        })
        .await
    }

    /// Returns who changed a file, when, and with what evidence: all its known versions, the newest first.
    #[tool(title = "Who changed a file")]
    async fn who_changed(
        &self,
        Parameters(asked): Parameters<arguments::WhoChanged>,
    ) -> CallToolResult {
        self.tell(Again::Yes, |_| FileHistory {
            limit: asked.limit,
            before: asked.before,
            ..FileHistory::new(&*asked.path)
        })
        .await
    }

    /// Remembers this moment (`create`), lists the remembered moments (`list`), or lists the files that were edited after one, and by whom (`detect`). It restores nothing.
    #[tool(title = "Checkpoint")]
    async fn checkpoint(
        &self,
        Parameters(asked): Parameters<arguments::Checkpoint>,
    ) -> CallToolResult {
        match asked.action {
            CheckpointAction::Create => {
                self.tell(Again::No, |session| CheckpointCreate {
                    label: asked.label.clone(),
                    ..CheckpointCreate::new(session)
                })
                .await
            }
            CheckpointAction::List => {
                self.tell(Again::Yes, |session| CheckpointList {
                    cursor: asked.cursor.clone(),
                    ..CheckpointList::new(session)
                })
                .await
            }
            CheckpointAction::Detect => {
                self.tell(Again::Yes, |session| CheckpointDetect {
                    checkpoint: asked.checkpoint.clone(),
                    time: asked.time,
                    paths: asked.path.as_ref().map(|path| vec![spoken(path)]),
                    cursor: asked.cursor.clone(),
                    ..CheckpointDetect::new(session)
                })
                .await
            }
        }
    }
}

impl Server {
    /// Returns all tools.
    pub(super) fn tools() -> ToolRouter<Self> {
        let mut tools = Self::tool_router();
        for tool in tools.map.values_mut() {
            tool.attr.annotations = Some(hints(&tool.attr.name));
            tool.attr.input_schema = Arc::new(arguments::plain(&tool.attr.input_schema));
        }
        tools
    }
}

/// Returns the hints about a tool that a client may show to its user.
fn hints(tool: &str) -> ToolAnnotations {
    let writes = matches!(tool, "edit_file" | "write_file");
    let is_once = matches!(tool, "changed_files" | "edit_file" | "checkpoint");
    ToolAnnotations::new()
        .read_only(!writes && tool != "checkpoint")
        .destructive(writes)
        .idempotent(!is_once)
        .open_world(false)
}

fn spoken(path: &(impl AsRef<str> + ?Sized)) -> ClientPath {
    ClientPath::from(path.as_ref())
}
