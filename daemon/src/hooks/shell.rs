//! Shell commands that do nothing but print lines of one file. A command that
//! may do anything else is not recognised as a read.

/// A command that prints lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) path: String,
    pub(super) lines: Lines,
}

/// The lines that a command prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    All,
    /// The first lines, with their number.
    First(u32),
    /// The last lines, with their number.
    Last(u32),
    /// Ranges from one line to another, or to the end of the file.
    Ranges(Vec<(u32, Option<u32>)>),
    /// The lines whose numbers the output contains.
    Numbered,
}

/// The maximum number of ranges in one `sed` script.
const RANGES: usize = 16;

/// Returns what a command prints, if it certainly prints lines of one file and
/// does nothing else.
pub(super) fn printed(command: &str) -> Option<Printed> {
    let words = words(command)?;
    let (program, arguments) = words.split_first()?;
    let program = program.rsplit('/').next()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match program {
        "cat" => cat(&arguments, "nbAeEstTuv"),
        "nl" => cat(&arguments, "ba"),
        "head" => ends(&arguments, true),
        "tail" => ends(&arguments, false),
        "sed" => sed(&arguments),
        "grep" => grep(&arguments),
        _ => None,
    }
}

/// Returns the words of a command. `None` if it has anything that the shell
/// would interpret: pipes, redirections, variables, globs, substitutions,
/// several commands.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '$' | '`' | '!' => return None,
                        '\\' => match letters.next()? {
                            inner @ ('"' | '\\' | '$' | '`') => word.push(inner),
                            '\n' => return None,
                            inner => word.extend(['\\', inner]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => match letters.next()? {
                '\n' => return None,
                inner => word.get_or_insert_default().push(inner),
            },
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | ']' | '{'
            | '}' | '~' | '!' | '\n' | '\r' => return None,
            '#' if word.is_none() => return None,
            // `A=b command` sets a variable.
            '=' if words.is_empty() => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// Returns the one file among the arguments, if all others are among these
/// flags.
fn cat(arguments: &[&str], flags: &str) -> Option<Printed> {
    let mut path = None;
    let mut only_names = false;
    for argument in arguments {
        match argument.strip_prefix('-') {
            Some("-") if !only_names => only_names = true,
            Some(letters) if !only_names => {
                let known = letters.chars().all(|letter| flags.contains(letter));
                if letters.is_empty() || !known {
                    return None;
                }
            }
            _ => set(&mut path, argument)?,
        }
    }
    Some(Printed {
        path: path?,
        lines: Lines::All,
    })
}

fn set(path: &mut Option<String>, argument: &str) -> Option<()> {
    let first = path.is_none() && !argument.is_empty() && argument != "-";
    *path = Some(argument.to_owned());
    first.then_some(())
}

/// Reads the arguments of `head` and `tail`.
fn ends(arguments: &[&str], head: bool) -> Option<Printed> {
    let mut path = None;
    let mut count = "10";
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if let Some(given) = argument.strip_prefix("--lines=") {
            count = given;
        } else if *argument == "-n" || *argument == "--lines" {
            count = rest.next()?;
        } else if *argument == "--" {
            set(&mut path, rest.next()?)?;
        } else if let Some(given) = argument.strip_prefix('-') {
            let given = given.strip_prefix('n').unwrap_or(given);
            if given.is_empty()
                || !given
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'+')
            {
                return None;
            }
            count = given;
        } else {
            set(&mut path, argument)?;
        }
    }
    let lines = match count.strip_prefix('+') {
        Some(from) if !head => Lines::Ranges(vec![(plain(from)?.max(1), None)]),
        Some(_) => return None,
        None if head => Lines::First(plain(count)?),
        None => Lines::Last(plain(count)?),
    };
    Some(Printed { path: path?, lines })
}

/// Parses a number that consists of digits only.
fn plain(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Reads the arguments of `sed -n '1,20p' FILE`.
fn sed(arguments: &[&str]) -> Option<Printed> {
    let mut quiet = false;
    let mut script: Option<&str> = None;
    let mut path = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match *argument {
            "-n" | "--quiet" | "--silent" => quiet = true,
            "-e" if script.is_none() => script = Some(rest.next()?),
            "-ne" if script.is_none() => {
                quiet = true;
                script = Some(rest.next()?);
            }
            flag if flag.starts_with('-') => return None,
            text if script.is_none() => script = Some(text),
            text => set(&mut path, text)?,
        }
    }
    if !quiet {
        return None;
    }
    let mut ranges = Vec::new();
    for command in script?.split(';') {
        let addresses = command.trim().strip_suffix('p')?.trim();
        let (start, end) = addresses.split_once(',').unwrap_or((addresses, addresses));
        let start = plain(start.trim()).filter(|start| *start > 0)?;
        let end = match end.trim() {
            "$" => None,
            // If the end is before the start, `sed` prints only the start.
            end => Some(plain(end)?.max(start)),
        };
        ranges.push((start, end));
    }
    (ranges.len() <= RANGES).then_some(Printed {
        path: path?,
        lines: Lines::Ranges(ranges),
    })
}

/// Reads the arguments of `grep -n`, whose output contains the numbers of the
/// lines.
fn grep(arguments: &[&str]) -> Option<Printed> {
    let mut numbered = false;
    let mut pattern = false;
    let mut path = None;
    let mut only_names = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.strip_prefix('-') {
            Some("-") if !only_names => only_names = true,
            Some("-line-number") if !only_names => numbered = true,
            Some("-ignore-case" | "-extended-regexp" | "-fixed-strings") if !only_names => {}
            Some("e") if !only_names => {
                rest.next()?;
                pattern = true;
            }
            Some("A" | "B" | "C") if !only_names => {
                plain(rest.next()?)?;
            }
            Some(letters) if !only_names && !letters.is_empty() => {
                let around = letters
                    .strip_prefix(['A', 'B', 'C'])
                    .is_some_and(|count| !count.is_empty() && plain(count).is_some());
                if !around
                    && !letters
                        .chars()
                        .all(|letter| "niEFGPwxvsah".contains(letter))
                {
                    return None;
                }
                numbered |= !around && letters.contains('n');
            }
            _ if !pattern => pattern = true,
            _ => set(&mut path, argument)?,
        }
    }
    numbered.then_some(Printed {
        path: path?,
        lines: Lines::Numbered,
    })
}

/// Returns the ranges of the line numbers in `grep -n`'s output; `None` if part
/// of it is not understood.
pub(super) fn numbers(output: &str) -> Option<Vec<(u32, u32)>> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in output.lines().filter(|line| *line != "--") {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = line.split_at_checked(digits)?;
        if !rest.starts_with([':', '-']) {
            return None;
        }
        let number = plain(number).filter(|number| *number > 0)?;
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(number) => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    (!ranges.is_empty()).then_some(ranges)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(command: &str) -> Option<(String, Lines)> {
        printed(command).map(|printed| (printed.path, printed.lines))
    }

    fn is(command: &str, path: &str, lines: Lines) {
        assert_eq!(of(command), Some((path.into(), lines)), "{command}");
    }

    #[test]
    fn commands_that_print_one_file() {
        is("cat a.rs", "a.rs", Lines::All);
        is(" /bin/cat -n  -- 'my file' ", "my file", Lines::All);
        is(r#"cat "a b\"c" "#, "a b\"c", Lines::All);
        is(r"cat a\ b", "a b", Lines::All);
        is("nl -ba x", "x", Lines::All);
        is("head x", "x", Lines::First(10));
        is("head -n 5 x", "x", Lines::First(5));
        is("head -n5 x", "x", Lines::First(5));
        is("head -20 x", "x", Lines::First(20));
        is("head --lines=3 x", "x", Lines::First(3));
        is("tail -n 4 x", "x", Lines::Last(4));
        is("tail -n +7 x", "x", Lines::Ranges(vec![(7, None)]));
        is("sed -n '1,20p' x", "x", Lines::Ranges(vec![(1, Some(20))]));
        is("sed -n 7p x", "x", Lines::Ranges(vec![(7, Some(7))]));
        is("sed -n -e '3,$p' x", "x", Lines::Ranges(vec![(3, None)]));
        is(
            "sed -n '1,2p;5,6p' x",
            "x",
            Lines::Ranges(vec![(1, Some(2)), (5, Some(6))]),
        );
        is("grep -n 'fn .*' x", "x", Lines::Numbered);
        is("grep -in -A 3 foo x", "x", Lines::Numbered);
        is("grep -n -C2 -e foo x", "x", Lines::Numbered);
    }

    #[test]
    fn whatever_else_a_shell_does_is_no_read() {
        for command in [
            "",
            "cat",
            "cat -",
            "cat a b",
            "cat a | head",
            "cat a > b",
            "cat < a",
            "cat a; rm a",
            "cat a && x",
            "cat $A",
            "cat \"$A\"",
            "cat `x`",
            "cat $(x)",
            "cat *.rs",
            "cat a?",
            "cat ~/a",
            "cat {a,b}",
            "cat 'a",
            "cat \"a",
            "cat a\\",
            "cat a\nrm a",
            "A=1 cat a",
            "cat --help",
            "# cat a",
            "cat a &",
            "sudo cat a",
            "head -c 10 a",
            "head -n -5 a",
            "head -n x a",
            "head a b",
            "tail -f a",
            "sed 1,2p a",
            "sed -n 1,2p",
            "sed -n -i 1p a",
            "sed -n '1,2d' a",
            "sed -n '/x/p' a",
            "sed -n '0p' a",
            "sed -n '1,2w b' a",
            "sed -n '1~2p' a",
            "grep foo a",
            "grep -rn foo a",
            "grep -nc foo a",
            "grep -nl foo a",
            "grep -n foo",
            "grep -n foo a b",
            "grep -nH foo a",
            "ls",
        ] {
            assert_eq!(of(command), None, "{command}");
        }
    }

    #[test]
    fn the_lines_that_grep_printed() {
        assert_eq!(numbers("3:a\n4-b\n--\n9:c\n"), Some(vec![(3, 4), (9, 9)]));
        assert_eq!(numbers("a:3:x"), None);
        assert_eq!(numbers("3:a\ngarbage"), None);
        assert_eq!(numbers(""), None);
    }
}
