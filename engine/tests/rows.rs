//! Compares the table of methods with the protocol's schema: a row names every
//! path and session that the method's parameters name.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Map, Value, json};
use touchmark_engine::requests::{Naming, paths, row, session};
use touchmark_proto::{ErrorCode, METHODS, Request};

const PATH: &str = "a/file";
const SESSION: &str = "a-session";

/// Returns a value for a schema, with every field set.
fn sample(schema: &Value, all: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return match name {
            "ClientPath" => PATH.into(),
            "SessionId" => SESSION.into(),
            "Hash" | "HashOrAbsent" => "0".repeat(64).into(),
            "Clock" => format!("{}:1", "0".repeat(16)).into(),
            _ => sample(&all[name], all),
        };
    }
    for choice in ["anyOf", "oneOf"] {
        let first = schema[choice].as_array().map(|choices| &choices[0]);
        if let Some(first) = first.filter(|first| first.get("required").is_none()) {
            return sample(first, all);
        }
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema["examples"].get(0) {
        return value.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    let types = match &schema["type"] {
        Value::Array(types) => types[0].as_str().unwrap_or_default(),
        one => one.as_str().unwrap_or_default(),
    };
    match types {
        "array" => json!([sample(&schema["items"], all)]),
        "object" => {
            let mut object = Map::new();
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                // These fields are removed before a request is decoded: `uri`
                // is another form of `path`, and `withinMs` is how long the
                // client waits.
                if !matches!(name.as_str(), "uri" | "withinMs") {
                    object.insert(name.clone(), sample(field, all));
                }
            }
            object.into()
        }
        "integer" | "number" => 1.into(),
        "boolean" => true.into(),
        "string" => "x".into(),
        _ => json!({}),
    }
}

fn count(value: &Value, text: &str) -> usize {
    match value {
        Value::String(found) => usize::from(found == text),
        Value::Array(items) => items.iter().map(|item| count(item, text)).sum(),
        Value::Object(fields) => fields.values().map(|field| count(field, text)).sum(),
        _ => 0,
    }
}

fn each(mut look: impl FnMut(&str, &Value, &Request)) {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/protocol.schema.json")).unwrap();
    for method in METHODS {
        let params = sample(&schema["methods"][method]["params"], &schema["$defs"]);
        let request = Request::from_json(method, params.clone())
            .unwrap_or_else(|error| panic!("{method} {params}: {error}"));
        look(method, &params, &request);
    }
}

#[test]
fn a_row_names_every_path_and_the_session_of_its_method() {
    let (mut with_paths, mut with_session) = (0, 0);
    each(|method, params, request| {
        let named = count(params, PATH);
        assert_eq!(paths(request).len(), named, "paths of {method}");
        let named_session = params.get("session").is_some();
        assert_eq!(session(request).is_some(), named_session, "{method}");
        with_paths += usize::from(named > 0);
        with_session += usize::from(named_session);
    });
    // Enough methods have paths and sessions, so the schema was read correctly.
    assert!(with_paths > 20 && with_session > 35);
}

#[test]
fn a_method_by_its_name() {
    each(|method, _, request| {
        let changes = row(request).changes;
        let asks = [
            "list", "status", "check", "stats", "show", "history", "isStale",
        ];
        let part = method.rsplit('/').next().unwrap();
        assert!(!(changes && asks.contains(&part)), "{method} only asks");
        let acts = [
            "create", "record", "save", "remove", "delete", "cleanup", "write", "commit",
        ];
        assert!(
            changes || !acts.contains(&part),
            "{method} changes something"
        );
    });
}

/// Errors that follow from other columns of the row are in the protocol's table:
/// what is refused while facts cannot be stored (LOSS-3), what is refused for an
/// unknown session (SES-1), and what resolves paths.
#[test]
fn a_method_has_the_errors_that_follow_from_its_row() {
    each(|method, _, request| {
        let row = row(request);
        let asks = matches!(row.naming, Naming::Asks | Naming::Knows);
        let names_paths = !paths(request).is_empty();
        for (follows, code) in [
            (row.changes, ErrorCode::Storage),
            (asks, ErrorCode::UnknownSession),
            (names_paths, ErrorCode::OutsideWorkspace),
            (names_paths, ErrorCode::NotAFile),
        ] {
            assert!(
                !follows || request.errors().contains(&code),
                "{method} lacks {code:?}"
            );
        }
    });
}
