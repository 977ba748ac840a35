//! What the tools give: the schemas, and the daemon's answers and errors as
//! results of a tool.

use std::path::Path;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use rmcp::schemars::generate::SchemaSettings;
use rmcp::schemars::{self, JsonSchema};
use serde::Serialize;
use serde_json::{Value, json};
use touchmark_client::Error;
use touchmark_client::proto::Change;
use touchmark_client::proto::checkpoints::{CheckpointRow, EditedFile};
use touchmark_client::proto::codec::json::error_to_json;
use touchmark_client::proto::{Clock, Millis, native};

use crate::output::one_line;
use crate::text::without_hidden;

/// What `changed_files` answers.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "its schema is what is needed of it")]
pub(crate) struct ChangedFiles {
    /// One per path: what others did to files of this session since it was last told. Each change is told once.
    changes: Vec<Change>,
    /// There is more: ask again.
    more: Option<bool>,
    /// What was known of files was lost since the last answer: read them again.
    reset: Option<bool>,
}

/// What `checkpoint` answers.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "its schema is what is needed of it")]
pub(crate) struct Checkpoint {
    /// After `create`: its name.
    checkpoint: Option<String>,
    /// After `create`: the moment, in the order of all facts.
    clock: Option<Clock>,
    /// After `create`: the moment, in milliseconds since 1970.
    time: Option<Millis>,
    /// After `list`: the oldest first.
    checkpoints: Option<Vec<CheckpointRow>>,
    /// After `detect`: one per path.
    files: Option<Vec<EditedFile>>,
    /// There is more: ask again with this cursor.
    more: Option<String>,
}

/// The error of a tool.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Refusal {
    /// A stable name: `stale`, `notRead`, `notFound`, `noDaemon`, ...
    pub(crate) code: String,
    /// One sentence.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: String,
}

/// The schema of a tool that gives this, or a refusal: clients compare what
/// comes with an error as well.
pub(crate) fn gives<T: JsonSchema>() -> Arc<JsonObject> {
    // As it is read: members that have nothing to say are not written.
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let answer = generator.subschema_for::<T>();
    let refusal = generator.subschema_for::<Refusal>();
    let mut schema = JsonObject::new();
    schema.insert("type".into(), "object".into());
    schema.insert(
        "anyOf".into(),
        json!([
            answer,
            {"type": "object", "properties": {"error": refusal}, "required": ["error"]},
        ]),
    );
    let definitions = generator.take_definitions(true);
    schema.insert("$defs".into(), Value::Object(definitions));
    Arc::new(schema)
}

/// A result that says the same twice: for programs, and as text for clients
/// that know nothing else. No name in the text hides anything (SEC-4).
pub(crate) fn answer(value: Value) -> CallToolResult {
    let shown = one_line(&value);
    text(shown, value)
}

/// A result whose text is for the model as it is.
pub(crate) fn text(text: String, value: Value) -> CallToolResult {
    let mut result = CallToolResult::structured(value);
    result.content = vec![ContentBlock::text(text)];
    result
}

/// An error as the result of a tool: the model reads it, and can act on it.
pub(crate) fn refused(error: &Error, root: &Path) -> CallToolResult {
    let refusal = Refusal {
        code: error.code().to_owned(),
        message: error.to_string(),
        hint: error.hint().to_owned(),
    };
    let fields = error
        .daemon()
        .map(|error| error_to_json(error, &native::bytes(root))["data"].take());
    failed(&refusal, fields)
}

/// The same for arguments that say nothing to this server.
pub(crate) fn wrong_arguments(message: &str) -> CallToolResult {
    let refusal = Refusal {
        code: "invalidParams".into(),
        message: message.to_owned(),
        hint: "compare the arguments with the tool's inputSchema".into(),
    };
    failed(&refusal, None)
}

fn failed(refusal: &Refusal, fields: Option<Value>) -> CallToolResult {
    let mut error = match fields {
        Some(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    };
    error.insert("code".into(), refusal.code.as_str().into());
    error.insert("message".into(), refusal.message.as_str().into());
    error.insert("hint".into(), refusal.hint.as_str().into());
    let mut result = CallToolResult::structured_error(json!({"error": error}));
    result.content = vec![ContentBlock::text(format!(
        "{} ({}): {}",
        without_hidden(&refusal.message),
        refusal.code,
        without_hidden(&refusal.hint)
    ))];
    result
}
