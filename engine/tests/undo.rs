//! UNDO-1, UNDO-2 on a thousand sessions of several authors in the same files:
//! commits of this repository that are dealt out, and as many by chance. Who
//! wrote which line is known from the dealing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub, dead_code)] // the modules of other tests

#[path = "../../tests/src/dealt/mod.rs"]
mod dealt;
#[path = "../../tests/src/dice.rs"]
mod dice;
#[path = "../../tests/src/parts.rs"]
mod parts;

use std::path::Path;

use dealt::deal::script;
use dealt::truth::{Wrong, judge, truth};
use dealt::{AUTHORS, File, Style, histories};
use touchmark_engine::history::{Step, Weave};

/// Scripts of a run; `TOUCHMARK_SOAK` takes ten times as many.
const SCRIPTS: u64 = 1_000;

fn weave(file: &File, style: Style) -> Weave {
    let steps: Vec<Step> = (0..file.versions.len())
        .map(|at| match file.text(at, style) {
            Some(text) => Step::Held(text.into_bytes().into()),
            None => Step::Absent,
        })
        .collect();
    Weave::new(&steps)
}

/// All that is to be known of a file that is wrong.
fn shown(
    script: &str,
    file: &File,
    style: Style,
    who: usize,
    wrong: &Wrong,
    text: Option<&str>,
) -> String {
    let mut shown = format!(
        "{script}, {} {style:?} without {who}: {wrong:?}\n",
        file.path
    );
    for at in 0..file.versions.len() {
        let by = file.versions[at].by;
        shown += &format!(
            "--- {at} by {by:?}\n{}",
            file.text(at, style).unwrap_or_default()
        );
    }
    shown + &format!("--- it holds\n{}", text.unwrap_or_default())
}

#[test]
fn undo1_of_a_thousand_sessions_only_that_authors_lines_go() {
    let histories = histories::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    if let Some(why) = &histories.made_up {
        parts::not_tested(why);
    }
    let scripts = match parts::long("ten times as many sessions that are undone") {
        true => 10 * SCRIPTS,
        false => SCRIPTS,
    };
    let (mut files, mut steps, mut lines, mut conflicts) = (0, 0, 0, 0);
    let mut unsure = 0;
    for number in 0..scripts {
        let script = script(&histories, number);
        steps += script.steps.len();
        for (file, style) in script
            .files
            .iter()
            .flat_map(|file| [Style::Marked, Style::Plain].map(|style| (file, style)))
            // Plain texts take as long, and say less.
            .filter(|(_, style)| *style == Style::Marked || number % 4 < 2)
        {
            let weave = weave(file, style);
            let last = file.versions.len() - 1;
            let text = |at| file.text(at, style).map(String::into_bytes);
            assert_eq!(weave.without(|_| false).bytes, text(last));
            assert_eq!(weave.without(|at| at > 0).bytes, text(0));
            if style == Style::Marked {
                // Each line is told once, by its author.
                let told = weave.blame(last).into_iter();
                let told = told.map(|(at, _)| file.versions[at].by);
                let lines = file.versions[last].lines.iter().flatten();
                let wrote = lines.map(|line| file.lines[*line].by);
                assert!(told.eq(wrote), "{} {}", script.name, file.path);
            }
            for who in 0..AUTHORS.len() {
                let found = weave.without(|at| file.versions[at].by == Some(who));
                let text = found.bytes.map(|bytes| String::from_utf8(bytes).unwrap());
                let wrong = judge(file, who, style, text.as_deref());
                let truth = truth(file, who);
                let what = || shown(&script.name, file, style, who, &wrong, text.as_deref());
                // It cannot be known which of several equal lines stays: a
                // change may be in the way of another then, which is told.
                let is_right = match style {
                    Style::Marked => wrong.is_nothing(),
                    Style::Plain => wrong.lost == 0 && !wrong.bytes,
                };
                assert!(is_right, "{}", what());
                if style == Style::Marked {
                    let told = !found.conflicts.is_empty();
                    assert_eq!(told, truth.conflicts, "{}", what());
                } else {
                    unsure += wrong.gone + wrong.left + wrong.back;
                }
                files += 1;
                lines += truth.there.len();
                conflicts += usize::from(truth.conflicts);
            }
        }
    }
    println!(
        "{scripts} sessions, {} histories, {steps} steps, {files} files without an author, \
         {lines} lines that have to be there, {conflicts} files with conflicts; \
         {unsure} lines that were taken for equal ones",
        histories.all.len()
    );
    // Or little would be shown.
    assert!(
        lines > 100_000 && conflicts > 500,
        "{lines} lines, {conflicts} conflicts"
    );
}
