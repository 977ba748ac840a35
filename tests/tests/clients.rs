//! The Rust, the Python and the TypeScript client have the same methods.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Requests that name a session and are no methods of the Rust session: why.
const NOT_OF_A_RUST_SESSION: &[(&str, &str)] = &[
    ("initialize", "the connection sends it"),
    ("subscribe", "a connection has subscriptions"),
    ("claim", "the user says it, of any session"),
    (
        "hook/join",
        "it is for MCP servers, which have no session yet",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// All methods, each with the type of its parameters, and whether those name a
/// session.
fn methods() -> Vec<(String, String, bool)> {
    let schema: Value = serde_json::from_str(&read("docs/protocol.schema.json")).unwrap();
    let methods = schema["methods"].as_object().unwrap();
    let rows = methods.iter().map(|(name, method)| {
        let params = method["params"]["$ref"].as_str().unwrap();
        let params = params.rsplit('/').next().unwrap();
        let fields = &schema["$defs"][params]["properties"];
        (
            name.clone(),
            params.to_owned(),
            fields.get("session").is_some(),
        )
    });
    rows.collect()
}

fn names_of(has: impl Fn(&str, &str) -> bool) -> BTreeSet<String> {
    let methods = methods().into_iter();
    methods
        .filter(|(name, params, _)| has(name, params))
        .map(|(name, ..)| name)
        .collect()
}

/// `file/isStale` as a name in Python.
fn snake_case(method: &str) -> String {
    let mut name = String::new();
    for letter in method.chars() {
        match letter {
            '/' => name.push('_'),
            letter if letter.is_ascii_uppercase() => {
                name.push('_');
                name.push(letter.to_ascii_lowercase());
            }
            letter => name.push(letter),
        }
    }
    name
}

/// `file/isStale` as a name in TypeScript.
fn camel_case(method: &str) -> String {
    match method.split_once('/') {
        Some((family, verb)) => {
            format!("{family}{}{}", verb[..1].to_uppercase(), &verb[1..])
        }
        None => method.to_owned(),
    }
}

#[test]
fn the_sessions_of_the_three_clients_have_the_same_methods() {
    // All that the two kinds of Rust sessions are compiled from.
    let rust = ["requests", "session", "values"]
        .map(|name| read(&format!("client/src/{name}.rs")))
        .concat();
    let rust = names_of(|_, params| {
        rust.contains(&format!("{params}::new(")) || rust.contains(&format!("-> {params} {{"))
    });
    let python = read("bindings/python/touchmark_client/methods.py");
    let (_, python) = python.split_once("\nclass SessionMethods").unwrap();
    let python = names_of(|method, _| python.contains(&format!("    def {}(", snake_case(method))));
    let script = read("bindings/typescript/src/generated/requests.ts");
    let (_, script) = script.split_once(" class SessionRequests").unwrap();
    let script = names_of(|method, _| script.contains(&format!("\n  {}(", camel_case(method))));

    assert_eq!(python, script);
    assert!(python.len() > 30, "{python:?}");
    for (method, params, names_a_session) in methods() {
        let left_out = NOT_OF_A_RUST_SESSION
            .iter()
            .any(|(name, _)| *name == method);
        assert_eq!(
            names_a_session && !left_out,
            rust.contains(&method) && names_a_session,
            "{method} names a session: make it a method in client/src/requests.rs ({params}), or \
             say in this test why it is none"
        );
        let of_connections = ["initialize", "subscribe"].contains(&method.as_str());
        assert_eq!(
            names_a_session && !of_connections,
            python.contains(&method),
            "{method}: Python and TypeScript"
        );
    }
}

/// Without it, the checks of the client alone would not show what another
/// crate can build and match.
#[test]
fn the_client_alone_is_built_without_exhaustive() {
    for features in [&[][..], &["--no-default-features"]] {
        let tree = Command::new("cargo")
            .args(["tree", "--locked", "--offline", "-p", "touchmark-client"])
            .args(["--edges", "features,normal,build,dev"])
            .args(features)
            .current_dir(root())
            .output()
            .unwrap();
        let tree = String::from_utf8(tree.stdout).unwrap();
        assert!(tree.contains("touchmark-proto feature"), "{tree}");
        assert!(!tree.contains("\"exhaustive\""), "{tree}");
    }
}
