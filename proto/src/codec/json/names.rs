//! Names of files in JSON (docs/protocol.md).
//!
//! Serialisation writes a name that is not UTF-8 as [`RAW_MARK`] and its
//! percent-encoded bytes. This module converts that to a lossy `path` and an
//! exact `uri`, and back. It changes only members that contain names, because
//! another text may begin with a NUL byte too.

use percent_encoding::{percent_decode_str, percent_encode};
use serde_json::{Map, Value};

use crate::Error;
use crate::path::{RAW_MARK, URI_ESCAPES};

/// Members that contain a name, each with the member for its URI.
const NAMES: &[(&str, &str)] = &[("path", "uri"), ("from", "fromUri")];
/// Members that contain an array of names. URIs are elements of the array.
const LISTS: &[&str] = &["paths", "files", "keep"];
/// Members that contain JSON of any shape, which is not changed.
const FREE: &[&str] = &["args", "arguments", "result", "input"];
/// Members that contain an earlier answer, sent back by the client. A `uri`
/// next to a lossy `path` is the name.
const GIVEN_BACK: &[&str] = &["snapshot"];
const SCHEME: &str = "file://";

/// Prepares the parameters of a request: removes members that are `null`, and
/// replaces a `uri` by the path.
///
/// # Errors
/// `invalidParams` for a URI that is not a `file://` URI of this machine.
pub(super) fn tidy_params(value: &mut Value) -> Result<(), Error> {
    let mut result = Ok(());
    each_object(value, &mut |object| {
        if result.is_ok() {
            result = tidy(object);
        }
    });
    result
}

fn tidy(object: &mut Map<String, Value>) -> Result<(), Error> {
    object.retain(|_, member| !member.is_null());
    for (name, _) in NAMES {
        object.get_mut(*name).map_or(Ok(()), tidy_name)?;
    }
    listed(object).try_for_each(tidy_name)?;
    if let Some(uri) = object.remove("uri") {
        if object.contains_key("path") {
            return Err(Error::invalid("`path` and `uri` exclude each other"));
        }
        let Value::String(uri) = uri else {
            return Err(Error::invalid("`uri` is not a string"));
        };
        object.insert("path".into(), raw_from_uri(&uri)?.into());
    }
    for name in GIVEN_BACK {
        if let Some(Value::Object(answer)) = object.get_mut(*name)
            && answer.contains_key("uri")
        {
            answer.remove("path");
        }
    }
    Ok(())
}

fn tidy_name(value: &mut Value) -> Result<(), Error> {
    match value {
        Value::String(name) if name.starts_with(RAW_MARK) => {
            Err(Error::invalid("a path holds a NUL byte"))
        }
        Value::String(name) if name.starts_with(SCHEME) => {
            *name = raw_from_uri(name)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Writes names that are not UTF-8 as a request does: `uri` instead of `path`.
pub(super) fn to_request(value: &mut Value, root: &[u8]) {
    to_wire(value, root, false);
}

/// Writes names that are not UTF-8 as a reply does: `uri` in addition to
/// `path`.
pub(super) fn to_reply(value: &mut Value, root: &[u8]) {
    to_wire(value, root, true);
}

fn to_wire(value: &mut Value, root: &[u8], lossy_too: bool) {
    each_object(value, &mut |object| {
        for (name, uri) in NAMES {
            let Some(bytes) = object.get(*name).and_then(raw_bytes) else {
                continue;
            };
            if lossy_too {
                let lossy = String::from_utf8_lossy(&bytes).into_owned();
                object.insert((*name).into(), lossy.into());
            } else {
                object.remove(*name);
            }
            object.insert((*uri).into(), to_uri(&bytes, root).into());
        }
        for name in listed(object) {
            if let Some(bytes) = raw_bytes(name) {
                *name = to_uri(&bytes, root).into();
            }
        }
    });
}

/// Reads the names of a reply. A `uri` next to a `path` has the exact bytes.
pub(super) fn from_reply(value: &mut Value, root: &[u8]) {
    each_object(value, &mut |object| {
        for (name, uri) in NAMES {
            let exact = match (object.get(*name), object.get(*uri)) {
                (Some(Value::String(_)), Some(Value::String(uri))) => raw_below(uri, root),
                _ => None,
            };
            if let Some(exact) = exact {
                object.insert((*name).into(), exact.into());
            }
        }
        for name in listed(object) {
            if let Some(exact) = name.as_str().and_then(|uri| raw_below(uri, root)) {
                *name = exact.into();
            }
        }
    });
}

/// Calls `change` for each object in a value, an outer one before those within
/// it. Members that contain JSON of any shape are left out.
pub(super) fn each_object(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(elements) => elements
            .iter_mut()
            .for_each(|element| each_object(element, change)),
        Value::Object(object) => {
            change(object);
            for (name, member) in object {
                if !FREE.contains(&name.as_str()) {
                    each_object(member, change);
                }
            }
        }
        _ => {}
    }
}

/// Returns the elements of the arrays of names.
fn listed(object: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    object
        .iter_mut()
        .filter(|(name, _)| LISTS.contains(&name.as_str()))
        .filter_map(|(_, member)| member.as_array_mut())
        .flatten()
}

/// Returns the bytes of a name that is marked with [`RAW_MARK`].
fn raw_bytes(value: &Value) -> Option<Vec<u8>> {
    let encoded = value.as_str()?.strip_prefix(RAW_MARK)?;
    Some(percent_decode_str(encoded).collect())
}

fn raw_from_uri(uri: &str) -> Result<String, Error> {
    let refused = |reason: &str| Err(Error::invalid(format!("{reason} in a URI of a file")));
    let Some(rest) = uri
        .get(..SCHEME.len())
        .filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
        .and_then(|_| uri.get(SCHEME.len()..))
    else {
        return refused("another scheme than file://");
    };
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return refused("another machine's name, or no absolute path,");
    }
    if path.contains(['?', '#']) {
        return refused("a `?` or `#` that is not percent-encoded");
    }
    let escapes_are_whole = path.split('%').skip(1).all(|after| {
        let bytes = after.as_bytes();
        bytes.len() >= 2 && bytes[..2].iter().all(u8::is_ascii_hexdigit)
    });
    if !escapes_are_whole {
        return refused("a `%` without two hex digits");
    }
    Ok(format!("{RAW_MARK}{path}"))
}

/// Returns the marked relative name for the URI of a file below the root.
fn raw_below(uri: &str, root: &[u8]) -> Option<String> {
    let bytes: Vec<u8> = percent_decode_str(uri.strip_prefix(SCHEME)?).collect();
    let rest = bytes.strip_prefix(trimmed(root))?.strip_prefix(b"/")?;
    Some(format!("{RAW_MARK}{}", percent_encode(rest, URI_ESCAPES)))
}

fn to_uri(name: &[u8], root: &[u8]) -> String {
    let name_encoded = percent_encode(name, URI_ESCAPES);
    if name.starts_with(b"/") {
        return format!("{SCHEME}{name_encoded}");
    }
    let root = percent_encode(trimmed(root), URI_ESCAPES);
    format!("{SCHEME}{root}/{name_encoded}")
}

fn trimmed(root: &[u8]) -> &[u8] {
    root.strip_suffix(b"/").unwrap_or(root)
}
