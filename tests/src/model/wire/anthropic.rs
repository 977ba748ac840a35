//! Anthropic's Messages.

use serde_json::{Value, json};

use super::{Said, Wire, events, fresh};

pub(super) struct Messages;

impl Wire for Messages {
    fn speaks(&self, path: &str) -> bool {
        path.ends_with("/messages")
    }

    fn items<'a>(&self, body: &'a Value) -> &'a Value {
        &body["messages"]
    }

    fn stream(&self, said: &Said, tokens: u64) -> String {
        let mut message = self.whole(said, tokens);
        let block = message["content"][0].take();
        let reason = message["stop_reason"].take();
        message["content"] = json!([]);
        let (begun, delta) = match &block["input"] {
            Value::Null => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": block["text"]}),
            ),
            input => (
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            ),
        };
        events(&[
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": begun}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 5}}),
            json!({"type": "message_stop"}),
        ])
    }

    fn whole(&self, said: &Said, tokens: u64) -> Value {
        let (block, reason) = match said {
            Said::Text(text) | Said::Free(_, text) | Said::Custom(_, text) => {
                (json!({"type": "text", "text": text}), "end_turn")
            }
            Said::Call(name, arguments) => (
                json!({"type": "tool_use", "id": fresh("toolu"), "name": name, "input": arguments}),
                "tool_use",
            ),
        };
        json!({
            "id": fresh("msg"), "type": "message", "role": "assistant", "model": "scripted",
            "content": [block], "stop_reason": reason, "stop_sequence": null,
            "usage": {"input_tokens": tokens, "output_tokens": 5,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        })
    }
}
