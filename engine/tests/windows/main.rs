//! Command windows (ATTR-6), formatters (ATTR-17), what is reported about them
//! (MOD-1), and which other evidence may explain a version. The tests are short
//! stories with the expected answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod marks;
mod stage;

use stage::play;

/// Plays a story. Each line is a step; the expected answer follows `->`.
fn story(text: &str) {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
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
    assert_eq!(
        lines.join("\n"),
        answered.join("\n"),
        "\nplayed:\n{}",
        answered.join("\n")
    );
}

#[test]
fn what_is_written_in_a_window_is_the_sessions_and_is_told_by_its_end() {
    story(
        "
        write f one
        a reads f
        a begins w
        write f two
        status a f -> stale
        a takes -> nothing
        a ends w -> f modified by agent:a command
        a takes -> nothing
        write f three
        a takes -> f modified by agent:a,user command,unmarked
        history f -> three user unmarked; two agent:a command
        ",
    );
}

#[test]
fn what_was_written_before_and_after_is_the_users() {
    story(
        "
        write f one
        a reads f
        write f two
        a begins w
        a ends w -> nothing
        write f three
        history f -> three user unmarked; two user unmarked
        a takes -> f modified by user unmarked
        ",
    );
}

#[test]
fn globs_narrow_a_window() {
    story(
        "
        write src/x one
        write doc/y one
        a reads src/x
        a reads doc/y
        a begins w paths=src/**
        write src/x two
        write doc/y two
        a takes -> doc/y modified by user unmarked
        a ends w -> src/x modified by agent:a command
        ",
    );
}

#[test]
fn several_sessions_windows_are_all_named() {
    story(
        "
        write f one
        a reads f
        a begins w
        b begins v
        write f two
        b ends v -> nothing
        write f three
        history f -> three agent:a command; two agent:b command [b,a]
        a ends w -> f modified by agent:b,agent:a command
        ",
    );
}

#[test]
fn a_window_without_an_end_is_told_by_take() {
    story(
        "
        write f one
        a reads f
        a begins w bind
        write f two
        hang up
        wait 1000
        write f three
        wait 1500
        a takes -> f modified by agent:a command
        write f four
        history f -> four user unmarked; three agent:a command; two agent:a command
        a ends w -> notFound
        ",
    );
}

#[test]
fn a_window_ends_with_its_process() {
    story(
        "
        write f one
        a reads f
        a begins w pid=7
        write f two
        exit 8
        write f three
        exit 7
        write f four
        history f -> four user unmarked; three agent:a command; two agent:a command
        ",
    );
}

#[test]
fn a_window_ends_by_itself() {
    story(
        "
        write f one
        a reads f
        a begins w
        wait 599000
        write f two
        wait 2000
        write f three
        history f -> three user unmarked; two agent:a command
        ",
    );
}

#[test]
fn a_closed_session_has_no_windows() {
    story(
        "
        write f one
        a reads f
        b reads f
        a begins w
        a closes
        write f two
        b takes -> f modified by user unmarked
        ",
    );
}

#[test]
fn windows_survive_the_daemon() {
    story(
        "
        write f one
        a reads f
        a begins w
        a begins v bind paths=g
        write g one
        a reads g
        restart
        write f two
        write g two
        a ends w -> f modified by agent:a command; g modified by agent:a command
        wait 600000
        write g three
        history g -> three user unmarked; two agent:a command
        ",
    );
}

#[test]
fn a_gap_is_nobodys() {
    story(
        "
        write f one
        a reads f
        a begins w
        quietly write f two
        overflow
        a takes -> f modified by unknown gap
        a ends w -> nothing
        ",
    );
}

#[test]
fn an_editors_report_goes_before_a_window() {
    story(
        "
        write f one
        write g one
        a reads f
        a reads g
        a begins w
        saved f two
        write f two
        write g two
        saved g two
        a takes -> f modified by user editor; g modified by user editor
        a ends w -> nothing
        history g -> two user editor
        ",
    );
}

#[test]
fn what_was_told_as_the_commands_is_told_again_as_the_users() {
    story(
        "
        write f one
        a reads f
        a begins w
        write f two
        a ends w -> f modified by agent:a command
        saved f two
        a takes -> f modified by user editor
        ",
    );
}

#[test]
fn a_formatter_in_the_sessions_window() {
    story(
        "
        write f one
        a reads f
        a declares f two
        write f two
        a begins w
        write f formatted
        a takes -> nothing
        a ends w -> f modified by agent:a command
        history f -> formatted agent:a command formatted; two agent:a declared
        status a f -> stale
        ",
    );
}

#[test]
fn a_formatter_comes_at_once_or_it_is_none() {
    story(
        "
        write f one
        a reads f
        a declares f two
        write f two
        a begins w
        wait 5001
        write f three
        remove f
        a ends w -> f deleted by agent:a command
        history f -> gone agent:a command; three agent:a command; two agent:a declared
        ",
    );
}

#[test]
fn a_formatter_of_the_editors() {
    story(
        "
        write f one
        a reads f
        b reads f
        a declares f two
        write f two
        formatted f neat
        write f neat
        a takes -> f modified by agent:a command
        b takes -> f modified by agent:a declared,command
        write f neater
        formatted f neater
        history f -> neater agent:a command formatted; neat agent:a command formatted; two agent:a declared
        a takes -> f modified by agent:a command
        saved f neater
        a takes -> f modified by agent:a,user command,editor
        ",
    );
}

#[test]
fn an_editors_formatter_after_a_users_edit_is_the_users() {
    story(
        "
        write f one
        a reads f
        a declares f two
        write f two
        write f mine
        status a f -> stale
        formatted f neat
        write f neat
        history f -> neat user editor formatted; mine user unmarked; two agent:a declared
        ",
    );
}

#[test]
fn a_formatter_wrapper_of_anybodys() {
    story(
        "
        write f one
        write g one
        a reads f
        b reads g
        a declares f two
        write f two
        b begins w formatter
        write f neat
        write g neat
        b ends w -> g modified by agent:b command
        history f -> neat agent:a command formatted; two agent:a declared
        a takes -> f modified by agent:a command
        ",
    );
}

#[test]
fn what_a_mark_declares_goes_before_a_window() {
    story(
        "
        write f one
        a reads f
        b begins w
        a declares f two
        write f other
        write f two
        history f -> two agent:a declared; other agent:b command
        b ends w -> nothing
        ",
    );
}

#[test]
fn an_audit_sees_what_no_event_told() {
    story(
        "
        write f one
        write g one
        a reads f
        a reads g
        audit -> 2 checked
        quietly write f two
        quietly remove g
        audit -> 2 checked; f is File(two) not File(one); g is Absent not File(one)
        audit -> 2 checked
        ",
    );
}

#[test]
fn an_audit_does_not_take_a_change_under_way_for_a_difference() {
    story(
        "
        write f one
        a reads f
        during audit write f two
        audit -> 1 checked
        during audit quietly write f three
        audit -> 1 checked; f is File(three) not File(two)
        ",
    );
}

/// An agent writes under its mark, and an editor saves before the file is read.
/// The one content found is the editor's, and the close that comes after its
/// report does not take it back.
#[test]
fn an_editors_report_is_not_taken_back_by_a_later_close() {
    story(
        "
        write f one
        a reads f
        a marks f
        write f two
        history f -> two agent:a marked
        saved f two
        history f -> two user editor
        close f
        history f -> two user editor
        ",
    );
    story(
        "
        write f one
        a reads f
        a marks f
        write f two
        close f
        history f -> two user unmarked
        ",
    );
}

/// A user takes an agent's change back and brings it back, as an editor's undo
/// and redo do. The report of the second save is not about the agent's version
/// (ATTR-2), whether it comes before the daemon sees the save or after it. A
/// late report of a save that was overwritten still is about that save.
#[test]
fn a_report_of_a_content_that_came_back_is_about_the_new_save() {
    for early in [
        "reads stall",
        "history f -> one user editor; two agent:a command",
    ] {
        let seen = if early == "reads stall" {
            "reads come back"
        } else {
            "wait 1"
        };
        story(&format!(
            "
            write f one
            a reads f
            a begins w
            write f two
            a ends w -> f modified by agent:a command
            wait 300
            write f one
            saved f one
            wait 300
            {early}
            write f two
            saved f two
            {seen}
            history f -> two user editor; one user editor; two agent:a command
            "
        ));
    }
    story(
        "
        write f one
        a reads f
        a begins w
        write f two
        a ends w -> f modified by agent:a command
        write f three
        saved f two
        history f -> three user unmarked; two user editor
        ",
    );
}

/// A content is held back for a declared writer, which comes. The content that
/// was held back is the editor's that reported it.
#[test]
fn an_editors_report_speaks_for_what_was_held_back() {
    story(
        "
        write f one
        a reads f
        a declares f three
        saved f two
        fences stall
        write f two
        write f three
        fences go on
        history f -> three agent:a declared; two user editor
        ",
    );
}

/// The close of one save is often read when the next save has already truncated
/// the file: no writer closed it empty (ATTR-12). A file that stays empty is a
/// version.
#[test]
fn what_the_next_save_has_just_cut_is_no_version() {
    story(
        "
        write f one
        a reads f
        a declares f two
        write f two
        wait 10
        quietly cut f
        close f
        write f two
        wait 1000
        history f -> two agent:a declared
        status a f -> fresh
        a takes -> nothing
        ",
    );
    story(
        "
        write f one
        a reads f
        quietly cut f
        close f
        wait 5
        status a f -> stale
        history f ->  user unmarked
        a takes -> f modified by user unmarked
        ",
    );
}
