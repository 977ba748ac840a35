//! The fenced blocks of the documents, so that tests can run them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::world::{World, binary, finish_within};

/// The directory of the documents for agents' users.
pub const AGENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agents");

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The text after the opening fence.
    pub language: String,
    /// The line of the opening fence, from 1.
    pub line: usize,
    /// The text between the fences.
    pub text: String,
}

/// Returns the blocks of a page, in order.
pub fn of(page: &Path) -> Vec<Snippet> {
    let document =
        fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    cut(&document)
}

fn cut(document: &str) -> Vec<Snippet> {
    let mut snippets: Vec<Snippet> = Vec::new();
    let mut open = false;
    for (index, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                snippets.push(Snippet {
                    language: language.trim().into(),
                    line: index + 1,
                    text: String::new(),
                });
            }
            None if open => {
                let snippet = snippets.last_mut().expect("an open block");
                snippet.text.push_str(line);
                snippet.text.push('\n');
            }
            None => {}
        }
    }
    assert!(!open, "a block without an end");
    snippets
}

/// How long a block may take: some fetch and compile packages.
const LIMIT: Duration = Duration::from_secs(300);

/// Runs a shell block in the world's workspace, with `touchmark` on the `PATH`.
/// It must succeed. Returns its output.
pub fn run_shell(world: &World, page: &str, snippet: &Snippet) -> String {
    let directory = binary();
    let directory = directory.parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-euc", &snippet.text])
        .current_dir(world.workspace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    world.dress(&mut command);
    command
        .env("PATH", format!("{}:{path}", directory.display()))
        .env("TOUCHMARK_HOOK_MS", "30000");
    let place = format!("{page}:{}", snippet.line);
    let output = finish_within(command.spawn().expect("a shell"), &place, LIMIT);
    assert!(
        output.status.success(),
        "{place}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the `sh` blocks of a page in order, each in the directory in which the
/// previous one ended. A `text` block directly after one must equal its output,
/// except for numbers (times, clocks), the units of ages, and the width of
/// columns.
pub fn run_page(world: &World, page: &Path) {
    let name = page.file_name().expect("a page").to_string_lossy();
    let place = world.state().join("place");
    let mut printed: Option<String> = None;
    for snippet in of(page) {
        match snippet.language.as_str() {
            "sh" => {
                let (place, text) = (place.display(), &snippet.text);
                let moved = Snippet {
                    text: format!(
                        "if test -e '{place}'; then cd \"$(cat '{place}')\"; fi\n{text}\npwd > '{place}'\n"
                    ),
                    ..snippet
                };
                printed = Some(run_shell(world, &name, &moved));
            }
            "text" => {
                if let Some(printed) = printed.take() {
                    let line = snippet.line;
                    assert_eq!(
                        without_numbers(&printed),
                        without_numbers(&snippet.text),
                        "{name}:{line}: the block before prints\n{printed}"
                    );
                }
            }
            // Shown, not run: commands that run in parallel with the page, or
            // elsewhere.
            "console" => {}
            other => panic!("{name}:{}: nothing runs {other:?}", snippet.line),
        }
    }
}

/// Replaces each number by 0, also the id of a commit at the beginning of a line,
/// and several spaces by one.
fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    let is_id = |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lines = text.trim_end().split_inclusive('\n').map(|line| {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match is_id(word) {
            true => format!("0 {rest}"),
            false => line.to_owned(),
        }
    });
    for letter in lines.collect::<String>().chars() {
        let letter = if letter.is_ascii_digit() { '0' } else { letter };
        let repeats = matches!(letter, '0' | ' ') && plain.ends_with(letter);
        if !repeats {
            plain.push(letter);
        }
    }
    for unit in ["min", "h"] {
        plain = plain.replace(&format!("0 {unit} ago"), "0 s ago");
    }
    plain.replace(" \n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_out_with_their_language() {
        let snippets = cut("a\n```sh\nx\ny\n```\nb\n```json\n{}\n```\n");
        assert_eq!(snippets.len(), 2);
        assert_eq!((snippets[0].language.as_str(), snippets[0].line), ("sh", 2));
        assert_eq!(snippets[0].text, "x\ny\n");
        assert_eq!(snippets[1].text, "{}\n");
    }

    #[test]
    fn numbers_and_columns_do_not_count() {
        assert_eq!(
            without_numbers("13  you      10:02 \n"),
            without_numbers("6 you 9:11\n")
        );
        assert_eq!(
            without_numbers("6  1 min ago"),
            without_numbers("17 5 s ago")
        );
        assert_ne!(without_numbers("6 you"), without_numbers("6 claude"));
    }
}
