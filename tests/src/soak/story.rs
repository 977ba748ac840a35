//! What happened to a lost line, for the test's output.

use std::collections::BTreeSet;

use serde_json::json;

use crate::Client;

/// Returns the versions that added or removed a line, the newest first, for the
/// test's output.
pub(super) fn of_line(client: &mut Client, lost: &str) -> String {
    let Some((path, line)) = lost.split_once(": ") else {
        return String::new();
    };
    let mut story = lost.to_owned();
    let mut newer = (false, String::new(), String::new());
    let mut before = None;
    loop {
        let page = client.ok("file/history", json!({"path": path, "before": before}));
        for version in page["versions"].as_array().into_iter().flatten() {
            let at = json!({"path": path, "at": version["clock"]});
            let Ok(content) = client.call("file/content", at) else {
                newer.1 += " (not kept)";
                continue;
            };
            let content = content["text"].as_str().unwrap_or_default();
            let has = content.lines().any(|other| other == line);
            if has != newer.0 {
                let (gone, come) = (without(content, &newer.2), without(&newer.2, content));
                let newer = &newer.1;
                story += &format!(
                    "\n  {has} at {version}\n    then {newer}\n    took {gone:?}, brought {come:?}"
                );
            }
            newer = (has, version.to_string(), content.to_owned());
        }
        before = Some(page["more"].clone()).filter(|more| !more.is_null());
        if before.is_none() {
            return story;
        }
    }
}

/// Returns the lines of a text that another one does not have.
fn without<'t>(text: &'t str, other: &str) -> Vec<&'t str> {
    let others: BTreeSet<&str> = other.lines().collect();
    text.lines().filter(|line| !others.contains(line)).collect()
}
