//! The formats of answers that agents accept.

use serde_json::{Value, json};
use touchmark_proto::hooks::HookPrinted;

use super::super::happened::Verdict;

/// A format of answers.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Answers {
    /// `hookSpecificOutput`, with the event's name (Claude Code).
    Specific,
    /// `decision` and `reason`; a text in `hookSpecificOutput` (Gemini CLI).
    Decision,
    /// `permission`; a text in `additional_context` (Cursor).
    Permission,
    /// `deny` and `append` (opencode's plug-in).
    Plugin,
    /// Both as [`Self::Specific`] and with the decision at the top level: VS
    /// Code and Copilot CLI read the same hook file.
    Copilot,
    /// `decision` and `reason`; a text in `hook_specific_output` (Mistral Vibe).
    Flat,
    /// `decision`, which is `block` (goose).
    Block,
    /// The exit code 2 and the reason on standard error (Windsurf).
    Exit,
}

impl Answers {
    pub(super) fn print(self, event: &str, verdict: Verdict, shown: Option<String>) -> HookPrinted {
        let (exit, stderr) = match (self, &verdict) {
            (Self::Exit, Verdict::Deny(reason)) => (2, reason.clone()),
            _ => (0, String::new()),
        };
        let mut printed = self.json(event, verdict);
        if let (Some(text), Value::Object(members)) = (shown, &mut printed) {
            members.insert("systemMessage".to_owned(), text.into());
        }
        HookPrinted {
            stdout: printed.to_string(),
            stderr,
            exit,
            ack: None,
        }
    }

    fn json(self, event: &str, verdict: Verdict) -> Value {
        match (self, verdict) {
            (_, Verdict::Nothing) | (Self::Exit, _) => json!({}),
            (Self::Copilot, Verdict::Deny(reason)) => json!({
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
                "hookSpecificOutput": {
                    "hookEventName": event,
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                },
            }),
            (Self::Block, Verdict::Deny(reason)) => {
                json!({"decision": "block", "reason": reason})
            }
            (Self::Specific, Verdict::Deny(reason)) => json!({"hookSpecificOutput": {
                "hookEventName": event,
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }}),
            (Self::Specific, Verdict::Ask(text)) => json!({"hookSpecificOutput": {
                "hookEventName": event,
                "permissionDecision": "ask",
                "permissionDecisionReason": text,
            }}),
            (Self::Permission, Verdict::Ask(text)) => {
                json!({"permission": "ask", "user_message": text})
            }
            (Self::Copilot, Verdict::Tell(text)) => json!({
                "additionalContext": text,
                "hookSpecificOutput": {
                    "hookEventName": event,
                    "additionalContext": text,
                },
            }),
            (Self::Specific, Verdict::Tell(text)) => json!({"hookSpecificOutput": {
                "hookEventName": event,
                "additionalContext": text,
            }}),
            (Self::Specific, Verdict::Replace(output)) => json!({"hookSpecificOutput": {
                "hookEventName": event,
                "updatedToolOutput": output,
            }}),
            (Self::Decision | Self::Flat, Verdict::Deny(reason)) => {
                json!({"decision": "deny", "reason": reason})
            }
            (Self::Flat, Verdict::Tell(text)) => {
                json!({"hook_specific_output": {"additional_context": text}})
            }
            (Self::Decision, Verdict::Tell(text)) => {
                json!({"hookSpecificOutput": {"additionalContext": text}})
            }
            (Self::Permission, Verdict::Deny(reason)) => json!({
                "permission": "deny",
                "user_message": reason,
                "agent_message": reason,
            }),
            (Self::Permission, Verdict::Tell(text)) => json!({"additional_context": text}),
            (Self::Plugin, Verdict::Deny(reason)) => json!({"deny": reason}),
            (Self::Plugin, Verdict::Tell(text)) => json!({"append": text}),
            (_, Verdict::Ask(_) | Verdict::Tell(_) | Verdict::Replace(_)) => json!({}),
        }
    }
}
