//! Protobuf, by hand: the messages of OTLP that the daemon sends.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Logged;

/// The value of a field.
enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Returns the fields of a message, with their numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let field = match tag & 7 {
            0 => Field::Varint(varint(&mut message)),
            1 => Field::Fixed64(u64::from_le_bytes(
                take(&mut message, 8).try_into().expect("8 bytes"),
            )),
            2 => {
                let length = usize::try_from(varint(&mut message)).expect("a length");
                Field::Bytes(take(&mut message, length))
            }
            5 => {
                take(&mut message, 4);
                Field::Fixed32
            }
            other => panic!("wire type {other}"),
        };
        found.push((tag >> 3, field));
    }
    found
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = message.split_at(length);
    *message = rest;
    taken
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(message, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

/// Returns the sub-messages with a number.
fn within(message: &[u8], number: u64) -> Vec<&[u8]> {
    let all = fields(message).into_iter();
    all.filter_map(|(found, field)| match field {
        Field::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
    .collect()
}

fn text(message: &[u8], number: u64) -> String {
    let found = within(message, number);
    String::from_utf8(found.last().map_or(&[][..], |bytes| bytes).to_vec()).expect("UTF-8")
}

fn fixed(message: &[u8], number: u64) -> u64 {
    let mut all = fields(message).into_iter();
    all.find_map(|(found, field)| match field {
        Field::Fixed64(value) if found == number => Some(value),
        _ => None,
    })
    .unwrap_or(0)
}

/// Returns the attributes: `KeyValue` messages with a number.
fn attributes(message: &[u8], number: u64) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for pair in within(message, number) {
        let value = within(pair, 2);
        let value = value.first().map_or(&[][..], |bytes| bytes);
        let value = match fields(value).first() {
            Some((1, Field::Bytes(bytes))) => json!(String::from_utf8_lossy(bytes)),
            Some((2, Field::Varint(value))) => json!(*value == 1),
            Some((3, Field::Varint(value))) => json!(value.cast_signed()),
            _ => panic!("an attribute of another type: {pair:?}"),
        };
        let before = all.insert(text(pair, 1), value);
        assert_eq!(before, None, "an attribute twice");
    }
    all
}

/// Reads an `ExportLogsServiceRequest`.
pub(super) fn logs(request: &[u8]) -> Vec<Logged> {
    let mut all = Vec::new();
    for of_resource in within(request, 1) {
        let resource = within(of_resource, 1)
            .first()
            .map(|resource| attributes(resource, 1))
            .unwrap_or_default();
        for of_scope in within(of_resource, 2) {
            for record in within(of_scope, 2) {
                assert!(within(record, 5).is_empty(), "a record with a body");
                all.push(Logged {
                    event: text(record, 12),
                    time: fixed(record, 1),
                    attributes: attributes(record, 6),
                    resource: resource.clone(),
                });
            }
        }
    }
    all
}
