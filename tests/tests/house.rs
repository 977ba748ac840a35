//! The limits of the project's sources: circles of imports, lengths of files,
//! first sentences, words.

use std::env;
use std::fs;
use std::path::Path;

use touchmark_tests::house::{CRATES, count, imports, largest_circle, sources};

/// The most modules that may import each other in a circle.
const CIRCLE: usize = 12;

/// The most lines of a source file, without its tests.
const LENGTH: usize = 600;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn the_counts_are_within_their_limits() {
    let house = count(root());
    if let Some(file) = env::var_os("TOUCHMARK_TEST_HOUSE") {
        fs::write(file, house.to_string()).unwrap();
    }
    for krate in CRATES {
        let circle = largest_circle(&imports(root(), krate));
        assert!(circle.len() <= CIRCLE, "{krate}: {circle:#?}");
    }
    assert!(house.loop_fields <= 15, "{house}");
    assert!(house.engine_files <= 5, "{house}");
}

#[test]
fn a_file_can_be_read_in_a_sitting() {
    let long = |krate: &str| -> Vec<String> {
        let files = sources(root(), &format!("{krate}/src"));
        let long = files.iter().filter(|file| file.production.len() > LENGTH);
        long.map(|file| format!("{} {}", file.path, file.production.len()))
            .collect()
    };
    let long: Vec<String> = CRATES.iter().flat_map(|krate| long(krate)).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// The documents have no list of the files: each says itself what it is for.
#[test]
fn each_file_begins_with_what_it_is_for() {
    for krate in CRATES {
        for file in sources(root(), &format!("{krate}/src")) {
            let mut lines = file.production.iter();
            let is_before = |line: &&String| line.is_empty() || line.starts_with("#![");
            // A file of tests alone is named after what it tests.
            let Some(first) = lines.find(|line| !is_before(line)) else {
                continue;
            };
            let is_first = first.starts_with("//! ");
            assert!(is_first, "{}: {first}", file.path);
        }
    }
}
