//! The statements of examples/fleet/README.md and its dashboard.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

/// The condition that the dashboard replaces by Grafana's time range.
const RANGE: &str = "time > now() - INTERVAL 30 DAY";

/// A question.
pub struct Question {
    /// The name in the first line of its query.
    pub name: String,
    /// The heading.
    pub title: String,
    /// The query, without its first line.
    pub query: String,
}

/// What the page has.
pub struct Page {
    /// The statements that make the tables, in their order.
    pub tables: Vec<String>,
    /// The questions.
    pub questions: Vec<Question>,
}

fn example() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/fleet")
}

/// Returns the path of the dashboard.
pub fn dashboard_path() -> PathBuf {
    example().join("dashboard.json")
}

/// Returns the processor for rotel that the page names.
pub fn processor() -> PathBuf {
    example().join("event_name.py")
}

/// Reads the page.
pub fn read() -> Page {
    let text = fs::read_to_string(example().join("README.md")).expect("examples/fleet/README.md");
    let (mut tables, mut questions) = (Vec::new(), Vec::new());
    let mut title = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("### ") {
            title = heading;
        }
        if line != "```sql" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match block[0].strip_prefix("-- ") {
            Some(name) => questions.push(Question {
                name: name.into(),
                title: title.into(),
                query: block[1..].join("\n"),
            }),
            None => tables.push(block.join("\n")),
        }
    }
    Page { tables, questions }
}

/// Returns the dashboard that the page's queries make.
pub fn dashboard(page: &Page) -> Value {
    let source = json!({"type": "grafana-clickhouse-datasource", "uid": "${source}"});
    let panel = |(at, question): (usize, &Question)| {
        json!({
            "id": at + 1,
            "type": "table",
            "title": question.title,
            "datasource": source,
            "gridPos": {"h": 9, "w": 12, "x": at % 2 * 12, "y": at / 2 * 9},
            "targets": [{
                "refId": "A",
                "datasource": source,
                "editorType": "sql",
                "queryType": "table",
                "format": 1,
                "rawSql": question.query.replace(RANGE, "$__timeFilter(time)"),
            }],
        })
    };
    let panels: Vec<Value> = page.questions.iter().enumerate().map(panel).collect();
    json!({
        "title": "touchmark: a fleet",
        "uid": "touchmark-fleet",
        "tags": ["touchmark"],
        "schemaVersion": 39,
        "editable": true,
        "time": {"from": "now-30d", "to": "now"},
        "templating": {"list": [{
            "name": "source",
            "label": "ClickHouse",
            "type": "datasource",
            "query": "grafana-clickhouse-datasource",
        }]},
        "panels": panels,
    })
}
