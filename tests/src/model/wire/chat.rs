//! OpenAI's Chat Completions, which other providers use as well.

use serde_json::{Value, json};

use super::{Said, Wire, data, fresh};

pub(super) struct Completions;

impl Wire for Completions {
    fn speaks(&self, path: &str) -> bool {
        path.ends_with("/chat/completions")
    }

    fn items<'a>(&self, body: &'a Value) -> &'a Value {
        &body["messages"]
    }

    fn stream(&self, said: &Said, tokens: u64) -> String {
        let whole = self.whole(said, tokens);
        let choice = &whole["choices"][0];
        let mut delta = choice["message"].clone();
        if let Some(call) = delta.pointer_mut("/tool_calls/0") {
            call["index"] = 0.into();
        }
        let chunk = |choices: Value| {
            json!({"id": whole["id"], "object": "chat.completion.chunk", "created": 0,
                "model": "scripted", "choices": choices})
        };
        let mut last = chunk(json!([]));
        last["usage"] = whole["usage"].clone();
        let ended = json!([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]);
        let begun = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
        data(&[chunk(begun), chunk(ended), last]) + "data: [DONE]\n\n"
    }

    fn whole(&self, said: &Said, tokens: u64) -> Value {
        let (message, reason) = match said {
            Said::Text(text) | Said::Free(_, text) => {
                (json!({"role": "assistant", "content": text}), "stop")
            }
            Said::Custom(name, input) => (
                json!({"role": "assistant", "content": null, "tool_calls": [{
                    "id": fresh("call"), "type": "custom",
                    "custom": {"name": name, "input": input},
                }]}),
                "tool_calls",
            ),
            Said::Call(name, arguments) => (
                json!({"role": "assistant", "content": null, "tool_calls": [{
                    "id": fresh("call"), "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()},
                }]}),
                "tool_calls",
            ),
        };
        json!({
            "id": fresh("chat"), "object": "chat.completion", "created": 0, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5},
        })
    }
}
