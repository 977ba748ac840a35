//! Any value that a schema allows. The engine's tests include this file by its
//! path.

use serde_json::{Map, Value};

/// What the values consist of.
pub trait Choices {
    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize;

    /// Returns a number for a field.
    fn number(&mut self, schema: &Value) -> Value;

    /// Returns a text for a field with this name.
    fn text(&mut self, schema: &Value, name: &str) -> String;

    /// Returns a value for a field that may have any; `None` for none.
    fn free(&mut self) -> Option<Value>;
}

/// Returns a value for a field with this name; `None` for null, which means the
/// same as absent. `root` is the document that `schema` is a part of.
pub fn value(from: &mut impl Choices, root: &Value, schema: &Value, name: &str) -> Option<Value> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#'))?;
        return value(from, root, target, name);
    }
    if let Some(constant) = schema.get("const") {
        return Some(constant.clone());
    }
    for choice in ["enum", "oneOf", "anyOf"] {
        // An object may have its path as a `uri` instead.
        let is_object = schema.get("properties").is_some();
        if let (false, Some(all)) = (is_object, schema[choice].as_array()) {
            let one = &all[from.below(all.len())];
            return match choice {
                "enum" => Some(one.clone()),
                _ => value(from, root, one, name),
            };
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[from.below(kinds.len())].as_str()?,
        Value::Null => return from.free(),
        kind => kind.as_str()?,
    };
    match kind {
        "object" => Some(object(from, root, schema)),
        "array" => {
            let count = from.below(4);
            let items = (0..count).filter_map(|_| value(from, root, &schema["items"], name));
            Some(Value::Array(items.collect()))
        }
        "string" => Some(from.text(schema, name).into()),
        "boolean" => Some((from.below(2) == 1).into()),
        "integer" => Some(from.number(schema)),
        _ => None,
    }
}

fn object(from: &mut impl Choices, root: &Value, schema: &Value) -> Value {
    let mut object = Map::new();
    let all = [&schema["required"], &schema["oneOf"][0]["required"]];
    let required = all.iter().filter_map(|names| names.as_array()).flatten();
    let required: Vec<&Value> = required.collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let must = required.iter().any(|required| *required == name);
        // These are in a message, and not in what it is decoded to.
        let is_outside = matches!(name.as_str(), "withinMs" | "uri" | "fromUri");
        if is_outside || !(must || from.below(100) < 40) {
            continue;
        }
        if let Some(value) = value(from, root, field, name) {
            object.insert(name.clone(), value);
        }
    }
    Value::Object(object)
}
