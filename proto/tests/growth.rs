//! The types of the wire can grow without breaking clients, and clients of
//! other crates can build what they send.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;

use touchmark_proto::methods::{self, MethodSchema};

/// Gives a type what all requests have.
const REQUEST: &str = "#[apply(request!)]";

/// Leaves room for more fields or variants.
const ROOM: [&str; 4] = [
    REQUEST,
    "#[apply(answer!)]",
    "#[apply(choice!)]",
    r#"#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]"#,
];

/// Types that will never have another field.
const FINAL: [&str; 1] = ["LineRange"];

/// An item of the sources, or a variant with fields.
struct Item {
    /// Its file and name, for messages.
    place: String,
    name: String,
    attributes: Vec<String>,
    /// Whether it is a struct that a client sends.
    is_sent: bool,
}

/// Returns the types that are on the wire, and the variants with named fields
/// of such enums.
fn items() -> Vec<Item> {
    let mut items = Vec::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in fs::read_dir(sources).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let short = file.file_name().unwrap().to_string_lossy();
        let mut attributes: Vec<String> = Vec::new();
        let mut in_enum = false;
        for line in text.lines() {
            let code = line.trim();
            if code.starts_with("#[") {
                attributes.push(code.into());
                continue;
            }
            if code.starts_with("//") || code.starts_with("$(#[") {
                continue;
            }
            let attributes = std::mem::take(&mut attributes);
            let has = |word: &str| attributes.iter().any(|one| one.contains(word));
            let named = |kind: &str| {
                let (_, name) = code.split_once(kind)?;
                name.split([' ', '{', '(', '<']).next().map(str::to_owned)
            };
            let found = match (named("pub struct "), named("pub enum ")) {
                _ if !has("Deserialize") && !has("#[apply(") && !in_enum => None,
                (Some(name), _) => {
                    let is_sent = has(REQUEST) || has("deny_unknown_fields");
                    Some((name, is_sent))
                }
                (_, Some(name)) => {
                    in_enum = !code.ends_with('}');
                    Some((name, false))
                }
                _ if line == "}" => {
                    in_enum = false;
                    None
                }
                _ if in_enum && line.starts_with("    ") && !line.starts_with("     ") => {
                    let variant = code.strip_suffix(" {");
                    variant.map(|name| (name.to_owned(), false))
                }
                _ => None,
            };
            if let Some((name, is_sent)) = found {
                items.push(Item {
                    place: format!("{name} in proto/src/{short}"),
                    name,
                    attributes,
                    is_sent,
                });
            }
        }
    }
    items
}

#[test]
fn every_type_of_the_wire_leaves_room_for_more() {
    let items = items();
    let found = |name: &str| items.iter().any(|item| item.name == name);
    for name in [
        "FileRead",
        "Request",
        "ErrorCode",
        "State",
        "Version",
        "Stale",
    ] {
        assert!(found(name), "{name} was not found in the sources");
    }
    for item in &items {
        let has = |attribute: &str| item.attributes.iter().any(|one| one == attribute);
        let is_final = FINAL.contains(&item.name.as_str());
        assert!(
            is_final || ROOM.into_iter().any(has),
            "a later field or variant of {} would break clients: put one of these above it: {ROOM:?}",
            item.place
        );
        assert!(
            is_final || !item.is_sent || has(REQUEST),
            "clients of other crates cannot build {}: put this above it: {REQUEST}",
            item.place
        );
    }
}

#[test]
fn the_arguments_of_new_are_the_required_fields() {
    let mut generator = schemars::SchemaGenerator::default();
    let methods = methods::schemas(&mut generator);
    let definitions = generator.take_definitions(true);
    let mut arguments_of_all = 0;
    for MethodSchema {
        name,
        params,
        arguments,
        ..
    } in methods
    {
        let params = params.to_value();
        let definition = params["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let required = definitions[definition]["required"].as_array();
        let required: Vec<&str> = required
            .into_iter()
            .flatten()
            .map(|field| field.as_str().unwrap())
            .collect();
        let arguments: Vec<String> = arguments.iter().copied().map(camel_case).collect();
        assert_eq!(arguments, required, "{name}: `{definition}::new`");
        arguments_of_all += arguments.len();
    }
    assert!(arguments_of_all > 80, "{arguments_of_all}");
}

fn camel_case(field: &str) -> String {
    let mut words = field.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        name + &word[..1].to_uppercase() + &word[1..]
    })
}
