//! Open edits: a mark claims a content. It neither hides nor locks the file
//! (ATTR-4, ATTR-5, ATTR-10, GUARD-5).

use crate::story;

/// A mark without a declared content and one with it, each with the final
/// evidence for its write.
const WAYS: [(&str, &str); 2] = [("", "marked"), (" expects=agent", "declared")];

#[test]
fn half_of_a_write_that_a_read_found_before_its_close_is_nobodys() {
    // The read of the half is ordered before the close and returns after it.
    // The read that the close orders is in progress at the same time.
    for (declares, evidence) in WAYS {
        story(&format!(
            "
            write f one
            a reads f
            a opens f{declares}
            reads stall
            writing f ag
            wait 250
            write f agent
            reads come back
            a commits f agent -> applied
            a takes -> nothing
            history f -> agent agent:a {evidence}
            "
        ));
    }
}

#[test]
fn what_an_undeclared_mark_comes_to_is_what_is_there_at_its_end() {
    story(
        "
        write f one
        a reads f
        b reads f
        a opens f
        write f two
        history f -> two user unmarked [a]
        b takes -> f modified by user unmarked
        a takes -> f modified by user unmarked
        a commits f -> applied
        a takes -> nothing
        b takes -> nothing
        status a f -> fresh
        history f -> two agent:a marked
        ",
    );
}

#[test]
fn what_was_closed_before_the_end_is_nobodys_and_told() {
    story(
        "
        write f one
        a reads f
        a opens f
        write f user
        write f both
        a commits f -> clobbered
        a takes -> f lost user by user
        a takes -> nothing
        history f -> both agent:a marked; user user unmarked [a]
        ",
    );
}

#[test]
fn what_came_after_the_content_that_a_commit_names_is_not_its_sessions() {
    story(
        "
        write f one
        a reads f
        a opens f
        write f agent
        write f user
        a commits f agent -> overwritten
        history f -> user user unmarked; agent agent:a marked
        status a f -> stale
        a takes -> f modified by user unmarked
        a takes -> nothing
        ",
    );
}

#[test]
fn what_was_read_after_an_overwritten_write_was_seen_last() {
    story(
        "
        write f one
        a reads f
        a opens f expects=agent
        quietly write f agent
        write f user
        saved f user
        a reads f
        a commits f agent -> overwritten
        status a f -> fresh
        a takes -> nothing
        history f -> user user editor; agent agent:a declared
        ",
    );
}

/// The user saves the same content before and after the session's write, of
/// which there is no trace but the second save.
#[test]
fn what_was_read_before_an_overwritten_write_was_not_seen_last() {
    story(
        "
        write f one
        a reads f
        a opens f expects=agent
        write f user
        a reads f
        quietly write f agent
        write f user
        a commits f agent -> overwritten
        status a f -> stale
        ",
    );
}

#[test]
fn an_overwritten_write_that_nobody_saw_is_told_once() {
    story(
        "
        write f one
        a reads f
        a opens f expects=agent
        write f user
        a takes -> f modified by user unmarked
        a commits f agent -> overwritten
        history f -> user user unmarked; agent agent:a declared
        a takes -> nothing
        status a f -> stale
        ",
    );
}

#[test]
fn a_mark_that_is_given_up_leaves_its_session_out() {
    story(
        "
        write f one
        a reads f
        a opens f
        write f user
        a takes -> f modified by user unmarked
        a aborts f
        history f -> user user unmarked
        a takes -> nothing
        status a f -> stale
        ",
    );
}

#[test]
fn a_deletion_during_an_edit_is_a_version_and_told() {
    story(
        "
        write f one
        a reads f
        b reads f
        a opens f expects=agent
        remove f
        status b f -> deleted
        wait 150
        b takes -> f deleted by user unmarked
        write f agent
        a commits f agent -> clobbered
        a takes -> f lost the file by user
        history f -> agent agent:a declared; gone user unmarked
        ",
    );
}

#[test]
fn an_edit_that_unlinks_and_makes_the_file_anew_is_one_version() {
    for (declares, evidence) in WAYS {
        story(&format!(
            "
            write f one
            a reads f
            b reads f
            a opens f{declares}
            remove f
            status b f -> deleted
            wait 50
            write f agent
            a commits f agent -> applied
            a takes -> nothing
            history f -> agent agent:a {evidence}
            "
        ));
    }
}

#[test]
fn a_beginning_of_the_declared_content_that_somebody_saved_is_a_version() {
    story(
        "
        write f one
        a reads f
        b reads f
        a opens f expects=agent
        write f ag
        b takes -> f modified by user unmarked
        write f agent
        a commits f agent -> clobbered
        a takes -> f lost ag by user
        history f -> agent agent:a declared; ag user unmarked
        ",
    );
}

#[test]
fn a_call_that_is_under_way_keeps_nobody_out() {
    story(
        "
        a opens f call=1
        b opens f call=2
        c opens f
        b opens f call=3 -> busy
        ",
    );
}

#[test]
fn a_call_that_never_came_back_claims_nothing() {
    story(
        "
        write f one
        a reads f
        a opens f call=1
        write f user
        wait 600000
        history f -> user user unmarked [a]
        a takes -> f modified by user unmarked
        ",
    );
}

#[test]
fn what_is_there_when_a_bound_edits_client_has_died_is_its_sessions() {
    story(
        "
        write f one
        a reads f
        a opens f bind
        write f agent
        hang up
        wait 2500
        write f user
        history f -> user user unmarked; agent agent:a marked
        ",
    );
}

#[test]
fn what_an_editor_reports_is_the_users_whatever_the_commit_names() {
    story(
        "
        write f one
        a reads f
        a opens f
        write f two
        saved f two
        a commits f two -> unchanged
        history f -> two user editor
        ",
    );
}

#[test]
fn a_beginning_that_a_user_leaves_of_the_agents_content_is_the_users() {
    story(
        "
        write f one
        a reads f
        a opens f
        write f agent
        write f ag
        a commits f agent -> overwritten
        status a f -> stale
        a takes -> f modified by user unmarked
        ",
    );
}
