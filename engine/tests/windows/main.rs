//! Command windows, formatters and open edits, as short stories with the
//! expected answers: `windows.txt` and `marks.txt`. The line of a story's name
//! begins with `=`, and its comments with `#`. Each other line is a step; the
//! expected answer follows `->`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod stage;

use stage::play;

#[test]
fn every_step_of_every_story_has_its_answer() {
    let stories = [include_str!("windows.txt"), include_str!("marks.txt")];
    let stories = stories.iter().flat_map(|text| text.split("\n= ").skip(1));
    let mut count = 0;
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
        assert_eq!(lines.join("\n"), played, "{name}, played:\n{played}");
        count += 1;
    }
    assert!(count > 40);
}
