//! Checks that the README shows the example that the crate's documentation
//! compiles.
#![allow(clippy::expect_used)]

const README: &str = include_str!("../../README.md");
const CRATE: &str = include_str!("../src/lib.rs");

/// Returns the text between two lines.
fn block(text: &str, from: &str, to: &str) -> String {
    let (_, rest) = text.split_once(from).expect("the block");
    let (block, _) = rest.split_once(to).expect("its end");
    block.to_owned()
}

#[test]
fn the_readme_shows_the_compiled_example() {
    let compiled: Vec<String> = block(CRATE, "//! ```no_run\n", "//! ```\n")
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned())
        // Documentation hides these lines as well.
        .filter(|line| !line.starts_with("# "))
        .collect();
    let shown: Vec<String> = block(README, "```rust\n", "```\n")
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(!shown.is_empty());
    assert_eq!(shown, compiled);
}
