//! `docs/protocol.schema.json` matches the types. `TOUCHMARK_BLESS=1` writes
//! it.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::path::Path;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use touchmark_proto::events::Happening;
use touchmark_proto::methods::{self, MethodSchema};
use touchmark_proto::{COMMON_ERRORS, ErrorCode, ErrorData, PROTOCOL};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.schema.json");

fn generated() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let schemas = methods::schemas(&mut generator);
    let error_data = generator.subschema_for::<ErrorData>();
    let happening = generator.root_schema_for::<Happening>().to_value();
    let mut definitions = generator.take_definitions(true);
    definitions.remove("Happening");

    let mut methods = Map::new();
    for MethodSchema {
        name,
        params,
        result,
        errors,
        ..
    } in schemas
    {
        let params = params.to_value();
        let errors = names(errors);
        let definition = params["$ref"].as_str().unwrap().rsplit('/').next();
        add_within_ms(&mut definitions[definition.unwrap()]);
        methods.insert(
            name.into(),
            json!({"params": params, "result": result, "errors": errors}),
        );
    }
    describe_error_data(&mut definitions["ErrorData"]);
    definitions.values_mut().for_each(add_uris);
    let errors: Vec<Value> = ErrorCode::ALL
        .iter()
        .map(|code| json!({"code": code.code(), "name": code.name(), "hint": code.hint()}))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "touchmark",
        "description": "Every request, reply, error and event on the JSON wires. Absent and null are the same.",
        "protocol": PROTOCOL,
        "methods": methods,
        "commonErrors": names(COMMON_ERRORS),
        "errors": errors,
        "errorData": error_data,
        "events": events(&happening),
        "$defs": definitions,
    })
}

fn names(errors: &[ErrorCode]) -> Vec<&'static str> {
    errors.iter().map(|code| code.name()).collect()
}

/// Adds `withinMs`, which every request accepts (ATTR-9).
fn add_within_ms(params: &mut Value) {
    let params = params.as_object_mut().unwrap();
    assert_eq!(params["type"], "object");
    assert_eq!(
        params["additionalProperties"], false,
        "unknown fields are refused"
    );
    let properties = params.entry("properties").or_insert_with(|| json!({}));
    properties["withinMs"] = json!({
        "description": "The answer is worthless after that many milliseconds.",
        "type": ["integer", "null"], "format": "uint64", "minimum": 0,
    });
}

/// Describes `error.data` as it is in JSON: `spoken` is written as `path`, and
/// the error's other members are next to its fields.
fn describe_error_data(data: &mut Value) {
    let properties = data["properties"].as_object_mut().unwrap();
    properties.remove("spoken");
    for name in ["code", "hint"] {
        properties.insert(name.into(), json!({"type": "string"}));
    }
    let each = json!({"type": "array", "items": {"$ref": "#/$defs/ErrorData"},
        "description": "The same per path, where several paths are concerned."});
    properties.insert("files".into(), each);
}

/// Adds `uri` members: in a request `uri` may replace `path`, in a reply it may
/// be next to it (docs/protocol.md).
fn add_uris(definition: &mut Value) {
    let uri = json!({"type": "string", "format": "uri",
        "description": "The exact name as a percent-encoded file:// URI, where it is not UTF-8."});
    for (name, uri_name) in [("path", "uri"), ("from", "fromUri")] {
        let property = definition["properties"][name].to_string();
        let request = property.contains("#/$defs/ClientPath");
        if !request && !property.contains("#/$defs/RelPath") {
            continue;
        }
        definition["properties"][uri_name] = uri.clone();
        // Indexing would insert a null if there is no such member.
        let Some(Value::Array(required)) = definition.get_mut("required") else {
            continue;
        };
        let before = required.len();
        if request {
            required.retain(|field| field != name);
        }
        if required.len() < before {
            definition["oneOf"] = json!([{"required": [name]}, {"required": [uri_name]}]);
        }
    }
}

/// Returns the parameters of the notification `event`, by type.
fn events(happening: &Value) -> Value {
    let mut events = Map::new();
    for variant in happening["oneOf"].as_array().unwrap() {
        let (kind, fields) = variant["properties"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        let mut event = fields.clone();
        add_uris(&mut event);
        event["description"] = variant["description"].clone();
        let event = event.as_object_mut().unwrap();
        event.remove("additionalProperties");
        let properties = event.entry("properties").or_insert_with(|| json!({}));
        properties["type"] = json!({"const": kind});
        properties["subscription"] = json!({"type": "integer", "format": "uint64", "minimum": 0});
        properties["clock"] = json!({"$ref": "#/$defs/Clock"});
        let required = event.entry("required").or_insert_with(|| json!([]));
        let required = required.as_array_mut().unwrap();
        required.extend(["type", "subscription", "clock"].map(Value::from));
        events.insert(kind.clone(), Value::Object(event.clone()));
    }
    Value::Object(events)
}

#[test]
fn the_schema_is_current() {
    let generated = generated();
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&generated).unwrap() + "\n";
        std::fs::create_dir_all(Path::new(FILE).parent().unwrap()).unwrap();
        std::fs::write(FILE, text).unwrap();
    }
    let written: Value = std::fs::read_to_string(FILE)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    // `assert_eq` would print two whole schemas and hide the message.
    assert!(
        written == generated,
        "docs/protocol.schema.json is out of date: run this test with TOUCHMARK_BLESS=1"
    );
}

#[test]
fn the_schema_has_everything_and_every_reference_leads_somewhere() {
    let schema = generated();
    let names: Vec<&str> = schema["methods"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(names.len(), methods::METHODS.len());
    assert!(methods::METHODS.iter().all(|name| names.contains(name)));
    let events = schema["events"].as_object().unwrap();
    assert_eq!(events.len(), Happening::KINDS.len());
    assert!(
        Happening::KINDS
            .iter()
            .all(|kind| events.contains_key(*kind))
    );
    check_references(&schema, &schema);
}

fn check_references(value: &Value, schema: &Value) {
    match value {
        Value::Array(elements) => elements
            .iter()
            .for_each(|one| check_references(one, schema)),
        Value::Object(object) => {
            if let Some(target) = object.get("$ref").and_then(Value::as_str) {
                let found = schema.pointer(target.strip_prefix('#').unwrap());
                assert!(found.is_some(), "{target} leads nowhere");
            }
            object
                .values()
                .for_each(|one| check_references(one, schema));
        }
        _ => {}
    }
}
