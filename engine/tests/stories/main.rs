//! Command windows, formatters, open edits, names of files and limits, as short
//! stories with the expected answers, in the text files of this directory. The
//! line of a story's name begins with `=`, and its comments with `#`. Each other
//! line is a step; the expected answer follows `->`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod disk;
mod requests;
mod stage;

use stage::play;

#[test]
fn every_step_of_every_story_has_its_answer() {
    let stories = [
        include_str!("windows.txt"),
        include_str!("marks.txt"),
        include_str!("names.txt"),
        include_str!("requests.txt"),
        include_str!("stamps.txt"),
    ];
    let stories = stories.iter().flat_map(|text| text.split("\n= ").skip(1));
    let mut count = 0;
    let mut wrong = String::new();
    for story in stories {
        let (name, steps) = story.split_once('\n').unwrap();
        let is_step = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let lines: Vec<&str> = steps.lines().filter(is_step).collect();
        let asked: Vec<&str> = lines
            .iter()
            .map(|line| line.split("->").next().unwrap().trim())
            .collect();
        let answered: Vec<String> = asked
            .iter()
            .zip(play(&asked))
            .map(|(line, answer)| match answer.as_str() {
                "" => (*line).to_owned(),
                answer => format!("{line} -> {answer}"),
            })
            .collect();
        let played = answered.join("\n");
        if lines.join("\n") != played {
            wrong += &format!("= {name}\n{played}\n\n");
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "what was played:\n\n{wrong}");
    assert!(count > 40);
}
