//! Gemini's generateContent.

use serde_json::{Value, json};

use super::{Said, Wire, data};

pub(super) struct Generate;

impl Wire for Generate {
    fn speaks(&self, path: &str) -> bool {
        path.ends_with("enerateContent")
    }

    fn streams(&self, path: &str, _body: &Value) -> bool {
        path.ends_with(":streamGenerateContent")
    }

    fn items<'a>(&self, body: &'a Value) -> &'a Value {
        &body["contents"]
    }

    fn stream(&self, said: &Said, tokens: u64) -> String {
        data(&[self.whole(said, tokens)])
    }

    fn whole(&self, said: &Said, tokens: u64) -> Value {
        let part = match said {
            Said::Text(text) | Said::Free(_, text) | Said::Custom(_, text) => json!({"text": text}),
            Said::Call(name, arguments) => {
                json!({"functionCall": {"name": name, "args": arguments}})
            }
        };
        json!({
            "candidates": [{"index": 0, "finishReason": "STOP",
                "content": {"role": "model", "parts": [part]}}],
            "usageMetadata": {"promptTokenCount": tokens, "candidatesTokenCount": 5,
                "totalTokenCount": tokens + 5},
            "modelVersion": "scripted",
        })
    }
}
