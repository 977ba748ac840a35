//! Decides whether two calls of one tool are alike: by the tool's own rule, or
//! by a general heuristic.

use serde_json::{Map, Value};

/// Groups of argument names that tools use for the same thing.
const SAME: &[&[&str]] = &[&["path", "filePath", "file_path"]];

/// Arguments that name what a call is about. Two calls of a tool without a rule
/// are alike if one of these is equal.
const IDENTIFIERS: &[&str] = &[
    "path",
    "filePath",
    "file_path",
    "url",
    "id",
    "query",
    "pattern",
];

/// Returns an argument by its name, or by another name for the same thing.
pub(crate) fn member<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let names = SAME.iter().find(|names| names.contains(&name));
    names
        .copied()
        .unwrap_or(&[name])
        .iter()
        .chain([&name])
        .find_map(|name| args.get(*name))
}

/// Returns whether two calls of one tool are alike. With a rule, all arguments
/// that it names must be equal. Without a rule, more than half of the arguments
/// must be equal, or one that names what the call is about.
pub(crate) fn alike(one: &Value, other: &Value, rule: Option<&[String]>) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else {
        return one == other;
    };
    if let Some(rule) = rule {
        let says_something = rule.iter().any(|name| member(one, name).is_some());
        return says_something
            && rule
                .iter()
                .all(|name| member(one, name) == member(other, name));
    }
    let equal = |name: &str| {
        one.get(name)
            .is_some_and(|value| other.get(name) == Some(value))
    };
    if IDENTIFIERS.iter().any(|name| equal(name)) {
        return true;
    }
    let names = one.len() + other.keys().filter(|name| !one.contains_key(*name)).count();
    let same = one.keys().filter(|name| equal(name)).count();
    names > 0 && same * 2 > names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_rule_compares_its_members_and_no_others() {
        let path = rule(&["path"]);
        let whole = json!({"path": "a", "limit": 10});
        assert!(alike(&whole, &json!({"filePath": "a"}), Some(&path)));
        assert!(!alike(
            &whole,
            &json!({"path": "b", "limit": 10}),
            Some(&path)
        ));
        // Calls without any argument of the rule are not alike.
        assert!(!alike(&json!({"x": 1}), &json!({"x": 1}), Some(&path)));
        let grep = rule(&["pattern", "path", "glob", "multiline", "caseInsensitive"]);
        let call = json!({"pattern": "x", "path": "src", "context": 3});
        assert!(alike(
            &call,
            &json!({"pattern": "x", "path": "src"}),
            Some(&grep)
        ));
        let insensitive = json!({"pattern": "x", "path": "src", "caseInsensitive": true});
        assert!(!alike(&call, &insensitive, Some(&grep)));
    }

    #[test]
    fn without_a_rule_most_members_or_one_identifier_decide() {
        let call = json!({"query": "x", "a": 1, "b": 2, "c": 3});
        assert!(alike(&call, &json!({"query": "x", "a": 9}), None));
        let call = json!({"a": 1, "b": 2, "c": 3});
        assert!(alike(&call, &json!({"a": 1, "b": 2, "c": 4}), None));
        assert!(!alike(&call, &json!({"a": 1, "b": 9, "c": 4}), None));
        // Exactly half of the arguments is not more than half.
        assert!(!alike(
            &json!({"a": 1, "b": 2}),
            &json!({"a": 1, "b": 3}),
            None
        ));
        assert!(!alike(&json!({}), &json!({}), None));
    }
}
