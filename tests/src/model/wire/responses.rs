//! OpenAI's Responses.

use serde_json::{Value, json};

use super::{Said, Wire, events, fresh};

pub(super) struct Responses;

impl Wire for Responses {
    fn speaks(&self, path: &str) -> bool {
        path.ends_with("/responses")
    }

    fn items<'a>(&self, body: &'a Value) -> &'a Value {
        &body["input"]
    }

    fn stream(&self, said: &Said, tokens: u64) -> String {
        let response = self.whole(said, tokens);
        let item = &response["output"][0];
        events(&[
            json!({"type": "response.created", "response": {"id": response["id"]}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response}),
        ])
    }

    fn whole(&self, said: &Said, tokens: u64) -> Value {
        let item = match said {
            Said::Text(text) => json!({
                "type": "message", "id": fresh("msg"), "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }),
            Said::Free(name, input) | Said::Custom(name, input) => json!({
                "type": "custom_tool_call", "id": fresh("ctc"), "call_id": fresh("call"),
                "name": name, "input": input,
            }),
            Said::Call(name, arguments) => {
                let mut call = json!({
                    "type": "function_call", "id": fresh("fc"), "call_id": fresh("call"),
                    "name": name, "arguments": arguments.to_string(),
                });
                if let Some((space, name)) = name.split_once('.') {
                    call["namespace"] = space.into();
                    call["name"] = name.into();
                }
                call
            }
        };
        json!({
            "id": fresh("resp"), "object": "response", "status": "completed", "output": [item],
            "usage": {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": tokens + 5},
        })
    }
}
